// SPDX-License-Identifier: Apache-2.0
// Tensors of `fa4 run`.
#include "tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include <fmt/format.h>

#include "lengths.h"
#include "npy.h"
#include "support/inputs.h"
#include "support/staging.h"

namespace fa4::cli {
namespace {

using support::Dtype;

struct FileTensor {
  const std::string& path;
  const char* option;
  NpyArray array;
  bool packed;  // batch entries one behind the other: rank 3
  // Extents in (batch, sequence, head, head dimension) order; packed, one entry of all rows.
  int64_t batch, seq, heads, head_dim;
};

FileTensor read_tensor(const std::string& path, const char* option, bool bhsd) {
  FileTensor tensor{path, option, read_npy(path), false, 1, 0, 0, 0};
  const std::vector<int64_t>& shape = tensor.array.shape;
  if (shape.size() != 3 && shape.size() != 4)
    throw Refusal(fmt::format(
        "{} {}: shape {} has rank {}; rank 4 is accepted, (batch, {}, head dimension), and rank 3, ({}, "
        "head dimension), of packed batch entries",
        option, path, shape_text(shape), shape.size(), bhsd ? "heads, sequence" : "sequence, heads",
        bhsd ? "heads, rows" : "rows, heads"));
  tensor.packed = shape.size() == 3;
  const size_t first = tensor.packed ? 0 : 1;
  if (!tensor.packed) tensor.batch = shape[0];
  tensor.seq = shape[first + (bhsd ? 1 : 0)];
  tensor.heads = shape[first + (bhsd ? 0 : 1)];
  tensor.head_dim = shape.back();
  return tensor;
}

// A packed tensor needs lengths that add up to its rows, and lengths a packed tensor.
void require_packing(const FileTensor& tensor, const SideLengths& side, char letter) {
  const std::vector<int64_t>& lengths = side.lengths.packed;
  if (tensor.packed && lengths.empty())
    throw Refusal(fmt::format(
        "{} {}: shape {} has rank 3, packed batch entries; --lengths-{} or --cu-seqlens-{} with it is "
        "accepted, or rank 4",
        tensor.option, tensor.path, shape_text(tensor.array.shape), letter, letter));
  if (!tensor.packed && !lengths.empty())
    throw Refusal(
        fmt::format("{}: {} {} has shape {}; rank 3 is accepted, batch entries one behind the other",
                    side.packed_by, tensor.option, tensor.path, shape_text(tensor.array.shape)));
  if (const int64_t rows = side.lengths.cu_seqlens().back(); tensor.packed && rows != tensor.seq)
    throw Refusal(
        fmt::format("{}: the lengths add up to {}, but {} {} has {} rows; equal numbers are accepted",
                    side.packed_by, rows, tensor.option, tensor.path, tensor.seq));
}

void require_same(const FileTensor& a, int64_t a_extent, const FileTensor& b, int64_t b_extent,
                  const char* what) {
  if (a_extent != b_extent)
    throw Refusal(fmt::format("{} {} has {} {}, but {} {} has {}; equal ones are accepted", b.option, b.path,
                              what, b_extent, a.option, a.path, a_extent));
}

Dtype dtype_of(const RunRequest& request, const FileTensor& q, const FileTensor& k, const FileTensor& v) {
  for (const FileTensor* other : {&k, &v})
    if (other->array.type != q.array.type)
      throw Refusal(fmt::format("{} {} holds {}, but {} {} holds {}; one type for Q, K and V is accepted",
                                other->option, other->path, name_of(other->array.type), q.option, q.path,
                                name_of(q.array.type)));
  switch (q.array.type) {
    case NpyType::float16:
      if (request.dtype == "bf16")
        throw Refusal(fmt::format(
            "--dtype bf16: {} holds float16; uint16, or what ml_dtypes saves, holds bfloat16", q.path));
      return Dtype::fp16;
    case NpyType::uint16:
      if (request.dtype == "fp16")
        throw Refusal(fmt::format("--dtype fp16: {} holds uint16, which is read as bfloat16", q.path));
      return Dtype::bf16;
    case NpyType::void16:
      if (request.dtype != "bf16")
        throw Refusal(fmt::format(
            "{} holds elements of 2 bytes without a type, as ml_dtypes and JAX save bfloat16: say "
            "--dtype bf16 if that is what they are{}",
            q.path, request.dtype.empty() ? "" : ", not --dtype " + request.dtype));
      return Dtype::bf16;
    case NpyType::int32:
      throw Refusal(fmt::format(
          "{} {} holds int32; float16, float32, and bfloat16 as uint16 or as ml_dtypes saves it are accepted",
          q.option, q.path));
    case NpyType::float32:
      break;
  }
  if (request.dtype.empty())
    throw Refusal(
        fmt::format("{} holds float32: say with --dtype fp16 or --dtype bf16 what to round it to", q.path));
  return request.dtype == "bf16" ? Dtype::bf16 : Dtype::fp16;
}

// Index of the head dimension's first element in a file, of batch and sequence index.
int64_t place(const FileTensor& t, bool bhsd, int64_t batch, int64_t seq, int64_t head) {
  return (bhsd ? (batch * t.heads + head) * t.seq + seq : (batch * t.seq + seq) * t.heads + head) *
         t.head_dim;
}

// Values as support::Inputs has them, those of rows that do not count left 0. float32 is rounded to the
// problem's type; finite values that would become infinite are refused. NaN and infinities of the file stay
// what they are.
std::vector<uint16_t> values_of(const FileTensor& t, const support::Problem& problem,
                                const support::Lengths& lengths, int64_t bound, bool bhsd) {
  const Dtype dtype = problem.dtype;
  std::vector<uint16_t> values(size_t(problem.batch * bound * t.heads * t.head_dim));
  int64_t beyond = 0;
  float largest = 0;
  const auto element = [&](size_t i) {
    if (t.array.type == NpyType::float32) {
      float value;
      std::memcpy(&value, t.array.data.data() + i * sizeof value, sizeof value);
      const uint16_t rounded = support::from_float(dtype, value);
      if (std::isfinite(value) && !std::isfinite(support::to_float(dtype, rounded))) {
        ++beyond;
        largest = std::max(largest, std::fabs(value));
      }
      return rounded;
    }
    uint16_t bits;
    std::memcpy(&bits, t.array.data.data() + i * sizeof bits, sizeof bits);
    return bits;
  };
  support::for_each_row(problem, lengths, bound, [&](int64_t entry, int64_t row, int64_t batch, int64_t seq) {
    for (int64_t h = 0; h < t.heads; ++h) {
      const int64_t from = place(t, bhsd, batch, seq, h),
                    to = ((entry * bound + row) * t.heads + h) * t.head_dim;
      for (int64_t d = 0; d < t.head_dim; ++d) values[size_t(to + d)] = element(size_t(from + d));
    }
  });
  if (beyond != 0)
    throw Refusal(fmt::format(
        "{} {}: {} of {} values are finite but too large for {}, up to {:.6g} where the largest is {}; {}",
        t.option, t.path, beyond, t.array.elements(), name_of(dtype), largest,
        dtype == Dtype::fp16 ? "65504" : "3.38953e+38",
        dtype == Dtype::fp16 ? "--dtype bf16 takes up to 3.38953e+38, or scale the file's values"
                             : "scale the file's values"));
  return values;
}

// float32 of one of the shapes.
std::vector<float> read_floats(const char* option, const std::string& path,
                               const std::vector<std::vector<int64_t>>& shapes, std::vector<int64_t>& shape) {
  const NpyArray array = read_npy(path);
  shape = array.shape;
  if (array.type != NpyType::float32 || std::ranges::find(shapes, shape) == shapes.end()) {
    std::string accepted;
    for (const std::vector<int64_t>& s : shapes) accepted += (accepted.empty() ? "" : " or ") + shape_text(s);
    throw Refusal(fmt::format("{} {}: holds {} of shape {}; float32 of shape {} is accepted", option, path,
                              name_of(array.type), shape_text(shape), accepted));
  }
  std::vector<float> values(size_t(array.elements()));
  if (!values.empty()) std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

// What a problem has beside extents and lengths.
void set_mask_and_scores(const RunRequest& request, support::Problem& problem) {
  problem.causal = request.causal;
  problem.scale = request.scale;
  problem.top_left = request.top_left;
  problem.window = request.window;
  problem.window_left = request.window_left;
  problem.window_right = request.window_right;
  problem.softcap = request.softcap;
  problem.sinks = !request.sinks.empty();
  problem.alibi = !request.alibi.empty();
}

void require_supported(const support::Problem& problem, const RunRequest& request) {
  if (const std::string why = why_unsupported(problem, request); !why.empty()) throw Refusal(why);
  // Inputs and results have the bound's rows for every entry, also where packed tensors have far fewer.
  for (const int64_t bound : {problem.seq_q, problem.seq_kv}) {
    int64_t elements = problem.batch;
    for (const int64_t extent : {bound, problem.q_heads, std::max(problem.head_dim, problem.v_dim())})
      if (__builtin_mul_overflow(elements, extent, &elements)) throw std::bad_alloc();
  }
}

// Q, K and V from files.
Loaded load_files(const RunRequest& request) {
  const FileTensor q = read_tensor(request.q_path, "--q", request.bhsd);
  const FileTensor k = read_tensor(request.k_path, "--k", request.bhsd);
  const FileTensor v = read_tensor(request.v_path, "--v", request.bhsd);
  BatchLengths lengths = read_lengths(request);
  if (lengths.kv.lengths.packed.empty() && k.packed) lengths.pack_kv_as_q();
  require_packing(q, lengths.q, 'q');
  require_packing(k, lengths.kv, 'k');
  require_packing(v, lengths.kv, 'k');
  Loaded result;
  support::Problem& problem = result.problem;
  set_mask_and_scores(request, problem);
  problem.dtype = dtype_of(request, q, k, v);
  if (!q.packed && !k.packed) require_same(q, q.batch, k, k.batch, "batch");
  if (!k.packed) require_same(k, k.batch, v, v.batch, "batch");
  require_same(k, k.seq, v, v.seq, "sequence length");
  require_same(k, k.heads, v, v.heads, "heads");
  require_same(q, q.head_dim, k, k.head_dim, "head dimension");
  problem.batch = lengths.entries != 0 ? lengths.entries : q.batch;
  for (const FileTensor* tensor : {&q, &k})
    if (!tensor->packed && tensor->batch != problem.batch)
      throw Refusal(fmt::format("{} has {} batch entries, but {} {} has batch {}; equal numbers are accepted",
                                lengths.given_by, lengths.entries, tensor->option, tensor->path,
                                tensor->batch));
  problem.seq_q = q.seq;
  problem.seq_kv = k.seq;
  problem.q_heads = q.heads;
  problem.kv_heads = k.heads;
  problem.head_dim = q.head_dim;
  problem.head_dim_v = v.head_dim;
  set_lengths(lengths, request, problem);
  require_supported(problem, request);
  load_score_arrays(request, problem, result.inputs);
  result.inputs.q = values_of(q, problem, problem.q_lengths, problem.seq_q, request.bhsd);
  result.inputs.k = values_of(k, problem, problem.kv_lengths, problem.seq_kv, request.bhsd);
  result.inputs.v = values_of(v, problem, problem.kv_lengths, problem.seq_kv, request.bhsd);
  result.source = fmt::format("{}, {}, {}", request.q_path, request.k_path, request.v_path);
  return result;
}

}  // namespace

fa4_scheduler scheduler_of(const RunRequest& request) {
  return request.scheduler == "lpt"      ? FA4_SCHEDULER_LPT
         : request.scheduler == "linear" ? FA4_SCHEDULER_LINEAR
                                         : FA4_SCHEDULER_AUTO;
}

fa4_exp2 exp2_of(const RunRequest& request) {
  return request.exp2 == "polynomial" ? FA4_EXP2_POLYNOMIAL
         : request.exp2 == "mufu"     ? FA4_EXP2_MUFU
                                      : FA4_EXP2_AUTO;
}

fa4_forward_params dry_params(const support::Problem& p, const RunRequest& request) {
  // Addresses that are aligned and never used.
  constexpr uint64_t kSomewhere = uint64_t(1) << 40;
  fa4_forward_params params = support::params_of(
      p, {}, [](const char*, const std::vector<uint32_t>&) -> uint64_t { return kSomewhere; });
  params.scheduler = scheduler_of(request);
  params.exp2 = exp2_of(request);
  const support::Lengths &q = p.q_lengths, &kv = p.kv_lengths;
  // Strides of hopeless extents would overflow: the extents are refused first.
  const auto tensor = [&](const support::Lengths& lengths, int64_t bound, int64_t heads, int64_t dim) {
    fa4_tensor t{kSomewhere, 0, 0, 0};
    const int64_t seq = lengths.packed.empty() ? bound : lengths.cu_seqlens().back();
    int64_t token = 0;
    if (__builtin_mul_overflow(heads, dim, &token) || __builtin_mul_overflow(seq, token, &t.batch_stride))
      return t;
    t.seq_stride = request.bhsd ? dim : token;
    t.head_stride = request.bhsd ? seq * dim : dim;
    return t;
  };
  params.q = tensor(q, p.seq_q, p.q_heads, p.head_dim);
  params.k = tensor(kv, p.seq_kv, p.kv_heads, p.head_dim);
  params.v = tensor(kv, p.seq_kv, p.kv_heads, p.v_dim());
  params.o = tensor(q, p.seq_q, p.q_heads, p.v_dim());
  return params;
}

double visible_pairs(const support::Problem& p) {
  double pairs = 0;
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t i = 0; i < p.length_q(b); ++i) pairs += double(p.visible(b, i).count());
  return pairs;
}

double mma_flop(const support::Problem& p) {
  return 2.0 * double(p.q_heads) * visible_pairs(p) * double(p.head_dim + p.v_dim());
}

std::string why_unsupported(const support::Problem& problem, const RunRequest& request) {
  const fa4_forward_params params = dry_params(problem, request);
  const fa4_status status = fa4_supported(nullptr, &params);
  return status == FA4_OK ? "" : fmt::format("{}: {}", fa4_status_name(status), fa4_last_error());
}

int64_t rows_of(const support::Problem& problem, const support::Lengths& lengths, int64_t bound) {
  return lengths.packed.empty() ? problem.batch * bound : lengths.cu_seqlens().back();
}

support::Problem problem_of(const RunRequest& request) {
  support::Problem problem;
  problem.dtype = request.dtype == "bf16" ? Dtype::bf16 : Dtype::fp16;
  set_mask_and_scores(request, problem);
  problem.q_heads = request.q_heads;
  problem.kv_heads = request.kv_heads;
  problem.head_dim = request.head_dim;
  problem.head_dim_v = request.head_dim_v;
  BatchLengths lengths = read_lengths(request);
  if (lengths.kv.lengths.packed.empty() && !request.seq_kv_given) lengths.pack_kv_as_q();
  if (request.batch_given && lengths.entries != 0 && request.batch != lengths.entries)
    throw Refusal(fmt::format(
        "--batch is {}, but {} has {} batch entries; the same number is accepted, or leave --batch out",
        request.batch, lengths.given_by, lengths.entries));
  problem.batch = lengths.entries != 0 ? lengths.entries : request.batch;
  problem.seq_q = request.seq_q;
  problem.seq_kv = request.seq_kv_given ? request.seq_kv : request.seq_q;
  set_lengths(lengths, request, problem);
  return problem;
}

void load_score_arrays(const RunRequest& request, support::Problem& problem, support::Inputs& inputs) {
  std::vector<int64_t> shape;
  inputs.sinks.clear();
  inputs.slopes.clear();
  if (problem.sinks && request.sinks != kSeeded)
    inputs.sinks = read_floats("--sinks", request.sinks, {{problem.q_heads}}, shape);
  if (problem.alibi && request.alibi != kSeeded) {
    inputs.slopes =
        read_floats("--alibi", request.alibi, {{problem.q_heads}, {problem.batch, problem.q_heads}}, shape);
    problem.slopes_by_entry = shape.size() == 2;
  }
  for (int64_t h = 0; h < problem.q_heads; ++h) {
    if (request.sinks == kSeeded) inputs.sinks.push_back(support::sink_value(request.seed, uint64_t(h)));
    if (request.alibi == kSeeded) inputs.slopes.push_back(support::slope_value(request.seed, uint64_t(h)));
  }
}

Loaded load(const RunRequest& request) {
  for (const std::string& path : {request.out_path, request.lse_path})
    if (!path.empty()) require_writable(path);
  Loaded result;
  support::Problem& problem = result.problem;
  if (request.q_path.empty()) {
    problem = problem_of(request);
    require_supported(problem, request);
    result.inputs = support::make_inputs(problem, request.seed);
    load_score_arrays(request, problem, result.inputs);
    result.source = fmt::format("seed {}", request.seed);
  } else {
    result = load_files(request);
  }
  for (const std::string* path : {&request.sinks, &request.alibi})
    if (!path->empty() && *path != kSeeded) result.source += ", " + *path;
  return result;
}

void save(const RunRequest& request, const support::Problem& p, const std::vector<uint16_t>& o,
          const std::vector<float>& lse) {
  const bool packed = !p.q_lengths.packed.empty();
  const int64_t entries = packed ? 1 : p.batch, rows = packed ? p.q_lengths.cu_seqlens().back() : p.seq_q;
  const auto shape = [&](std::vector<int64_t> extents) {
    if (packed) extents.erase(extents.begin());
    return extents;
  };
  // Rows that do not count are what those are that see no key.
  std::vector<uint16_t> o_values(size_t(entries * rows * p.q_heads * p.v_dim()), 0);
  std::vector<float> lse_values(lse.empty() ? 0 : size_t(entries * rows * p.q_heads),
                                -std::numeric_limits<float>::infinity());
  support::for_each_row(p, p.q_lengths, p.seq_q, [&](int64_t b, int64_t i, int64_t entry, int64_t row) {
    for (int64_t h = 0; h < p.q_heads; ++h) {
      const int64_t head_major = (entry * p.q_heads + h) * rows + row;
      const int64_t to = request.bhsd ? head_major : (entry * rows + row) * p.q_heads + h;
      std::copy_n(o.begin() + ((b * p.seq_q + i) * p.q_heads + h) * p.v_dim(), p.v_dim(),
                  o_values.begin() + to * p.v_dim());
      if (!lse.empty()) lse_values[size_t(head_major)] = lse[size_t((b * p.q_heads + h) * p.seq_q + i)];
    }
  });
  if (!request.out_path.empty())
    write_npy(request.out_path, p.dtype == Dtype::fp16 ? NpyType::float16 : NpyType::uint16,
              shape(request.bhsd ? std::vector{entries, p.q_heads, rows, p.v_dim()}
                                 : std::vector{entries, rows, p.q_heads, p.v_dim()}),
              std::as_bytes(std::span(o_values)));
  if (!request.lse_path.empty())
    write_npy(request.lse_path, NpyType::float32, shape({entries, p.q_heads, rows}),
              std::as_bytes(std::span(lse_values)));
}

}  // namespace fa4::cli
