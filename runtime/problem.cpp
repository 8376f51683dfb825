// SPDX-License-Identifier: Apache-2.0
// The checks of a problem: each field alone, arrays on the device, what is not built yet, extents and the kernel for them, tensors,
// LSE, scale.
#include "problem.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>

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

int64_t packed_heads_of(const fa4_forward_params& params, const Config& config) {
  const int64_t ratio = params.q_heads / params.kv_heads;
  return std::min(ratio & -ratio, int64_t{config.tile_rows});  // their gcd: tile_rows is a power of two
}

// For every element type and mask there is a kernel that has the largest head dimension on both sides, and takes with it every pair
// of multiples of 8 up to it.
static_assert(std::all_of(std::begin(kArchitectures), std::end(kArchitectures), [](const KernelList* kernels) {
  const int64_t most = kernels->most_head_dim();
  for (const ElementType element : {ElementType::f16, ElementType::bf16})
    for (const MaskKind mask : {MaskKind::full, MaskKind::causal, MaskKind::band})
      if (kernels->find(element, mask, most, most, INT64_MAX) == nullptr) return false;
  return true;
}));

// The band, and from where on a bound hides no key of the problem, whose entries all have the same lengths.
struct Reach {
  int64_t left, right, wide_left, wide_right;
  int64_t shift;  // of the diagonal behind the bottom-right one

  bool hides_before() const { return left >= 0 && left < wide_left; }
  bool hides_behind() const { return right >= 0 && right < wide_right; }
};

Reach reach_of(const fa4_forward_params& params) {
  const Band band = band_of(params);
  const int64_t bottom_right = params.seq_kv - params.seq_q;
  const int64_t diagonal = params.diagonal_alignment == FA4_DIAGONAL_TOP_LEFT ? 0 : bottom_right;
  const bool empty = params.seq_q == 0 || params.seq_kv == 0;
  return {.left = band.left,
          .right = band.right,
          .wide_left = empty ? 0 : std::max<int64_t>(diagonal + params.seq_q - 1, 0),
          .wide_right = empty ? 0 : std::max<int64_t>(params.seq_kv - 1 - diagonal, 0),
          .shift = diagonal - bottom_right};
}

// Where no kernel takes the problem it is for one of the head dimensions.
fa4_status refuse_head_dims(const fa4_forward_params& params, const KernelList& kernels, Message& message) {
  const int64_t most = kernels.most_head_dim(), dim = params.head_dim, v_dim = params.head_dim_v;
  if (dim < 8 || dim > most || dim % 8 != 0) {
    return message.fail(dim < 1 ? FA4_ERROR_INVALID_ARGUMENT : FA4_ERROR_UNSUPPORTED,
                        "head_dim is %lld; multiples of 8 from 8 to %lld are supported", static_cast<ll>(dim), static_cast<ll>(most));
  }
  return message.fail(v_dim < 0 ? FA4_ERROR_INVALID_ARGUMENT : FA4_ERROR_UNSUPPORTED,
                      "head_dim_v is %lld; 0 (that of Q and K) and multiples of 8 from 8 to %lld are supported", static_cast<ll>(v_dim),
                      static_cast<ll>(most));
}

