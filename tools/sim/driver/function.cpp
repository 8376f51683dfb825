// SPDX-License-Identifier: Apache-2.0
// What can be asked of and set on a kernel. A CUkernel of a library may be passed wherever a CUfunction is
// expected.
#include <algorithm>

#include "state.h"

using namespace fa4::sim;
using namespace fa4::sim::driver;

namespace {

CUresult null_result() {
  return fail(CUDA_ERROR_INVALID_VALUE, "the pointer for the result is null");
}

CUfunction as_function(CUkernel kernel) {
  return reinterpret_cast<CUfunction>(kernel);
}

// body(function) of a function that is taken, with the lock held.
template <typename Body>
CUresult of_function(CUfunction handle, Body body) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    std::shared_ptr<Function> function;
    if (CUresult r = find_function(handle, &function)) return r;
    std::lock_guard guard(state().lock);
    return body(*function);
  });
}

// The same for what is known before.
template <typename Body>
CUresult of_handle(CUfunction handle, Body body) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    State& s = state();
    std::lock_guard guard(s.lock);
    const auto function = s.functions.find(handle);
    if (function == nullptr)
      return fail(CUDA_ERROR_INVALID_HANDLE, "the function handle is not a live function");
    return body(*function);
  });
}

CUresult get_attribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return of_function(handle, [&](const Function& function) -> CUresult {
    if (value == nullptr) return null_result();
    const EntryInfo& entry = *function.entry;
    switch (attribute) {
      case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = static_cast<int>(std::min(entry.max_threads, max_threads_per_block));
        break;
      case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = static_cast<int>(entry.static_shared_bytes);
        break;
      case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = static_cast<int>(entry.local_bytes);
        break;
      case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = static_cast<int>(entry.registers);
        break;
      case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = function.code->ptx_version;
        break;
      case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = static_cast<int>(state().gpu->number);
        break;
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = static_cast<int>(function.max_dynamic_shared);
        break;
      case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = function.carveout;
        break;
      case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        *value = entry.explicit_cluster && entry.cluster[0] == 0;
        break;
      case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *value = function.cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
        break;
      case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *value = function.large_clusters;
        break;
      case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *value = function.cluster_scheduling;
        break;
      default:
        if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
          return fail(CUDA_ERROR_INVALID_VALUE, text("unknown function attribute ", attribute));
        *value = 0;  // constant bank, cache mode: none
    }
    return CUDA_SUCCESS;
  });
}

CUresult set_attribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return of_function(handle, [&](Function& function) -> CUresult {
    const EntryInfo& entry = *function.entry;
    switch (attribute) {
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
        const int most = static_cast<int>(shared_opt_in) - static_cast<int>(entry.static_shared_bytes);
        if (value < 0 || value > most)
          return fail(CUDA_ERROR_INVALID_VALUE, "dynamic shared memory of " + entry.name + " set to " +
                                                    std::to_string(value) + " bytes: 0 to " +
                                                    std::to_string(std::max(most, 0)) + " are possible (" +
                                                    std::to_string(shared_opt_in) + " less " +
                                                    std::to_string(entry.static_shared_bytes) + " static)");
        function.max_dynamic_shared = static_cast<uint32_t>(value);
        return CUDA_SUCCESS;
      }
      case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
          return fail(CUDA_ERROR_INVALID_VALUE,
                      "the carveout is a percentage or -1, not " + std::to_string(value));
        function.carveout = value;
        return CUDA_SUCCESS;
      case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: {
        const int d = attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
        if (value < 0 || (entry.cluster[0] != 0 && value != function.cluster[d]))
          return fail(CUDA_ERROR_INVALID_VALUE,
                      "a cluster's extent of " + entry.name + " set to " + std::to_string(value) +
                          (value < 0 ? "" : ", but the entry requires " + std::to_string(function.cluster[d])));
        function.cluster[d] = value;
        return CUDA_SUCCESS;
      }
      case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        function.large_clusters = value != 0;
        return CUDA_SUCCESS;
      case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        if (value < CU_CLUSTER_SCHEDULING_POLICY_DEFAULT || value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING)
          return fail(CUDA_ERROR_INVALID_VALUE, "there is no cluster scheduling policy " + std::to_string(value));
        function.cluster_scheduling = value;
        return CUDA_SUCCESS;
      default:
        return fail(CUDA_ERROR_INVALID_VALUE, text("function attribute cannot be set: ", attribute));
    }
  });
}

