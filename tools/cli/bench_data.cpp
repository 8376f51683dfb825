// SPDX-License-Identifier: Apache-2.0
// The data of `fa4 bench`.
#include "bench_data.h"

#include <algorithm>
#include <cmath>
#include <thread>

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

BenchData::BenchData(support::Gpu& gpu, const support::Problem& problem, uint64_t seed, bool lse,
                     uint64_t l2_bytes)
    : gpu_(gpu), problem_(problem), seed_(seed), values_(problem.dtype, seed) {
  const uint64_t q = tensor_bytes(problem.q_elements()), kv = tensor_bytes(problem.kv_elements());
  const uint64_t lse_bytes = lse ? uint64_t(problem.lse_elements()) * sizeof(float) : 0;
  const uint64_t one = std::max<uint64_t>(1, 2 * q + 2 * kv + lse_bytes);
  copies_wanted_ = int(std::clamp<uint64_t>((l2_bytes + one - 1) / one + 1, 2, kMostCopies));
  size_t free = 0, total = 0;
  gpu_.check(gpu_.driver().cuMemGetInfo(&free, &total), "cuMemGetInfo");
  const uint64_t fitting = free / 10 * 9 / one;
  if (fitting == 0)
    throw Refusal(
        fmt::format("{}: Q, K, V and O take {}, of {} that are free on {}; a smaller problem is accepted",
                    support::describe(problem), bytes_text(one), bytes_text(free), gpu.properties().name));

  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<uint16_t> host(size_t(std::max(problem.q_elements(), problem.kv_elements())));
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
    copies_.push_back({filled(kTensorsPerCopy * copy, problem.q_elements()),
                       filled(kTensorsPerCopy * copy + 1, problem.kv_elements()),
                       filled(kTensorsPerCopy * copy + 2, problem.kv_elements()), poisoned(q),
                       poisoned(lse_bytes)});
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
  params.lse_head_stride = problem_.seq_q;
  params.lse_batch_stride = problem_.q_heads * problem_.seq_q;
}

BenchData::RowCheck BenchData::check_rows(int rows) const {
  RowCheck check;
  const int64_t all = problem_.batch * problem_.seq_q * problem_.q_heads, dim = problem_.head_dim;
  if (all == 0) return check;
  for (uint64_t copy = 0; copy < copies_.size(); ++copy) {
    for (int n = 0; n < rows; ++n) {
      const int64_t row = n == 0   ? 0
                          : n == 1 ? all - 1
                                   : int64_t(mix(mix(seed_ + copy) + uint64_t(n)) % uint64_t(all));
      const int64_t head = row % problem_.q_heads, token = row / problem_.q_heads;
      const int64_t position = token % problem_.seq_q, entry = token / problem_.seq_q;
      // The row as a problem of its own: one query, and the keys that it sees.
      const support::Problem one{problem_.dtype, false, 1, 1, problem_.visible_keys(position), 1, 1,
                                 problem_.scale, dim};
      support::Inputs inputs;
      inputs.q.resize(size_t(dim));
      values_.fill(kTensorsPerCopy * copy, uint64_t(row * dim), inputs.q.data(), size_t(dim));
      for (auto [tensor, values] : {std::pair(uint64_t(1), &inputs.k), {uint64_t(2), &inputs.v}}) {
        values->resize(size_t(one.seq_kv * dim));
        for (int64_t key = 0; key < one.seq_kv; ++key) {
          const int64_t from = (entry * problem_.seq_kv + key) * problem_.kv_heads + head / problem_.ratio();
          values_.fill(kTensorsPerCopy * copy + tensor, uint64_t(from * dim), values->data() + key * dim,
                       size_t(dim));
        }
      }
      std::vector<uint16_t> o(static_cast<size_t>(dim));
      gpu_.download(o.data(), copies_[copy].o->address() + tensor_bytes(row * dim), tensor_bytes(dim));
      const support::Reference expected = support::reference_double(one, inputs);
      const support::Tolerance tolerance =
          support::tolerance_of(one, expected, support::reference_same_precision(one, inputs));
      check.max_error = std::max(check.max_error, support::compare_o(one, o, expected).max_error);
      check.allowed = std::max(check.allowed, tolerance.o);
      ++check.rows;
    }
  }
  return check;
}

}  // namespace fa4::cli
