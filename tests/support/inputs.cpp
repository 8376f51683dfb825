// SPDX-License-Identifier: Apache-2.0
// Seeded inputs; the formula stands in inputs.h.
#include "inputs.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

namespace fa4::support {
namespace {

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// " packed_q=[3 0 5]": at most the first few.
void describe_lengths(std::ostream& text, const char* side, const Lengths& lengths) {
  constexpr size_t kShown = 8;
  for (const auto& [name, rows] : {std::pair(" packed_", &lengths.packed), {" used_", &lengths.used}}) {
    if (rows->empty()) continue;
    text << name << side << "=[";
    for (size_t i = 0; i < std::min(rows->size(), kShown); ++i) text << (i ? " " : "") << (*rows)[i];
    text << (rows->size() > kShown ? " ...]" : "]");
  }
}

}  // namespace

uint16_t input_value(Dtype dtype, uint64_t seed, TensorId tensor, uint64_t index) {
  const int bits = dtype == Dtype::fp16 ? 10 : 7;
  const uint64_t field = (1ull << bits) - 1;
  const uint64_t key = mix(4 * seed + uint64_t(tensor));
  const uint64_t z = mix(key + (index + 1) * 0x9E3779B97F4A7C15ull);
  const int64_t sum = int64_t((z & field) + ((z >> 16) & field) + ((z >> 32) & field) + ((z >> 48) & field));
  const int64_t integer = sum - 2 * int64_t(field);
  return from_float(dtype, float(integer) / float(1 << (bits - 1)));
}

float sink_value(uint64_t seed, uint64_t head) {
  return -4.0f + float(mix(mix(4 * seed + 3) + (head + 1) * 0x9E3779B97F4A7C15ull) % 113) / 8.0f;
}

float slope_value(uint64_t seed, uint64_t index) {
  const uint64_t power = mix(mix(4 * seed + 3) - (index + 1) * 0x9E3779B97F4A7C15ull) % 9;
  return power == 0 ? 0.0f : std::ldexp(1.0f, -int(power));
}

std::vector<uint16_t> make_tensor(Dtype dtype, uint64_t seed, TensorId tensor, int64_t elements) {
  std::vector<uint16_t> values(static_cast<size_t>(elements));
  for (size_t i = 0; i < values.size(); ++i) values[i] = input_value(dtype, seed, tensor, i);
  return values;
}

Inputs make_inputs(const Problem& problem, uint64_t seed) {
  Inputs inputs{make_tensor(problem.dtype, seed, TensorId::q, problem.q_elements()),
                make_tensor(problem.dtype, seed, TensorId::k, problem.k_elements()),
                make_tensor(problem.dtype, seed, TensorId::v, problem.v_elements())};
  if (problem.sinks)
    for (int64_t h = 0; h < problem.q_heads; ++h) inputs.sinks.push_back(sink_value(seed, uint64_t(h)));
  if (problem.alibi)
    for (int64_t i = 0; i < (problem.slopes_by_entry ? problem.batch : 1) * problem.q_heads; ++i)
      inputs.slopes.push_back(slope_value(seed, uint64_t(i)));
  return inputs;
}

Inputs make_exact_inputs(const Problem& problem, uint64_t seed, const std::function<float(int64_t)>& query,
                         const std::function<float(int64_t)>& key) {
  Inputs inputs = make_inputs(problem, seed);
  const auto fill = [&](std::vector<uint16_t>& values, int64_t heads, int64_t seq,
                        const std::function<float(int64_t)>& first_column) {
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t row = int64_t(i) / problem.head_dim;
      const float value = int64_t(i) % problem.head_dim == 0
                              ? first_column(row / heads % seq)
                              : std::clamp(std::round(to_float(problem.dtype, values[i])), -2.0f, 2.0f);
      values[i] = from_float(problem.dtype, value);
    }
  };
  fill(inputs.q, problem.q_heads, problem.seq_q, query);
  fill(inputs.k, problem.kv_heads, problem.seq_kv, key);
  return inputs;
}

std::string describe(const Problem& problem) {
  std::ostringstream text;
  text << name_of(problem.dtype) << (problem.causal ? " causal" : " full") << " B=" << problem.batch
       << " Sq=" << problem.seq_q << " Skv=" << problem.seq_kv << " Hq=" << problem.q_heads
       << " Hkv=" << problem.kv_heads << " D=" << problem.head_dim;
  if (problem.v_dim() != problem.head_dim) text << " Dv=" << problem.head_dim_v;
  if (problem.scale != 0) text << " scale=" << problem.scale;
  describe_lengths(text, "q", problem.q_lengths);
  describe_lengths(text, "kv", problem.kv_lengths);
  if (problem.window) text << " window=" << problem.window_left << "," << problem.window_right;
  if (problem.top_left) text << " top-left";
  if (problem.softcap != 0) text << " softcap=" << problem.softcap;
  if (problem.sinks) text << " sinks";
  if (problem.alibi) text << (problem.slopes_by_entry ? " ALiBi by entry" : " ALiBi");
  return text.str();
}

}  // namespace fa4::support
