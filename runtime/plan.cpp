// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a launch.
#include "plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "problem.h"

namespace fa4 {
namespace {

constexpr uint64_t kAnyStrideBytes = 16;         // for a dimension of extent 1, whose stride moves nothing
constexpr int64_t kL2Bytes = int64_t{50} << 20;  // what LPT lets the keys and values in flight occupy

uint64_t stride_bytes(int64_t extent, int64_t stride_elements) {
  return extent > 1 ? static_cast<uint64_t>(stride_elements * kElementBytes) : kAnyStrideBytes;
}

// Whether each piece of 64 columns is a copy of its own, from a map that ends with the head dimension.
bool are_pieces_apart(int64_t dim) {
  return dim % kPieceColumns != 0;
}

// Boxes of `box_rows` rows, of which `packed_heads` heads take turns.
TensorMapDescription describe(const fa4_forward_params& problem, const fa4_tensor& tensor, int64_t seq,
                              int64_t heads, int64_t dim, int64_t packed_heads, int box_rows) {
  // A map has no empty dimension. Without keys it describes one row that the kernel never loads, at an address that is
  // some tensor's: a copy from a map at null faults on Hopper, though all of its box lies outside.
  const bool empty = seq == 0;
  const int64_t rows = empty ? 1 : seq;
  const int64_t pieces = are_pieces_apart(dim) ? 1 : dim / kPieceColumns;  // of a box
  return {
      .type = problem.dtype == FA4_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
      .address = empty ? problem.q.data : tensor.data,
      .extents = {static_cast<uint64_t>(dim / pieces), static_cast<uint64_t>(heads), static_cast<uint64_t>(rows),
                  static_cast<uint64_t>(pieces), static_cast<uint64_t>(problem.batch)},
      .strides = {stride_bytes(heads, tensor.head_stride), stride_bytes(rows, tensor.seq_stride), kRowBytes,
                  stride_bytes(problem.batch, tensor.batch_stride)},
      .box = {kPieceColumns, static_cast<uint32_t>(packed_heads), static_cast<uint32_t>(box_rows / packed_heads),
              static_cast<uint32_t>(pieces), 1}};
}

// How many head groups work at a time under LPT: so many that their keys and values stay in the L2 cache, and whole KV
// heads. Waves of CTAs balance best where sections begin with a wave, so it is a multiple of the grid, or the largest whole
// fraction of it that fits. Where that would leave a short last section, which costs more, it is a power of two of KV heads.
int64_t section_groups(const fa4_forward_params& problem, int64_t groups_per_kv_head, int64_t all_groups, int64_t grid) {
  const int64_t kv_head_bytes = problem.seq_kv * (problem.head_dim + head_dim_v(problem)) * kElementBytes;
  if (kv_head_bytes == 0) return all_groups;
  const int64_t fitting_heads = std::max<int64_t>(kL2Bytes / kv_head_bytes, 1);
  const int64_t fitting = fitting_heads * groups_per_kv_head;
  const int64_t waves = fitting >= grid ? fitting / grid * grid : grid / ((grid + fitting - 1) / fitting);
  const int64_t aligned = std::max<int64_t>(waves / groups_per_kv_head, 1) * groups_per_kv_head;
  const int64_t rest = all_groups % aligned;
  if (rest == 0 || 2 * rest >= aligned || all_groups >= 8 * aligned) return std::min(aligned, all_groups);
  return std::min(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(fitting_heads))) * groups_per_kv_head, all_groups);
}

SchedulerKind scheduler_kind(const fa4_forward_params& problem, MaskKind mask) {
  if (problem.scheduler == FA4_SCHEDULER_AUTO)
    return mask == MaskKind::full ? SchedulerKind::linear : SchedulerKind::lpt;
  return problem.scheduler == FA4_SCHEDULER_LPT ? SchedulerKind::lpt : SchedulerKind::linear;
}

}  // namespace

fa4_status plan_forward(const fa4_forward_params& problem, const DeviceTraits& device, Plan& plan, Message& message) {
  CheckedProblem checked;
  if (fa4_status status = check_problem(problem, *device.kernels, checked, message); status != FA4_OK) return status;
  plan.grid = 0;
  if (is_empty(problem)) return FA4_OK;

  const Kernel& kernel = *checked.kernel;
  const Config& config = kernel.config;
  const Packing& packing = checked.packing;
  const int64_t groups_per_kv_head = problem.q_heads / problem.kv_heads / packing.packed_heads;
  const int64_t all_groups = problem.batch * packing.head_groups;
  const int64_t tasks = all_groups * packing.m_blocks;
  const int64_t ctas = problem.max_ctas != 0 ? std::min<int64_t>(problem.max_ctas, device.sm_count) : device.sm_count;
  const double scale = softmax_scale(problem);

  plan.kernel = &kernel;
  plan.grid = static_cast<uint32_t>(std::min(tasks, ctas));
  const int64_t packed = packing.packed_heads;
  const int64_t qk_dim = problem.head_dim, v_dim = head_dim_v(problem);
  plan.q = describe(problem, problem.q, problem.seq_q, problem.q_heads, qk_dim, packed, config.tile_rows);
  plan.k = describe(problem, problem.k, problem.seq_kv, problem.kv_heads, qk_dim, 1, config.block_keys);
  plan.v = describe(problem, problem.v, problem.seq_kv, problem.kv_heads, v_dim, 1, config.block_keys);
  plan.o = describe(problem, problem.o, problem.seq_q, problem.q_heads, v_dim, packed, config.tile_rows);

  AttentionParams& params = plan.params;
  params.lse = reinterpret_cast<float*>(problem.lse);
  params.lse_batch_stride = problem.lse_batch_stride;
  params.lse_head_stride = problem.lse_head_stride;
  params.qk_pieces_apart = are_pieces_apart(qk_dim) ? 1 : 0;
  params.v_pieces_apart = are_pieces_apart(v_dim) ? 1 : 0;
  params.seq_q = static_cast<int32_t>(problem.seq_q);
  params.seq_kv = static_cast<int32_t>(problem.seq_kv);
  params.packed_heads_log2 = std::countr_zero(static_cast<uint64_t>(packing.packed_heads));
  params.groups_per_kv_head = make_divisor(static_cast<int32_t>(groups_per_kv_head));
  params.order = make_task_order(
      scheduler_kind(problem, config.mask), static_cast<int32_t>(problem.batch), static_cast<int32_t>(packing.head_groups),
      static_cast<int32_t>(packing.m_blocks),
      static_cast<int32_t>(section_groups(problem, groups_per_kv_head, all_groups, plan.grid)));
  params.scale_log2 = static_cast<float>(std::fabs(scale) * std::numbers::log2e);
  params.scale = static_cast<float>(std::fabs(scale));
  params.negate_scores = scale < 0 ? 1 : 0;
  return FA4_OK;
}

}  // namespace fa4
