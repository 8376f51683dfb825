// SPDX-License-Identifier: Apache-2.0
// Tensors of `fa4 run`.
#include "tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "npy.h"
#include "support/inputs.h"

namespace fa4::cli {
namespace {

using support::Dtype;

struct FileTensor {
  const std::string& path;
  const char* option;
  NpyArray array;
  // Extents in (batch, sequence, head, head dimension) order.
  int64_t batch, seq, heads, head_dim;
};

FileTensor read_tensor(const std::string& path, const char* option, bool bhsd) {
  FileTensor tensor{path, option, read_npy(path), 0, 0, 0, 0};
  const std::vector<int64_t>& shape = tensor.array.shape;
  if (shape.size() != 4)
    throw Refusal(fmt::format("{} {}: shape {} has rank {}; rank 4 is accepted, (batch, {}, head dimension)",
                              option, path, shape_text(shape), shape.size(),
                              bhsd ? "heads, sequence" : "sequence, heads"));
  tensor.batch = shape[0];
  tensor.seq = shape[bhsd ? 2 : 1];
  tensor.heads = shape[bhsd ? 1 : 2];
  tensor.head_dim = shape[3];
  return tensor;
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
    case NpyType::float32:
      break;
  }
  if (request.dtype.empty())
    throw Refusal(
        fmt::format("{} holds float32: say with --dtype fp16 or --dtype bf16 what to round it to", q.path));
  return request.dtype == "bf16" ? Dtype::bf16 : Dtype::fp16;
}

// Values in packed (batch, sequence, head, head dimension) order. float32 is rounded to `dtype`; finite
// values that would become infinite are refused. NaN and infinities of the file stay what they are.
std::vector<uint16_t> packed(const FileTensor& t, Dtype dtype, bool bhsd) {
  std::vector<uint16_t> values(size_t(t.array.elements()));
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
  size_t to = 0;
  for (int64_t b = 0; b < t.batch; ++b)
    for (int64_t s = 0; s < t.seq; ++s)
      for (int64_t h = 0; h < t.heads; ++h) {
        const int64_t row = bhsd ? (b * t.heads + h) * t.seq + s : (b * t.seq + s) * t.heads + h;
        for (int64_t d = 0; d < t.head_dim; ++d) values[to++] = element(size_t(row * t.head_dim + d));
      }
  if (beyond != 0)
    throw Refusal(fmt::format(
        "{} {}: {} of {} values are finite but too large for {}, up to {:.6g} where the largest is {}; {}",
        t.option, t.path, beyond, values.size(), name_of(dtype), largest,
        dtype == Dtype::fp16 ? "65504" : "3.38953e+38",
        dtype == Dtype::fp16 ? "--dtype bf16 takes up to 3.38953e+38, or scale the file's values"
                             : "scale the file's values"));
  return values;
}

void require_supported(const support::Problem& problem, const RunRequest& request) {
  const fa4_forward_params params = dry_params(problem, request);
  const fa4_status status = fa4_supported(nullptr, &params);
  if (status != FA4_OK) throw Refusal(fmt::format("{}: {}", fa4_status_name(status), fa4_last_error()));
}

}  // namespace

fa4_scheduler scheduler_of(const RunRequest& request) {
  return request.scheduler == "lpt"      ? FA4_SCHEDULER_LPT
         : request.scheduler == "linear" ? FA4_SCHEDULER_LINEAR
                                         : FA4_SCHEDULER_AUTO;
}

fa4_exp2 exp2_of(const RunRequest& request) {
  return request.exp2 == "polynomial" ? FA4_EXP2_POLYNOMIAL : request.exp2 == "mufu" ? FA4_EXP2_MUFU : FA4_EXP2_AUTO;
}

fa4_forward_params dry_params(const support::Problem& p, const RunRequest& request) {
  const int64_t head_dim = p.head_dim;
  fa4_forward_params params{};
  params.struct_size = sizeof params;
  params.version = FA4_VERSION;
  params.dtype = p.dtype == Dtype::fp16 ? FA4_FP16 : FA4_BF16;
  params.causal = p.causal;
  params.scheduler = scheduler_of(request);
  params.exp2 = exp2_of(request);
  params.batch = p.batch;
  params.seq_q = p.seq_q;
  params.seq_kv = p.seq_kv;
  params.q_heads = p.q_heads;
  params.kv_heads = p.kv_heads;
  params.head_dim = head_dim;
  params.softmax_scale = p.scale;
  // Addresses that are aligned and never used. Strides of hopeless extents would overflow: the extents are
  // refused first.
  const auto tensor = [&](int64_t seq, int64_t heads) {
    fa4_tensor t{uint64_t(1) << 40, 0, 0, 0};
    int64_t token = 0;
    if (__builtin_mul_overflow(heads, head_dim, &token) ||
        __builtin_mul_overflow(seq, token, &t.batch_stride))
      return t;
    t.seq_stride = request.bhsd ? head_dim : token;
    t.head_stride = request.bhsd ? seq * head_dim : head_dim;
    return t;
  };
  params.q = params.o = tensor(p.seq_q, p.q_heads);
  params.k = params.v = tensor(p.seq_kv, p.kv_heads);
  return params;
}