CUresult get_param(CUfunction handle, size_t index, size_t* offset, size_t* size) {
  return of_function(handle, [&](const Function& function) -> CUresult {
    const auto& params = function.entry->params;
    if (index >= params.size())
      return fail(CUDA_ERROR_INVALID_VALUE, "parameter " + std::to_string(index) + " of " +
                                                function.entry->name + ", which has " +
                                                std::to_string(params.size()));
    if (offset == nullptr) return null_result();
    *offset = params[index].offset;
    if (size != nullptr) *size = params[index].size;
    return CUDA_SUCCESS;
  });
}

CUresult get_name(const char** name, CUfunction handle) {
  return of_handle(handle, [&](const Function& function) -> CUresult {
    if (name == nullptr) return null_result();
    *name = function.code->program->entries()[function.number].c_str();
    return CUDA_SUCCESS;
  });
}

CUresult occupancy(int* blocks, CUfunction handle, int block_size, size_t dynamic_shared) {
  return of_function(handle, [&](const Function& function) -> CUresult {
    if (blocks == nullptr) return null_result();
    if (block_size <= 0) return fail(CUDA_ERROR_INVALID_VALUE, "block size " + std::to_string(block_size));
    *blocks = static_cast<int>(blocks_per_sm(function, static_cast<uint32_t>(block_size), dynamic_shared));
    return CUDA_SUCCESS;
  });
}

}  // namespace

// By threads, blocks and shared memory. Registers do not limit it: their number is known to an assembler, not
// to PTX.
uint32_t fa4::sim::driver::blocks_per_sm(const Function& function, uint64_t threads, uint64_t dynamic_shared) {
  if (threads > std::min(function.entry->max_threads, max_threads_per_block)) return 0;
  const uint64_t shared = function.entry->static_shared_bytes + dynamic_shared;
  if (dynamic_shared > shared_opt_in || shared > shared_opt_in) return 0;
  const uint64_t warps = (threads + warp_size - 1) / warp_size;
  const uint64_t block_shared = (shared + shared_reserved_per_block + 127) / 128 * 128;
  return static_cast<uint32_t>(std::min<uint64_t>(
      {max_blocks_per_sm, max_threads_per_sm / (warps * warp_size), shared_per_sm / block_shared}));
}

FA4SIM_EXPORT CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute,
                                                  CUfunction function) {
  return get_attribute(value, attribute, function);
}

FA4SIM_EXPORT CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                                  int value) {
  return set_attribute(function, attribute, value);
}

FA4SIM_EXPORT CUresult CUDAAPI cuFuncGetName(const char** name, CUfunction function) {
  return get_name(name, function);
}

FA4SIM_EXPORT CUresult CUDAAPI cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset,
                                                  size_t* size) {
  return get_param(function, index, offset, size);
}

FA4SIM_EXPORT CUresult CUDAAPI cuFuncGetModule(CUmodule* module, CUfunction handle) {
  return of_handle(handle, [&](const Function& function) -> CUresult {
    if (module == nullptr) return null_result();
    *module = function.module;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuKernelGetAttribute(int* value, CUfunction_attribute attribute,
                                                    CUkernel kernel, CUdevice device) {
  if (device != 0)
    return fail(CUDA_ERROR_INVALID_DEVICE, "device " + std::to_string(device) + ": there is only 0");
  return get_attribute(value, attribute, as_function(kernel));
}

FA4SIM_EXPORT CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value,
                                                    CUkernel kernel, CUdevice device) {
  if (device != 0)
    return fail(CUDA_ERROR_INVALID_DEVICE, "device " + std::to_string(device) + ": there is only 0");
  return set_attribute(as_function(kernel), attribute, value);
}

FA4SIM_EXPORT CUresult CUDAAPI cuKernelGetName(const char** name, CUkernel kernel) {
  return get_name(name, as_function(kernel));
}

FA4SIM_EXPORT CUresult CUDAAPI cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset,
                                                    size_t* size) {
  return get_param(as_function(kernel), index, offset, size);
}

FA4SIM_EXPORT CUresult CUDAAPI cuKernelGetFunction(CUfunction* result, CUkernel kernel) {
  return of_handle(as_function(kernel), [&](const Function&) -> CUresult {
    if (result == nullptr) return null_result();
    *result = as_function(kernel);
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return of_handle(as_function(kernel), [&](const Function& function) -> CUresult {
    if (library == nullptr) return null_result();
    *library = function.library;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                                           int block_size,
                                                                           size_t dynamic_shared) {
  return occupancy(blocks, function, block_size, dynamic_shared);
}

FA4SIM_EXPORT CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, CUfunction function, int block_size, size_t dynamic_shared, unsigned int flags) {
  if (flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE})
    return fail(CUDA_ERROR_INVALID_VALUE, "unknown occupancy flags " + hex(flags));
  return occupancy(blocks, function, block_size, dynamic_shared);
}
