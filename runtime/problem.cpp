// SPDX-License-Identifier: Apache-2.0
// The checks of a problem, in the order of the struct: version, choices, extents, tensors, LSE, scale,
// launch.
#include "problem.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numbers>

namespace fa4 {
namespace {

__extension__ typedef unsigned __int128 Wide;  // products of an extent and a stride need up to 71 bits
using ll = long long;
using ull = unsigned long long;

constexpr int64_t kStrideElements = 8;                          // 16 bytes, what a tensor map resolves
constexpr int64_t kMaxStrideElements = int64_t{1} << (40 - 1);  // exclusive: 2^40 bytes

struct Dimension {
  const char* stride_name;
  int64_t extent;
  int64_t stride;  // elements
};

struct Extent {
  const char* name;
  int64_t value, least, most;
};

fa4_status check_header(const fa4_forward_params& params, Message& message) {
  if (params.struct_size != sizeof params || params.version != FA4_VERSION) {
    return message.fail(
        FA4_ERROR_VERSION,
        "fa4_forward_params has struct_size %u and version %u; this library takes struct_size %zu and "
        "version %u",
        params.struct_size, params.version, sizeof params, FA4_VERSION);
  }
  if (params.dtype != FA4_FP16 && params.dtype != FA4_BF16) {
    return message.fail(FA4_ERROR_UNSUPPORTED, "dtype is %d; FA4_FP16 (%d) and FA4_BF16 (%d) are supported",
                        params.dtype, FA4_FP16, FA4_BF16);
  }
  if (params.causal != 0 && params.causal != 1) {
    return message.fail(FA4_ERROR_INVALID_ARGUMENT, "causal is %d; 0 and 1 are accepted", params.causal);
  }
  if (params.scheduler < FA4_SCHEDULER_AUTO || params.scheduler > FA4_SCHEDULER_LPT) {
    return message.fail(
        FA4_ERROR_INVALID_ARGUMENT,
        "scheduler is %d; FA4_SCHEDULER_AUTO (%d), FA4_SCHEDULER_LINEAR (%d) and FA4_SCHEDULER_LPT (%d) "
        "are accepted",
        params.scheduler, FA4_SCHEDULER_AUTO, FA4_SCHEDULER_LINEAR, FA4_SCHEDULER_LPT);
  }
  if (params.exp2 < FA4_EXP2_AUTO || params.exp2 > FA4_EXP2_POLYNOMIAL) {
    return message.fail(FA4_ERROR_INVALID_ARGUMENT,
                        "exp2 is %d; FA4_EXP2_AUTO (%d), FA4_EXP2_MUFU (%d) and FA4_EXP2_POLYNOMIAL (%d) are accepted",
                        params.exp2, FA4_EXP2_AUTO, FA4_EXP2_MUFU, FA4_EXP2_POLYNOMIAL);
  }
  if (params.reserved1 != 0) {
    return message.fail(FA4_ERROR_INVALID_ARGUMENT, "reserved1 is %d; it must be 0", params.reserved1);
  }
  for (int i = 0; i < 4; ++i) {
    if (params.reserved2[i] != 0) {
      return message.fail(FA4_ERROR_INVALID_ARGUMENT, "reserved2[%d] is %llu; it must be 0", i,
                          static_cast<ull>(params.reserved2[i]));
    }
  }
  return FA4_OK;
}

int64_t packed_heads_of(const fa4_forward_params& params, const Config& config) {
  const int64_t ratio = params.q_heads / params.kv_heads;
  return std::min(ratio & -ratio, int64_t{config.tile_rows});  // their gcd: tile_rows is a power of two
}

fa4_status refuse_head_dim(int64_t head_dim, const KernelList& kernels, Message& message) {
  message.fail(FA4_ERROR_UNSUPPORTED, "head_dim is %lld; ", static_cast<ll>(head_dim));
  const auto first = [&](const Kernel& kernel) { return kernels.first_of_head_dim(kernel); };
  const auto dims = std::count_if(kernels.begin(), kernels.end(), first);
  auto left = dims;
  for (const Kernel& kernel : kernels) {
    if (!first(kernel)) continue;
    --left;
    message.append("%d%s", kernel.config.qk_dim, left > 1 ? ", " : left == 1 ? " and " : "");
  }
  message.append(dims == 1 ? " is supported" : " are supported");
  return head_dim < 1 ? FA4_ERROR_INVALID_ARGUMENT : FA4_ERROR_UNSUPPORTED;
}

fa4_status check_extents(const fa4_forward_params& params, const KernelList& kernels, CheckedProblem& checked,
                         Message& message) {
  const Extent extents[] = {{"batch", params.batch, 0, kMaxBatch},
                            {"seq_q", params.seq_q, 0, kMaxSequence},
                            {"seq_kv", params.seq_kv, 0, kMaxSequence},
                            {"q_heads", params.q_heads, 1, kMaxHeads},
                            {"kv_heads", params.kv_heads, 1, kMaxHeads}};
  for (const Extent& extent : extents) {
    if (extent.value >= extent.least && extent.value <= extent.most) continue;
    return message.fail(extent.value < extent.least ? FA4_ERROR_INVALID_ARGUMENT : FA4_ERROR_UNSUPPORTED,
                        "%s is %lld; %lld to %lld are accepted", extent.name, static_cast<ll>(extent.value),
                        static_cast<ll>(extent.least), static_cast<ll>(extent.most));
  }
  if (params.q_heads % params.kv_heads != 0) {
    return message.fail(FA4_ERROR_INVALID_ARGUMENT,
                        "q_heads is %lld and kv_heads %lld; q_heads must be a multiple of "
                        "kv_heads",
                        static_cast<ll>(params.q_heads), static_cast<ll>(params.kv_heads));
  }
  checked.kernel = kernel_for(params, kernels);
  if (checked.kernel == nullptr) return refuse_head_dim(params.head_dim, kernels, message);
  checked.packing = pack_heads(params, checked.kernel->config);
  const Packing& packing = checked.packing;
  if (static_cast<Wide>(params.batch) * static_cast<Wide>(packing.head_groups) *
          static_cast<Wide>(packing.m_blocks) >
      static_cast<Wide>(kMaxTasks)) {
    return message.fail(
        FA4_ERROR_UNSUPPORTED,
        "batch %lld x %lld head groups x %lld query blocks are too many tasks; their product may be at "
        "most %lld",
        static_cast<ll>(params.batch), static_cast<ll>(packing.head_groups),
        static_cast<ll>(packing.m_blocks), static_cast<ll>(kMaxTasks));
  }
  return FA4_OK;
}

// Elements from the first to the last of a view whose innermost `inner` elements are contiguous.
Wide span(const Dimension* dimensions, int count, int64_t inner) {
  Wide elements = static_cast<Wide>(inner);
  for (int i = 0; i < count; ++i) {
    if (dimensions[i].extent > 1) {
      elements += static_cast<Wide>(dimensions[i].extent - 1) * static_cast<Wide>(dimensions[i].stride);
    }
  }
  return elements;
}

fa4_status check_reach(const char* name, const char* data_field, uint64_t data, Wide elements,
                       int64_t element_bytes, Message& message) {
  const Wide room = (static_cast<Wide>(1) << 64) - data;
  if (elements * static_cast<Wide>(element_bytes) <= room) return FA4_OK;
  return message.fail(
      FA4_ERROR_INVALID_ARGUMENT,
      "%s is 0x%llx, and the strides put the last element of %s beyond the 64-bit address space; every "
      "element must lie within it",
      data_field, static_cast<ull>(data), name);
}

// Sufficient for a view that never writes an address twice: taken from the smallest stride to the largest,
// each stride steps over all that the dimensions before it span. (Interleavings that happen not to collide
// are refused as well.)
fa4_status check_disjoint(const char* name, Dimension* dimensions, int count, int64_t inner,
                          Message& message) {
  std::sort(dimensions, dimensions + count,
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  for (int i = 0; i < count; ++i) {
    if (dimensions[i].extent <= 1) continue;
    const Wide inside = span(dimensions, i, inner);
    if (static_cast<Wide>(dimensions[i].stride) >= inside) continue;
    return message.fail(
        FA4_ERROR_INVALID_ARGUMENT,
        "%s is %lld elements, but what is nested inside spans %llu; %s is written, so it must be at least "
        "that, for elements that do not overlap",
        dimensions[i].stride_name, static_cast<ll>(dimensions[i].stride), static_cast<ull>(inside), name);
  }
  return FA4_OK;
}

struct TensorNames {
  const char *tensor, *data, *batch_stride, *seq_stride, *head_stride;
};
#define FA4_TENSOR_NAMES(t) \
  { #t, #t ".data", #t ".batch_stride", #t ".seq_stride", #t ".head_stride" }
constexpr TensorNames kQ = FA4_TENSOR_NAMES(q), kK = FA4_TENSOR_NAMES(k), kV = FA4_TENSOR_NAMES(v),
                      kO = FA4_TENSOR_NAMES(o);
#undef FA4_TENSOR_NAMES

fa4_status check_tensor(const TensorNames& names, const fa4_tensor& tensor, int64_t batch, int64_t seq,
                        int64_t heads, int64_t head_dim, bool written, Message& message) {
  Dimension dimensions[] = {{names.batch_stride, batch, tensor.batch_stride},
                            {names.seq_stride, seq, tensor.seq_stride},
                            {names.head_stride, heads, tensor.head_stride}};
  const bool has_elements = batch > 0 && seq > 0;
  if (has_elements && tensor.data == 0) {
    return message.fail(FA4_ERROR_INVALID_ARGUMENT,
                        "%s is null; a device address is needed for %lld x %lld x %lld x %lld elements",
                        names.data, static_cast<ll>(batch), static_cast<ll>(seq), static_cast<ll>(heads),
                        static_cast<ll>(head_dim));
  }
  if (tensor.data % 16 != 0) {
    return message.fail(FA4_ERROR_INVALID_ARGUMENT, "%s is 0x%llx; a multiple of 16 bytes is needed",
                        names.data, static_cast<ull>(tensor.data));
  }
  for (const Dimension& dimension : dimensions) {
    if (dimension.extent <= 1) continue;  // frameworks put anything there
    if (dimension.stride >= 0 && dimension.stride < kMaxStrideElements &&
        dimension.stride % kStrideElements == 0) {
      continue;
    }
    return message.fail(FA4_ERROR_INVALID_ARGUMENT,
                        "%s is %lld elements; a multiple of %lld (16 bytes) from 0 to %lld is needed",
                        dimension.stride_name, static_cast<ll>(dimension.stride),
                        static_cast<ll>(kStrideElements),
                        static_cast<ll>(kMaxStrideElements - kStrideElements));
  }
  if (!has_elements) return FA4_OK;
  if (fa4_status status = check_reach(names.tensor, names.data, tensor.data, span(dimensions, 3, head_dim),
                                      kElementBytes, message);
      status != FA4_OK) {
    return status;
  }
  return written ? check_disjoint(names.tensor, dimensions, 3, head_dim, message) : FA4_OK;
}

fa4_status check_lse(const fa4_forward_params& params, Message& message) {
  if (params.lse == 0) return FA4_OK;
  if (params.lse % 4 != 0) {
    return message.fail(FA4_ERROR_INVALID_ARGUMENT, "lse is 0x%llx; a multiple of 4 bytes is needed",
                        static_cast<ull>(params.lse));
  }
  Dimension dimensions[] = {{"lse_batch_stride", params.batch, params.lse_batch_stride},
                            {"lse_head_stride", params.q_heads, params.lse_head_stride}};
  for (const Dimension& dimension : dimensions) {
    if (dimension.extent <= 1 || dimension.stride >= 0) continue;
    return message.fail(FA4_ERROR_INVALID_ARGUMENT, "%s is %lld elements; 0 or more is needed",
                        dimension.stride_name, static_cast<ll>(dimension.stride));
  }
  if (is_empty(params)) return FA4_OK;
  if (fa4_status status =
          check_reach("lse", "lse", params.lse, span(dimensions, 2, params.seq_q), sizeof(float), message);
      status != FA4_OK) {
    return status;
  }
  return check_disjoint("lse", dimensions, 2, params.seq_q, message);
}

fa4_status check_scale(const fa4_forward_params& params, Message& message) {
  // Both |scale| and |scale| * log2(e) must be normal floats: the kernel flushes subnormal ones.
  constexpr double least = FLT_MIN;
  constexpr double most = FLT_MAX / std::numbers::log2e;
  const double magnitude = std::fabs(softmax_scale(params));
  if (magnitude >= least && magnitude <= most) return FA4_OK;  // false for NaN
  return message.fail(FA4_ERROR_INVALID_ARGUMENT,
                      "softmax_scale is %g; 0 (the default) or a magnitude from %.9g to %.9g is accepted",
                      params.softmax_scale, least, most);
}

}  // namespace

const KernelList* with_exp2(const fa4_forward_params& params, const KernelList& kernels) {
  if (params.exp2 == FA4_EXP2_AUTO) return &kernels;
  const Exp2 wanted = params.exp2 == FA4_EXP2_POLYNOMIAL ? Exp2::polynomial : Exp2::mufu;
  return kernels.exp2 == wanted ? &kernels : kernels.other_exp2;
}

const Kernel* kernel_for(const fa4_forward_params& params, const KernelList& kernels) {
  // Heads that share a KV head may ride together: how many of them, the kernels' tiles say alike.
  const int64_t packed_heads = packed_heads_of(params, kernels.first->config);
  return kernels.find(params.dtype == FA4_BF16 ? ElementType::bf16 : ElementType::f16,
                      params.causal != 0 ? MaskKind::causal : MaskKind::full, params.head_dim, params.head_dim,
                      params.seq_q * packed_heads);
}

Packing pack_heads(const fa4_forward_params& params, const Config& config) {
  Packing packing;
  packing.packed_heads = packed_heads_of(params, config);
  packing.head_groups = params.q_heads / packing.packed_heads;
  const int64_t block_positions = config.block_rows() / packing.packed_heads;
  packing.m_blocks = (params.seq_q + block_positions - 1) / block_positions;
  return packing;
}

double softmax_scale(const fa4_forward_params& params) {
  return params.softmax_scale != 0 ? params.softmax_scale
                                   : 1 / std::sqrt(static_cast<double>(params.head_dim));
}

fa4_status check_problem(const fa4_forward_params& params, const KernelList& of_device, CheckedProblem& checked,
                         Message& message) {
  fa4_status status = check_header(params, message);
  if (status != FA4_OK) return status;
  const KernelList* wanted = with_exp2(params, of_device);
  if (wanted == nullptr) {
    return message.fail(FA4_ERROR_UNSUPPORTED,
                        "exp2 is FA4_EXP2_POLYNOMIAL (%d); the %s kernels accept FA4_EXP2_AUTO (%d) and FA4_EXP2_MUFU (%d)",
                        params.exp2, of_device.name, FA4_EXP2_AUTO, FA4_EXP2_MUFU);
  }
  status = check_extents(params, *wanted, checked, message);
  const int64_t batch = params.batch, seq_q = params.seq_q, seq_kv = params.seq_kv, dim = params.head_dim;
  if (status == FA4_OK) status = check_tensor(kQ, params.q, batch, seq_q, params.q_heads, dim, false, message);
  if (status == FA4_OK) status = check_tensor(kK, params.k, batch, seq_kv, params.kv_heads, dim, false, message);
  if (status == FA4_OK) status = check_tensor(kV, params.v, batch, seq_kv, params.kv_heads, dim, false, message);
  if (status == FA4_OK) status = check_tensor(kO, params.o, batch, seq_q, params.q_heads, dim, true, message);
  if (status == FA4_OK) status = check_lse(params, message);
  if (status == FA4_OK) status = check_scale(params, message);
  if (status == FA4_OK && params.max_ctas < 0) {
    status = message.fail(FA4_ERROR_INVALID_ARGUMENT,
                          "max_ctas is %d; 0 (one for each SM of the device) or more is accepted",
                          params.max_ctas);
  }
  return status;
}

}  // namespace fa4
