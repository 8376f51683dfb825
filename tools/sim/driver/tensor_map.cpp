// SPDX-License-Identifier: Apache-2.0
// cuTensorMapEncodeTiled.
#include "../core/tensor_map.h"

#include "state.h"

using namespace fa4::sim::driver;

FA4SIM_EXPORT CUresult CUDAAPI
cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                       const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                       const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill) {
  return in_context([&](CUcontext) -> CUresult {
    const CUresult result = fa4::sim::encode_tiled(map, type, rank, address, extents, strides, box,
                                                   element_strides, interleave, swizzle, l2, fill);
    if (result != CUDA_SUCCESS)
      fail(result, "cuTensorMapEncodeTiled: an argument breaks the rules of tensor maps");
    return result;
  });
}