double mma_flop(const support::Problem& p) {
  double pairs = 0;
  for (int64_t i = 0; i < p.seq_q; ++i) pairs += double(p.visible_keys(i));
  return 4.0 * double(p.batch * p.q_heads) * pairs * double(p.head_dim);
}

Loaded load(const RunRequest& request) {
  for (const std::string& path : {request.out_path, request.lse_path})
    if (!path.empty()) require_writable(path);
  Loaded result;
  support::Problem& problem = result.problem;
  problem.causal = request.causal;
  problem.scale = request.scale;
  if (request.q_path.empty()) {
    problem.dtype = request.dtype == "bf16" ? Dtype::bf16 : Dtype::fp16;
    problem.batch = request.batch;
    problem.seq_q = request.seq_q;
    problem.seq_kv = request.seq_kv;
    problem.q_heads = request.q_heads;
    problem.kv_heads = request.kv_heads;
    problem.head_dim = request.head_dim;
    require_supported(problem, request);
    result.inputs = support::make_inputs(problem, request.seed);
    result.source = fmt::format("seed {}", request.seed);
    return result;
  }
  const FileTensor q = read_tensor(request.q_path, "--q", request.bhsd);
  const FileTensor k = read_tensor(request.k_path, "--k", request.bhsd);
  const FileTensor v = read_tensor(request.v_path, "--v", request.bhsd);
  problem.dtype = dtype_of(request, q, k, v);
  require_same(q, q.batch, k, k.batch, "batch");
  require_same(q, q.batch, v, v.batch, "batch");
  require_same(k, k.seq, v, v.seq, "sequence length");
  require_same(k, k.heads, v, v.heads, "heads");
  require_same(q, q.head_dim, k, k.head_dim, "head dimension");
  require_same(q, q.head_dim, v, v.head_dim, "head dimension");
  problem.batch = q.batch;
  problem.seq_q = q.seq;
  problem.seq_kv = k.seq;
  problem.q_heads = q.heads;
  problem.kv_heads = k.heads;
  problem.head_dim = q.head_dim;
  require_supported(problem, request);
  result.inputs = {packed(q, problem.dtype, request.bhsd), packed(k, problem.dtype, request.bhsd),
                   packed(v, problem.dtype, request.bhsd)};
  result.source = fmt::format("{}, {}, {}", request.q_path, request.k_path, request.v_path);
  return result;
}

void save(const RunRequest& request, const support::Problem& p, const std::vector<uint16_t>& o,
          const std::vector<float>& lse) {
  if (!request.out_path.empty()) {
    std::vector<uint16_t> values = o;
    if (request.bhsd) {
      for (int64_t b = 0; b < p.batch; ++b)
        for (int64_t s = 0; s < p.seq_q; ++s)
          for (int64_t h = 0; h < p.q_heads; ++h)
            std::memcpy(&values[size_t(((b * p.q_heads + h) * p.seq_q + s) * p.head_dim)],
                        &o[size_t(((b * p.seq_q + s) * p.q_heads + h) * p.head_dim)],
                        size_t(p.head_dim) * sizeof(uint16_t));
    }
    const std::vector<int64_t> shape = request.bhsd
                                           ? std::vector<int64_t>{p.batch, p.q_heads, p.seq_q, p.head_dim}
                                           : std::vector<int64_t>{p.batch, p.seq_q, p.q_heads, p.head_dim};
    write_npy(request.out_path, p.dtype == Dtype::fp16 ? NpyType::float16 : NpyType::uint16, shape,
              std::as_bytes(std::span(values)));
  }
  if (!request.lse_path.empty())
    write_npy(request.lse_path, NpyType::float32, {p.batch, p.q_heads, p.seq_q},
              std::as_bytes(std::span(lse)));
}

}  // namespace fa4::cli
