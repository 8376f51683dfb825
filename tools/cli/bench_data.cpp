// SPDX-License-Identifier: Apache-2.0
// The data of `fa4 bench`.
#include "bench_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <type_traits>

#include <fmt/format.h>

#include "support/compare.h"
#include "table.h"
#include "tensors.h"

namespace fa4::cli {
namespace {

constexpr uint64_t kTensorsPerCopy = 3;  // Q, K, V
constexpr int kMostCopies = 256;

uint64_t mix(uint64_t z) {
  z += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Quantile i of the upper half: the z with P(Z <= z) = 1/2 + (i + 1/2) / 2^16. The distribution is concave
// there, so that Newton's method approaches from the quantile before without passing it.
std::vector<uint16_t> normal_quantiles(support::Dtype dtype) {
  constexpr int half = 1 << 15;
  std::vector<uint16_t> values(2 * half);
  double z = 0;
  for (int i = 0; i < half; ++i) {
    const double above = 0.5 - (i + 0.5) / (2 * half);  // P(Z > z)
    for (double step = 1; std::fabs(step) > 1e-9;) {
      step = (0.5 * std::erfc(z * M_SQRT1_2) - above) / (std::exp(-0.5 * z * z) / std::sqrt(2 * M_PI));
      z += step;
    }
    values[size_t(half + i)] = support::from_float(dtype, float(z));
    values[size_t(half - 1 - i)] = support::from_float(dtype, float(-z));
  }
  return values;
}

uint64_t tensor_bytes(int64_t elements) {
  return uint64_t(elements) * sizeof(uint16_t);
}

// Rows of a tensor at which batch entries begin.
std::vector<int64_t> first_rows(const support::Problem& problem, const support::Lengths& lengths,
                                int64_t bound) {
  if (!lengths.packed.empty()) return lengths.cu_seqlens();
  std::vector<int64_t> first;
  for (int64_t b = 0; b < problem.batch; ++b) first.push_back(b * bound);
  return first;
}

// One query, the keys that it sees, and what changes their scores.
struct Row {
  const support::Problem& problem;
  std::vector<uint16_t> q, k, v;
  int64_t keys;
  int64_t diagonal;  // of the query, counted from the first of these keys
  double slope, sink;
};

// O of a row. In fp32 as a tensor core gives it: P and O rounded to the type of the tensors.
template <typename T>
std::vector<double> attend(const Row& row) {
  const support::Problem& p = row.problem;
  const auto value = [&](const std::vector<uint16_t>& from, int64_t i) {
    return T(support::to_float(p.dtype, from[size_t(i)]));
  };
  const auto rounded = [&](T x) {
    return std::is_same_v<T, float> ? T(support::to_float(p.dtype, support::from_float(p.dtype, float(x))))
                                    : x;
  };
  std::vector<T> scores(size_t(row.keys), T(0));
  T maximum = p.sinks ? T(row.sink) : -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < row.keys; ++j) {
    T& score = scores[size_t(j)];
    for (int64_t d = 0; d < p.head_dim; ++d) score += value(row.q, d) * value(row.k, j * p.head_dim + d);
    score *= T(p.effective_scale());
    if (p.softcap != 0) score = T(p.softcap) * std::tanh(score / T(p.softcap));
    if (p.alibi) score -= T(row.slope) * T(std::abs(row.diagonal - j));
    maximum = std::max(maximum, score);
  }
  T sum = p.sinks ? std::exp(T(row.sink) - maximum) : T(0);
  std::vector<T> o(size_t(p.v_dim()), T(0));
  for (int64_t j = 0; j < row.keys; ++j) {
    const T weight = std::exp(scores[size_t(j)] - maximum);
    sum += weight;
    for (int64_t d = 0; d < p.v_dim(); ++d) o[size_t(d)] += rounded(weight) * value(row.v, j * p.v_dim() + d);
  }
  std::vector<double> result;
  for (const T x : o) result.push_back(double(rounded(sum == 0 ? T(0) : x / sum)));
  return result;
}

}  // namespace

NormalValues::NormalValues(support::Dtype dtype, uint64_t seed)
    : quantiles_(normal_quantiles(dtype)), seed_(seed) {}

void NormalValues::fill(uint64_t tensor, uint64_t begin, uint16_t* values, size_t count) const {
  const uint64_t key = mix(mix(seed_) + tensor);
  uint64_t bits = begin % 4 != 0 ? mix(key + begin / 4) : 0;
  for (uint64_t i = begin; i < begin + count; ++i) {
    if (i % 4 == 0) bits = mix(key + i / 4);
    *values++ = quantiles_[bits >> (i % 4 * 16) & 0xFFFF];
  }
}

BenchData::BenchData(const BenchDevice& bench, const BenchProblem& given, const fa4_forward_params& params,
                     uint64_t l2_bytes)
    : gpu_(bench.gpu),
      problem_(given.problem),
      arrays_(given.arrays),
      seed_(bench.request.problem.seed),
      values_(problem_.dtype, seed_),
      q_rows_(rows_of(problem_, problem_.q_lengths, problem_.seq_q)),
      kv_rows_(rows_of(problem_, problem_.kv_lengths, problem_.seq_kv)),
      first_query_(first_rows(problem_, problem_.q_lengths, problem_.seq_q)),
      first_key_(first_rows(problem_, problem_.kv_lengths, problem_.seq_kv)),
      queries_before_(1, 0) {
  const support::Problem& p = problem_;
  for (int64_t b = 0; b < p.batch; ++b) queries_before_.push_back(queries_before_.back() + p.length_q(b));
  const int64_t q_elements = q_rows_ * p.q_heads * p.head_dim, o_elements = q_rows_ * p.q_heads * p.v_dim();
  const int64_t k_elements = kv_rows_ * p.kv_heads * p.head_dim,
                v_elements = kv_rows_ * p.kv_heads * p.v_dim();
  const uint64_t o = tensor_bytes(o_elements);
  const uint64_t lse_bytes = bench.request.lse ? uint64_t(q_rows_ * p.q_heads) * sizeof(float) : 0;
  const uint64_t one =
      std::max<uint64_t>(1, tensor_bytes(q_elements + k_elements + v_elements) + o + lse_bytes);
  copies_wanted_ = int(std::clamp<uint64_t>((l2_bytes + one - 1) / one + 1, 2, kMostCopies));
  size_t free = 0, total = 0;
  gpu_.check(gpu_.driver().cuMemGetInfo(&free, &total), "cuMemGetInfo");
  const uint64_t fitting = free / 10 * 9 / one;
  if (fitting == 0)
    throw Refusal(
        fmt::format("{}: Q, K, V and O take {}, of {} that are free on {}; a smaller problem is accepted",
                    support::describe(p), bytes_text(one), bytes_text(free), gpu_.properties().name));

  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<uint16_t> host(size_t(std::max({q_elements, k_elements, v_elements})));
  const auto filled = [&](uint64_t tensor, int64_t elements) {
    std::vector<std::thread> workers;
    const uint64_t share = (uint64_t(elements) / threads + 4) / 4 * 4;
    for (uint64_t begin = 0; begin < uint64_t(elements); begin += share)
      workers.emplace_back([&, begin] {
        values_.fill(tensor, begin, host.data() + begin, size_t(std::min(share, uint64_t(elements) - begin)));
      });
    for (std::thread& worker : workers) worker.join();
    auto buffer = std::make_unique<support::DeviceBuffer>(gpu_, tensor_bytes(elements));
    gpu_.upload(buffer->address(), host.data(), tensor_bytes(elements));
    return buffer;
  };
  const auto poisoned = [&](uint64_t bytes) {
    auto buffer = std::make_unique<support::DeviceBuffer>(gpu_, bytes);
    if (bytes) gpu_.check(gpu_.driver().cuMemsetD8(buffer->address(), 0xFF, bytes), "cuMemsetD8");  // NaN
    return buffer;
  };
  for (uint64_t copy = 0; copy < std::min<uint64_t>(uint64_t(copies_wanted_), fitting); ++copy)
    copies_.push_back({filled(kTensorsPerCopy * copy, q_elements),
                       filled(kTensorsPerCopy * copy + 1, k_elements),
                       filled(kTensorsPerCopy * copy + 2, v_elements), poisoned(o), poisoned(lse_bytes)});

  const auto array = [&](uint64_t fa4_forward_params::*field, const auto& values) {
    if (values.empty()) return;
    const uint64_t bytes = values.size() * sizeof values[0];
    auto buffer = std::make_unique<support::DeviceBuffer>(gpu_, bytes);
    gpu_.upload(buffer->address(), values.data(), bytes);
    arrays_on_device_.push_back({field, std::move(buffer)});
  };
  const auto numbers = [](const std::vector<int64_t>& list) {
    return std::vector<int32_t>(list.begin(), list.end());
  };
  if (!p.q_lengths.packed.empty())
    array(&fa4_forward_params::cu_seqlens_q, numbers(p.q_lengths.cu_seqlens()));
  if (!p.kv_lengths.packed.empty())
    array(&fa4_forward_params::cu_seqlens_k, numbers(p.kv_lengths.cu_seqlens()));
  array(&fa4_forward_params::seqused_q, numbers(p.q_lengths.used));
  array(&fa4_forward_params::seqused_k, numbers(p.kv_lengths.used));
  array(&fa4_forward_params::sinks, arrays_.sinks);
  array(&fa4_forward_params::alibi_slopes, arrays_.slopes);
  // Calls follow each other on one stream, and each leaves it zeroed.
  workspace_ = std::make_unique<support::DeviceBuffer>(gpu_, bench.workspace_bytes(params));
  if (workspace_->bytes() != 0)
    gpu_.check(gpu_.driver().cuMemsetD8(workspace_->address(), 0, workspace_->bytes()), "cuMemsetD8");
  gpu_.synchronize();
}

uint64_t BenchData::bytes() const {
  const Copy& one = copies_.front();
  return copies_.size() *
         (one.q->bytes() + one.k->bytes() + one.v->bytes() + one.o->bytes() + one.lse->bytes());
}

void BenchData::point(fa4_forward_params& params, int copy) const {
  const Copy& c = copies_[size_t(copy)];
  params.q.data = c.q->address();
  params.k.data = c.k->address();
  params.v.data = c.v->address();
  params.o.data = c.o->address();
  params.lse = c.lse->address();
  const bool packed = !problem_.q_lengths.packed.empty();
  params.lse_head_stride = packed ? q_rows_ : problem_.seq_q;
  params.lse_batch_stride = packed ? 0 : problem_.q_heads * problem_.seq_q;
  for (const Array& array : arrays_on_device_) params.*array.field = array.buffer->address();
  params.workspace = reinterpret_cast<void*>(workspace_->address());
  params.workspace_size = workspace_->bytes();
}

BenchData::RowCheck BenchData::check_rows(int rows) const {
  RowCheck check;
  const int64_t all = queries_before_.back() * problem_.q_heads;
  if (all == 0) return check;
  for (uint64_t copy = 0; copy < copies_.size(); ++copy) {
    for (int n = 0; n < rows; ++n) {
      const int64_t row = n == 0   ? 0
                          : n == 1 ? all - 1
                                   : int64_t(mix(mix(seed_ + copy) + uint64_t(n)) % uint64_t(all));
      const int64_t head = row % problem_.q_heads, query = row / problem_.q_heads;
      const int64_t entry = std::ranges::upper_bound(queries_before_, query) - queries_before_.begin() - 1;
      const double error =
          row_error(copy, entry, query - queries_before_[size_t(entry)], head, check.allowed);
      check.max_error = std::max(check.max_error, error);
      ++check.rows;
    }
  }
  return check;
}

double BenchData::row_error(uint64_t copy, int64_t entry, int64_t position, int64_t head,
                            double& allowed) const {
  const support::Problem& p = problem_;
  const support::KeyInterval seen = p.visible(entry, position);
  Row row{p, {}, {}, {}, seen.count(), position + p.off(entry) - seen.begin, 0, 0};
  if (p.alibi) row.slope = arrays_.slopes[size_t((p.slopes_by_entry ? entry * p.q_heads : 0) + head)];
  if (p.sinks) row.sink = arrays_.sinks[size_t(head)];
  const auto fill = [&](uint64_t tensor, int64_t from_row, int64_t dim, std::vector<uint16_t>& to) {
    const size_t at = to.size();
    to.resize(at + size_t(dim));
    values_.fill(kTensorsPerCopy * copy + tensor, uint64_t(from_row * dim), to.data() + at, size_t(dim));
  };
  const int64_t query_row = (first_query_[size_t(entry)] + position) * p.q_heads + head;
  fill(0, query_row, p.head_dim, row.q);
  for (int64_t key = seen.begin; key < seen.end; ++key) {
    const int64_t key_row = (first_key_[size_t(entry)] + key) * p.kv_heads + head / p.ratio();
    fill(1, key_row, p.head_dim, row.k);
    fill(2, key_row, p.v_dim(), row.v);
  }
  std::vector<uint16_t> o(size_t(p.v_dim()));
  gpu_.download(o.data(), copies_[copy].o->address() + tensor_bytes(query_row * p.v_dim()),
                tensor_bytes(p.v_dim()));

  // As a problem of one row.
  support::Problem one;
  one.dtype = p.dtype;
  one.head_dim = p.head_dim;
  one.head_dim_v = p.v_dim();
  const support::Reference expected{attend<double>(row), {0}, {0}},
      same_precision{attend<float>(row), {0}, {0}};
  allowed = std::max(allowed, support::tolerance_of(one, expected, same_precision).o);
  return support::compare_o(one, o, expected).max_error;
}

}  // namespace fa4::cli
