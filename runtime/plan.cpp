// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a launch.
#include "plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
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

// Boxes of `box_rows` rows, of which `packed_heads` heads take turns, and of all `tile_pieces` of a tile or of one. General: the map of a
// general kernel.
void describe(const fa4_forward_params& problem, const fa4_tensor& tensor, const Side& side, bool general, int64_t heads, int64_t dim,
              int64_t packed_heads, int box_rows, int tile_pieces, TensorMapDescription& map) {
  // A map has no empty dimension. Without keys it describes one row that the kernel never loads, at an address that is
  // some tensor's: a copy from a map at null faults on Hopper, though all of its box lies outside.
  const bool empty = side.rows == 0;
  const bool apart = general || are_pieces_apart(dim);
  const int64_t pieces = apart ? 1 : dim / kPieceColumns;
  const auto dimension = [&](int index, int64_t extent, uint64_t stride) {
    map.extents[index] = static_cast<uint64_t>(extent);
    map.strides[index - 1] = stride;
  };
  map.type = problem.dtype == FA4_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  map.address = empty ? problem.q.data : tensor.data;
  map.extents[0] = static_cast<uint64_t>(dim / pieces);
  dimension(1, heads, stride_bytes(heads, tensor.head_stride));
  if (general) {  // GeneralParams says why
    constexpr uint64_t wrap = uint64_t{1} << 34;
    static_assert(wrap * kMapRows == 0);
    const MapPlaces places = map_places(tensor, side);
    const uint64_t row_bytes = side.rows > 1 ? stride_bytes(side.rows, tensor.seq_stride) : 0;
    dimension(2, kMapRows, row_bytes);
    dimension(3, int64_t{kMapRows} + 1, (row_bytes / wrap + 1) * wrap - row_bytes);
    dimension(4, places.count, stride_bytes(places.count, places.stride));
  } else {
    dimension(2, empty ? 1 : side.rows, stride_bytes(side.rows, tensor.seq_stride));
    dimension(3, pieces, kRowBytes);
    dimension(4, side.entries, stride_bytes(side.entries, tensor.batch_stride));
  }
  const uint32_t box[] = {kPieceColumns, static_cast<uint32_t>(packed_heads), static_cast<uint32_t>(box_rows / packed_heads),
                          static_cast<uint32_t>(apart ? 1 : tile_pieces), 1};
  std::copy(std::begin(box), std::end(box), map.box);
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

int32_t bound_of_band(int64_t keys) {
  return keys < 0 || keys > INT32_MAX ? INT32_MAX : static_cast<int32_t>(keys);
}

MapSteps steps_of(const fa4_tensor& tensor, const Side& side) {
  const MapPlaces places = map_places(tensor, side);
  return {static_cast<int32_t>(places.entry_step), static_cast<int32_t>(places.row_step)};
}

// What a general kernel reads besides; and, with a cap or ALiBi, other scales.
void plan_general(const fa4_forward_params& problem, const Side& q_rows, const Side& keys, AttentionParams& params) {
  GeneralParams& general = params.general;
  general.cu_seqlens_q = reinterpret_cast<const int32_t*>(problem.cu_seqlens_q);
  general.cu_seqlens_k = reinterpret_cast<const int32_t*>(problem.cu_seqlens_k);
  general.seqused_q = reinterpret_cast<const int32_t*>(problem.seqused_q);
  general.seqused_k = reinterpret_cast<const int32_t*>(problem.seqused_k);
  general.total_q = static_cast<int32_t>(q_rows.rows);
  general.total_k = static_cast<int32_t>(keys.rows);
  general.batch = static_cast<int32_t>(problem.batch);
  general.q = steps_of(problem.q, q_rows);
  general.k = steps_of(problem.k, keys);
  general.v = steps_of(problem.v, keys);
  general.o = steps_of(problem.o, q_rows);

  const Band band = band_of(problem);
  general.left = bound_of_band(band.left);
  general.right = bound_of_band(band.right);
  general.top_left = problem.diagonal_alignment == FA4_DIAGONAL_TOP_LEFT ? 1 : 0;

  const double scale = std::fabs(softmax_scale(problem));
  general.score = ScoreKind::plain;
  general.score_scale = 1;
  if (problem.softcap != 0) {
    general.score = ScoreKind::softcap;
    general.score_scale = static_cast<float>(scale / problem.softcap);
    params.scale = static_cast<float>(problem.softcap);
    params.scale_log2 = static_cast<float>(problem.softcap * std::numbers::log2e);
  }
  if (problem.alibi_slopes != 0) {
    general.score = ScoreKind::alibi;
    general.score_scale = static_cast<float>(scale * std::numbers::log2e);
    params.scale = static_cast<float>(std::numbers::ln2);
    params.scale_log2 = 1;
  }
  general.slopes = reinterpret_cast<const float*>(problem.alibi_slopes);
  general.slopes_entry_stride = problem.alibi_batch_stride;
  general.sinks = reinterpret_cast<const float*>(problem.sinks);

  general.task_counter = has_own_lengths(problem) ? static_cast<uint32_t*>(problem.workspace) : nullptr;
  const int64_t key_bytes = (problem.head_dim + head_dim_v(problem)) * kElementBytes;
  general.keys_in_l2 = static_cast<int32_t>(kL2Bytes / key_bytes);
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
  const bool general = config.general(), own_lengths = has_own_lengths(problem);
  const Side q_rows = q_side(problem), keys = k_side(problem);
  const int64_t all_groups = problem.batch * packing.head_groups;
  const int64_t tasks = packing.head_groups * packing.all_m_blocks;
  const int64_t ctas = problem.max_ctas != 0 ? std::min<int64_t>(problem.max_ctas, device.sm_count) : device.sm_count;
  const double scale = softmax_scale(problem);

  plan.kernel = &kernel;
  plan.grid = static_cast<uint32_t>(std::min(tasks, ctas));
  const int64_t packed = packing.packed_heads;
  const int64_t qk_dim = problem.head_dim, v_dim = head_dim_v(problem);
  describe(problem, problem.q, q_rows, general, problem.q_heads, qk_dim, packed, config.tile_rows, config.qk_pieces(), plan.q);
  describe(problem, problem.k, keys, general, problem.kv_heads, qk_dim, 1, config.block_keys, config.qk_pieces(), plan.k);
  describe(problem, problem.v, keys, general, problem.kv_heads, v_dim, 1, config.block_keys, config.v_pieces(), plan.v);
  describe(problem, problem.o, q_rows, general, problem.q_heads, v_dim, packed, config.tile_rows, config.v_pieces(), plan.o);

  AttentionParams& params = plan.params;
  params.lse = reinterpret_cast<float*>(problem.lse);
  params.lse_batch_stride = problem.cu_seqlens_q != 0 ? 0 : problem.lse_batch_stride;
  params.lse_head_stride = problem.lse_head_stride;
  params.qk_pieces_apart = are_pieces_apart(qk_dim) ? 1 : 0;
  params.v_pieces_apart = are_pieces_apart(v_dim) ? 1 : 0;
  params.seq_q = static_cast<int32_t>(q_rows.bound);
  params.seq_kv = static_cast<int32_t>(keys.bound);
  params.packed_heads_log2 = std::countr_zero(static_cast<uint64_t>(packing.packed_heads));
  params.groups_per_kv_head = make_divisor(static_cast<int32_t>(groups_per_kv_head));
  // Where the device alone knows the lengths, all that counts of the order is how many head groups there are.
  params.order = own_lengths
                     ? make_task_order(SchedulerKind::linear, 1, static_cast<int32_t>(packing.head_groups), 1, 1)
                     : make_task_order(scheduler_kind(problem, config.mask), static_cast<int32_t>(problem.batch),
                                       static_cast<int32_t>(packing.head_groups), static_cast<int32_t>(packing.m_blocks),
                                       static_cast<int32_t>(section_groups(problem, groups_per_kv_head, all_groups, plan.grid)));
  params.scale_log2 = static_cast<float>(std::fabs(scale) * std::numbers::log2e);
  params.scale = static_cast<float>(std::fabs(scale));
  params.negate_scores = scale < 0 ? 1 : 0;
  if (general) plan_general(problem, q_rows, keys, params);
  return FA4_OK;
}

}  // namespace fa4
