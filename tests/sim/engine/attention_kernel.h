// SPDX-License-Identifier: Apache-2.0
// The attention kernel itself on a bare simulated device: one entry cut out of the built PTX, changed as a
// test likes, and run on one small causal GQA problem that makes every ring of the kernel go round.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "asm/attention/tile.h"
#include "kernel.h"
#include "runtime/plan.h"
#include "support/half.h"
#include "tools/sim/core/tensor_map.h"

namespace fa4::sim::test {

inline constexpr char kAttentionEntry[] = "fa4_forward_f16_causal";

// The lines of the module with this entry alone.
inline std::vector<std::string> attention_lines(const std::string& ptx) {
  const std::string head = ".visible .entry ";
  const size_t first = ptx.find(head), begin = ptx.find(head + kAttentionEntry),
               next = ptx.find(head, begin + 1);
  if (begin == std::string::npos || next == std::string::npos)
    throw std::runtime_error("the PTX is not as this test expects");
  const std::string text = ptx.substr(0, first) + ptx.substr(begin, next - begin);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.find(".loc") == std::string::npos)
      lines.push_back(std::move(line));  // files are declared behind the entries
    at = end + 1;
  }
  return lines;
}

// 4 query heads on one KV head, 460 queries and 330 keys: tasks without any visible key, tasks of one to
// three KV blocks with tails, and query tiles that straddle two blocks at the diagonal, one after the other
// on the same CTA. Returns O.
inline std::vector<uint16_t> run_attention(const std::string& ptx, uint64_t budget = 1 << 20) {
  constexpr int64_t kQueries = 460, kKeys = 330, kHeads = 4;
  Kernel kernel(ptx, 1, 1, budget);
  Random random(11);
  const auto tensor = [&](size_t elements) {
    std::vector<uint16_t> v(elements);
    for (uint16_t& x : v) x = fa4::support::float_to_fp16(float(int(random.next() % 2001) - 1000) * 0x1p-8f);
    return kernel.upload(v);
  };
  const size_t q_elements = size_t(kQueries * kHeads * kHeadDim), kv_elements = size_t(kKeys * kHeadDim);
  const uint64_t q = tensor(q_elements), k = tensor(kv_elements), v = tensor(kv_elements),
                 o = kernel.buffer<uint16_t>(q_elements);
  fa4_forward_params problem{};
  problem.struct_size = sizeof problem;
  problem.version = FA4_VERSION;
  problem.causal = 1;
  problem.batch = 1;
  problem.seq_q = kQueries;
  problem.seq_kv = kKeys;
  problem.q_heads = kHeads;
  problem.kv_heads = 1;
  problem.head_dim = kHeadDim;
  problem.q = {q, kQueries * kHeads * kHeadDim, kHeads * kHeadDim, kHeadDim};
  problem.o = {o, kQueries * kHeads * kHeadDim, kHeads * kHeadDim, kHeadDim};
  problem.k = {k, kKeys * kHeadDim, kHeadDim, kHeadDim};
  problem.v = {v, kKeys * kHeadDim, kHeadDim, kHeadDim};
  Plan plan;
  Message message;
  if (plan_forward(problem, 1, plan, message) != FA4_OK) throw std::runtime_error(message.text());
  const auto encode = [](const TensorMapDescription& d) {
    alignas(64) CUtensorMap map;
    const cuuint32_t ones[5] = {1, 1, 1, 1, 1};
    cuuint64_t extents[5], strides[4];
    std::copy_n(d.extents, 5, extents);
    std::copy_n(d.strides, 4, strides);
    if (encode_tiled(&map, d.type, 5, reinterpret_cast<void*>(d.address), extents, strides, d.box, ones,
                     CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                     CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS) {
      throw std::runtime_error("a tensor map was refused");
    }
    return map;
  };
  plan.params.q = encode(plan.q);
  plan.params.k = encode(plan.k);
  plan.params.v = encode(plan.v);
  plan.params.o = encode(plan.o);
  kernel.run(kAttentionEntry, {{plan.grid, 1, 1}, {512, 1, 1}, kDynamicSharedBytes}, plan.params);
  return kernel.read<uint16_t>(o, q_elements);
}

}  // namespace fa4::sim::test