fa4_status check_extents(const fa4_forward_params& params, const KernelList& kernels, CheckedProblem& checked,
                         Message& message) {
  if (params.q_heads % params.kv_heads != 0) {
    return message.fail(FA4_ERROR_INVALID_ARGUMENT,
                        "q_heads is %lld and kv_heads %lld; q_heads must be a multiple of "
                        "kv_heads",
                        static_cast<ll>(params.q_heads), static_cast<ll>(params.kv_heads));
  }
  checked.kernel = kernel_for(params, kernels);
  if (checked.kernel == nullptr) return refuse_head_dims(params, kernels, message);
  checked.packing = pack_heads(params, checked.kernel->config);
  const Packing& packing = checked.packing;
  if (static_cast<Wide>(packing.all_m_blocks) * static_cast<Wide>(packing.head_groups) > static_cast<Wide>(kMaxTasks)) {
    return message.fail(
        FA4_ERROR_UNSUPPORTED,
        "%lld head groups x %lld query blocks of all batch entries are too many tasks; their product may be at "
        "most %lld",
        static_cast<ll>(packing.head_groups), static_cast<ll>(packing.all_m_blocks), static_cast<ll>(kMaxTasks));
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

// Arrays of 4-byte elements on the device. Each is an option.
struct DeviceArray {
  const char* name;
  uint64_t fa4_forward_params::*data;
  Wide (*elements)(const fa4_forward_params&);
};
constexpr DeviceArray kDeviceArrays[] = {
    {"cu_seqlens_q", &fa4_forward_params::cu_seqlens_q, [](const fa4_forward_params& p) { return static_cast<Wide>(p.batch) + 1; }},
    {"cu_seqlens_k", &fa4_forward_params::cu_seqlens_k, [](const fa4_forward_params& p) { return static_cast<Wide>(p.batch) + 1; }},
    {"seqused_q", &fa4_forward_params::seqused_q, [](const fa4_forward_params& p) { return static_cast<Wide>(p.batch); }},
    {"seqused_k", &fa4_forward_params::seqused_k, [](const fa4_forward_params& p) { return static_cast<Wide>(p.batch); }},
    {"block_table", &fa4_forward_params::block_table,
     [](const fa4_forward_params& p) {
       const Dimension batch = {nullptr, p.batch, p.block_table_stride};
       return span(&batch, 1, (p.seq_kv + p.page_size - 1) / p.page_size);
     }},
    {"sinks", &fa4_forward_params::sinks, [](const fa4_forward_params& p) { return static_cast<Wide>(p.q_heads); }},
    {"alibi_slopes", &fa4_forward_params::alibi_slopes,
     [](const fa4_forward_params& p) {
       const Dimension batch = {nullptr, p.batch, p.alibi_batch_stride};
       return span(&batch, 1, p.q_heads);
     }},
};

fa4_status check_device_arrays(const fa4_forward_params& params, Message& message) {
  for (const DeviceArray& array : kDeviceArrays) {
    const uint64_t data = params.*array.data;
    if (data == 0) continue;
    if (data % 4 != 0) {
      return message.fail(FA4_ERROR_INVALID_ARGUMENT, "%s is 0x%llx; a multiple of 4 bytes is needed", array.name, static_cast<ull>(data));
    }
    if (fa4_status status = check_reach(array.name, array.name, data, array.elements(params), 4, message); status != FA4_OK) return status;
  }
  if (params.cu_seqlens_k != 0 && params.block_table != 0) {
    return message.fail(FA4_ERROR_INVALID_ARGUMENT,
                        "cu_seqlens_k is 0x%llx and block_table 0x%llx; keys lie behind each other or in pages: one of them must be 0, "
                        "and seqused_k says how many keys of its pages an entry has",
                        static_cast<ull>(params.cu_seqlens_k), static_cast<ull>(params.block_table));
  }
  return FA4_OK;
}

fa4_status check_built(const fa4_forward_params& params, Message& message) {
  if (params.block_table != 0) {
    return message.fail(FA4_ERROR_UNSUPPORTED, "block_table is 0x%llx; 0 (none) is supported", static_cast<ull>(params.block_table));
  }
  if (params.softcap != 0 && params.alibi_slopes != 0) {
    return message.fail(FA4_ERROR_UNSUPPORTED, "softcap is %g and alibi_slopes 0x%llx; one of them must be 0", params.softcap,
                        static_cast<ull>(params.alibi_slopes));
  }
  return FA4_OK;
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

fa4_status check_tensor(const TensorNames& names, const fa4_tensor& tensor, const Side& side,
                        int64_t heads, int64_t head_dim, bool written, Message& message) {
  const int64_t batch = side.entries, seq = side.rows;
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
  const Side side = q_side(params);
  Dimension dimensions[] = {{"lse_batch_stride", side.entries, params.lse_batch_stride},
                            {"lse_head_stride", params.q_heads, params.lse_head_stride}};
  for (const Dimension& dimension : dimensions) {
    if (dimension.extent <= 1 || dimension.stride >= 0) continue;
    return message.fail(FA4_ERROR_INVALID_ARGUMENT, "%s is %lld elements; 0 or more is needed",
                        dimension.stride_name, static_cast<ll>(dimension.stride));
  }
  if (is_empty(params)) return FA4_OK;
  if (fa4_status status =
          check_reach("lse", "lse", params.lse, span(dimensions, 2, side.rows), sizeof(float), message);
      status != FA4_OK) {
    return status;
  }
  return check_disjoint("lse", dimensions, 2, side.rows, message);
}

fa4_status check_scale(const fa4_forward_params& params, Message& message) {
  const double magnitude = std::fabs(softmax_scale(params));
  if (!(magnitude >= kLeastScale && magnitude <= kMostScale)) {  // also a NaN
    return message.fail(FA4_ERROR_INVALID_ARGUMENT,
                        "softmax_scale is %g; 0 (the default) or a magnitude from %.9g to %.9g is accepted",
                        params.softmax_scale, kLeastScale, kMostScale);
  }
  if (params.softcap == 0) return FA4_OK;
  // The cap takes the scale's place in the exponent, and what scores are multiplied by before it is the ratio of the two.
  const double least_cap = std::max(kLeastScale, magnitude / FLT_MAX), most_cap = std::min(kMostScale, magnitude / FLT_MIN);
  if (params.softcap >= least_cap && params.softcap <= most_cap) return FA4_OK;
  return message.fail(FA4_ERROR_INVALID_ARGUMENT, "softcap is %g with a softmax scale of %g; 0 (none) or %.9g to %.9g are accepted",
                      params.softcap, softmax_scale(params), least_cap, most_cap);
}

// What the tensor maps of a general kernel (GeneralParams) can hold.
fa4_status check_bound(const char* name, int64_t length, const Side& side, Message& message) {
  if (side.bound <= kMapRows) return FA4_OK;
  return message.fail(FA4_ERROR_UNSUPPORTED,
                      "%s is %lld; up to %d are supported with lengths on the device, a window, top-left alignment, softcap, sinks or ALiBi",
                      name, static_cast<ll>(length), kMapRows);
}
fa4_status check_places(const TensorNames& names, const fa4_tensor& tensor, const Side& side, Message& message) {
  const MapPlaces places = map_places(tensor, side);
  if (places.count <= kMaxPlaces) return FA4_OK;
  return message.fail(FA4_ERROR_UNSUPPORTED,
                      "%s is %lld elements and %s %lld; their greatest common divisor, %lld, lies %lld times in all that they span, and "
                      "%lld are supported",
                      names.batch_stride, static_cast<ll>(tensor.batch_stride), names.seq_stride, static_cast<ll>(tensor.seq_stride),
                      static_cast<ll>(places.stride), static_cast<ll>(places.count), static_cast<ll>(kMaxPlaces));
}

}  // namespace

const KernelList* with_exp2(const fa4_forward_params& params, const KernelList& kernels) {
  if (params.exp2 == FA4_EXP2_AUTO) return &kernels;
  const Exp2 wanted = params.exp2 == FA4_EXP2_POLYNOMIAL ? Exp2::polynomial : Exp2::mufu;
  return kernels.exp2 == wanted ? &kernels : kernels.other_exp2;
}

bool has_own_lengths(const fa4_forward_params& params) {
  return (params.cu_seqlens_q | params.cu_seqlens_k | params.seqused_q | params.seqused_k) != 0;
}

Side q_side(const fa4_forward_params& params) {
  if (params.cu_seqlens_q == 0) return {params.batch, params.seq_q, params.seq_q};
  return {1, params.total_q, std::min(params.seq_q, params.total_q)};
}

Side k_side(const fa4_forward_params& params) {
  if (params.cu_seqlens_k == 0) return {params.batch, params.seq_kv, params.seq_kv};
  return {1, params.total_k, std::min(params.seq_kv, params.total_k)};
}

MapPlaces map_places(const fa4_tensor& tensor, const Side& side) {
  const int64_t entry = side.entries > 1 ? tensor.batch_stride : 0, row = side.rows > 1 ? tensor.seq_stride : 0;
  const int64_t stride = std::gcd(entry, row);
  if (stride == 0) return {0, 0, 0, 1};
  // A row's place may be counted from the first row of all, or from its entry's.
  const int64_t entry_step = entry / stride, row_step = row / stride;
  Wide count = static_cast<Wide>(row_step) * static_cast<Wide>(side.rows) + 1;
  if (side.entries > 1) count += static_cast<Wide>(entry_step) * static_cast<Wide>(side.entries - 1);
  return {stride, entry_step, row_step, count > static_cast<Wide>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(count)};
}

Band band_of(const fa4_forward_params& params) {
  return {.left = params.window ? params.window_left : -1, .right = params.causal ? 0 : params.window ? params.window_right : -1};
}

MaskKind mask_of(const fa4_forward_params& params) {
  if (has_own_lengths(params) || params.softcap != 0 || params.sinks != 0 || params.alibi_slopes != 0) return MaskKind::band;
  const Reach reach = reach_of(params);
  if (reach.hides_before()) return MaskKind::band;
  if (reach.right >= 0 && reach.right == -reach.shift) return MaskKind::causal;  // also where it hides nothing: the caller's choice
  return reach.hides_behind() ? MaskKind::band : MaskKind::full;
}

const Kernel* kernel_for(const fa4_forward_params& params, const KernelList& kernels) {
  // Heads that share a KV head may ride together: how many of them, the kernels' tiles say alike.
  const int64_t packed_heads = packed_heads_of(params, kernels.first->config);
  return kernels.find(params.dtype == FA4_BF16 ? ElementType::bf16 : ElementType::f16, mask_of(params), params.head_dim,
                      head_dim_v(params), params.seq_q * packed_heads);
}

Packing pack_heads(const fa4_forward_params& params, const Config& config) {
  Packing packing;
  packing.packed_heads = packed_heads_of(params, config);
  packing.head_groups = params.q_heads / packing.packed_heads;
  const int64_t block_positions = config.block_rows() / packing.packed_heads;
  const Side side = q_side(params);
  packing.m_blocks = (side.bound + block_positions - 1) / block_positions;
  packing.all_m_blocks = params.batch * packing.m_blocks;  // below 2^62
  // Packed: each entry's last one may be short.
  if (params.cu_seqlens_q != 0) packing.all_m_blocks = std::min(packing.all_m_blocks, side.rows / block_positions + params.batch);
  return packing;
}

double softmax_scale(const fa4_forward_params& params) {
  return params.softmax_scale != 0 ? params.softmax_scale
                                   : 1 / std::sqrt(static_cast<double>(params.head_dim));
}

fa4_status check_problem(const fa4_forward_params& params, const KernelList& of_device, CheckedProblem& checked,
                         Message& message) {
  fa4_status status = check_fields(params, message);
  if (status == FA4_OK) status = check_device_arrays(params, message);
  if (status == FA4_OK) status = check_built(params, message);
  if (status != FA4_OK) return status;
  const KernelList* wanted = with_exp2(params, of_device);
  if (wanted == nullptr) {
    return message.fail(FA4_ERROR_UNSUPPORTED,
                        "exp2 is FA4_EXP2_POLYNOMIAL (%d); the %s kernels accept FA4_EXP2_AUTO (%d) and FA4_EXP2_MUFU (%d)",
                        params.exp2, of_device.name, FA4_EXP2_AUTO, FA4_EXP2_MUFU);
  }
  status = check_extents(params, *wanted, checked, message);
  const Side q = q_side(params), k = k_side(params);
  const int64_t dim = params.head_dim, v_dim = head_dim_v(params);
  if (status == FA4_OK) status = check_tensor(kQ, params.q, q, params.q_heads, dim, false, message);
  if (status == FA4_OK) status = check_tensor(kK, params.k, k, params.kv_heads, dim, false, message);
  if (status == FA4_OK) status = check_tensor(kV, params.v, k, params.kv_heads, v_dim, false, message);
  if (status == FA4_OK) status = check_tensor(kO, params.o, q, params.q_heads, v_dim, true, message);
  if (status == FA4_OK && checked.kernel->config.general()) {
    status = check_bound("seq_q", params.seq_q, q, message);
    if (status == FA4_OK) status = check_bound("seq_kv", params.seq_kv, k, message);
    if (status == FA4_OK) status = check_places(kQ, params.q, q, message);
    if (status == FA4_OK) status = check_places(kK, params.k, k, message);
    if (status == FA4_OK) status = check_places(kV, params.v, k, message);
    if (status == FA4_OK) status = check_places(kO, params.o, q, message);
  }
  if (status == FA4_OK) status = check_lse(params, message);
  if (status == FA4_OK) status = check_scale(params, message);
  return status;
}

uint64_t workspace_bytes(const fa4_forward_params& params) {
  return has_own_lengths(params) && !is_empty(params) ? sizeof(uint32_t) : 0;
}

fa4_status check_workspace(const fa4_forward_params& params, Message& message) {
  const uint64_t needed = workspace_bytes(params);
  if (needed == 0) return FA4_OK;
  if (params.workspace_size < needed) {
    return message.fail(FA4_ERROR_INVALID_ARGUMENT, "workspace_size is %llu bytes; %llu are needed",
                        static_cast<ull>(params.workspace_size), static_cast<ull>(needed));
  }
  if (params.workspace != nullptr && reinterpret_cast<uintptr_t>(params.workspace) % 4 == 0) return FA4_OK;
  return message.fail(FA4_ERROR_INVALID_ARGUMENT, "workspace is %p; the address of %llu bytes, a multiple of 4, is needed",
                      params.workspace, static_cast<ull>(needed));
}

}  // namespace fa4
