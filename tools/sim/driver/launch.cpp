// SPDX-License-Identifier: Apache-2.0
// Launches. A launch runs to its end inside the call, one at a time in the process, in the order of the
// calls. A kernel that faults leaves its context unusable, as on a real device; the call itself already
// answers with the fault.
#include <cstring>

#include "environment.h"
#include "state.h"

using namespace fa4::sim;
using namespace fa4::sim::driver;

namespace {

CUresult code_of(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::illegal_instruction:
      return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case Fault::Kind::illegal_address:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case Fault::Kind::misaligned_address:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case Fault::Kind::no_cta:
    case Fault::Kind::poison:
    case Fault::Kind::trap:
      return CUDA_ERROR_LAUNCH_FAILED;
    case Fault::Kind::assertion:
      return CUDA_ERROR_ASSERT;
    case Fault::Kind::deadlock:
    case Fault::Kind::budget:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    case Fault::Kind::bad_launch:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

struct Request {
  std::array<uint32_t, 3> grid, block;
  uint32_t dynamic_shared;
  CUstream stream;
  void** params;
  void** extra;
  std::array<uint32_t, 3> cluster{0, 0, 0};  // 0: the launch says nothing
};

CUresult check_shape(const Function& function, const Request& request) {
  const EntryInfo& entry = *function.entry;
  uint64_t threads = 1;
  for (int d = 0; d < 3; ++d) {
    if (request.grid[d] == 0 || request.grid[d] > max_grid_dim[d])
      return fail(CUDA_ERROR_INVALID_VALUE,
                  "launch of " + entry.name + ": grid " + triple(request.grid) +
                      ": each must be at least 1 and at most (2147483647, 65535, 65535)");
    if (request.block[d] == 0 || request.block[d] > max_block_dim[d])
      return fail(CUDA_ERROR_INVALID_VALUE, "launch of " + entry.name + ": block " + triple(request.block) +
                                                ": each must be at least 1 and at most (1024, 1024, 64)");
    threads *= request.block[d];
  }
  if (threads > max_threads_per_block)
    return fail(CUDA_ERROR_INVALID_VALUE, "launch of " + entry.name + ": block " + triple(request.block) +
                                              " has " + std::to_string(threads) + " threads, more than 1024");
  if (threads > entry.max_threads)
    return fail(CUDA_ERROR_INVALID_VALUE,
                "launch of " + entry.name + ": block of " + std::to_string(threads) +
                    " threads, but the kernel is built for " + std::to_string(entry.max_threads));
  if (entry.required_block[0] != 0 && request.block != entry.required_block)
    return fail(CUDA_ERROR_INVALID_VALUE, "launch of " + entry.name + ": block " + triple(request.block) +
                                              ", but the kernel requires " + triple(entry.required_block));
  if (request.dynamic_shared > function.max_dynamic_shared)
    return fail(CUDA_ERROR_INVALID_VALUE, "launch of " + entry.name + ": " +
                                              std::to_string(request.dynamic_shared) +
                                              " bytes of dynamic shared memory, but its limit is " +
                                              std::to_string(function.max_dynamic_shared) +
                                              " (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES raises it)");
  return CUDA_SUCCESS;
}

// The list that ends in CU_LAUNCH_PARAM_END: one buffer that holds all parameters.
CUresult params_of_extra(const EntryInfo& entry, void** extra, std::vector<std::byte>* params) {
  const void* buffer = nullptr;
  const size_t* size = nullptr;
  for (void** item = extra; *item != CU_LAUNCH_PARAM_END; item += 2) {
    if (*item == CU_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = item[1];
    else if (*item == CU_LAUNCH_PARAM_BUFFER_SIZE)
      size = static_cast<const size_t*>(item[1]);
    else
      return fail(CUDA_ERROR_INVALID_VALUE, "launch of " + entry.name + ": unknown name " +
                                                hex(reinterpret_cast<uint64_t>(*item)) +
                                                " in the extra options");
  }
  if (size == nullptr || (buffer == nullptr && *size > 0))
    return fail(CUDA_ERROR_INVALID_VALUE,
                "launch of " + entry.name + ": the extra options lack the parameter buffer or its size");
  // A buffer made of a struct may end in padding up to its alignment.
  const size_t padded = (entry.param_bytes + 127) / 128 * 128;
  if (*size < entry.param_bytes || *size > padded)
    return fail(CUDA_ERROR_INVALID_VALUE, "launch of " + entry.name + ": a parameter buffer of " +
                                              std::to_string(*size) + " bytes, but the parameters take " +
                                              std::to_string(entry.param_bytes));
  if (entry.param_bytes > 0) std::memcpy(params->data(), buffer, entry.param_bytes);
  return CUDA_SUCCESS;
}

CUresult gather_params(const EntryInfo& entry, const Request& request, std::vector<std::byte>* params) {
  params->assign(entry.param_bytes, std::byte{0});
  if (entry.params.empty()) return CUDA_SUCCESS;
  if (request.params != nullptr && request.extra != nullptr)
    return fail(CUDA_ERROR_INVALID_VALUE,
                "launch of " + entry.name + ": both kernelParams and extra are given");
  if (request.extra != nullptr) return params_of_extra(entry, request.extra, params);
  if (request.params == nullptr)
    return fail(CUDA_ERROR_INVALID_VALUE, "launch of " + entry.name +
                                              ": neither kernelParams nor extra is given, but it has " +
                                              std::to_string(entry.params.size()) + " parameters");
  for (size_t i = 0; i < entry.params.size(); ++i) {
    if (request.params[i] == nullptr)
      return fail(CUDA_ERROR_INVALID_VALUE,
                  "launch of " + entry.name + ": kernelParams[" + std::to_string(i) + "] is null");
    std::memcpy(params->data() + entry.params[i].offset, request.params[i], entry.params[i].size);
  }
  return CUDA_SUCCESS;
}

CUresult run(const Function& function, CUcontext current, const Launch& launch) {
  State& s = state();
  CUresult code;
  std::string report;
  try {
    std::lock_guard guard(s.device_lock);
    s.device->launch(launch);
    tell_launch(s, "");
    write_record(s, launch);
    return CUDA_SUCCESS;
  } catch (const Fault& fault) {
    code = code_of(fault.kind);
    report = fault.what();
  } catch (const std::bad_alloc&) {
    return fail(CUDA_ERROR_OUT_OF_MEMORY,
                "launch of " + function.entry->name + ": the host is out of memory");
  } catch (const std::exception& error) {
    code = CUDA_ERROR_LAUNCH_FAILED;
    report = error.what();
  }
  report = "kernel " + function.entry->name + ", grid " + triple(launch.grid) + ", block " + triple(launch.block) + ": " + report;
  fail(code, report);
  {
    std::lock_guard guard(s.device_lock);
    tell_launch(s, report);
  }
  if (code == CUDA_ERROR_INVALID_VALUE) return code;  // refused before it began
  std::lock_guard guard(s.lock);
  if (const auto context = s.contexts.find(current)) context->fault = code;
  return code;
}

CUresult launch(CUfunction handle, const Request& request) {
  return in_context([&](CUcontext current) -> CUresult {
    if (CUresult r = check_stream(request.stream, current)) return r;
    std::shared_ptr<Function> function;
    if (CUresult r = find_function(handle, &function)) return r;
    const EntryInfo& entry = *function->entry;
    if (function->context != nullptr && function->context != current)
      return fail(CUDA_ERROR_INVALID_HANDLE,
                  "launch of " + entry.name + ": its module belongs to another context than the current one");
    if (CUresult r = check_shape(*function, request)) return r;
    std::array<uint32_t, 3> cluster = request.cluster;
    if (CUresult r = resolve_cluster(*function, request.grid, false, &cluster)) return r;
    std::vector<std::byte> params;
    if (CUresult r = gather_params(entry, request, &params)) return r;
    Launch work;
    work.program = function->code->program;
    work.entry = entry.name;
    work.grid = request.grid;
    work.block = request.block;
    work.cluster = cluster;
    work.dynamic_shared_bytes = request.dynamic_shared;
    work.params = params;
    work.global_addresses = function->code->global_addresses;
    return run(*function, current, work);
  });
}

}  // namespace

FA4SIM_EXPORT CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                              unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                              unsigned int block_z, unsigned int dynamic_shared,
                                              CUstream stream, void** params, void** extra) {
  return launch(
      function,
      {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_shared, stream, params, extra, {}});
}

FA4SIM_EXPORT CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                                void** params, void** extra) {
  return in_context([&](CUcontext) -> CUresult {
    if (config == nullptr) return fail(CUDA_ERROR_INVALID_VALUE, "the launch configuration is null");
    if (config->numAttrs > 0 && config->attrs == nullptr)
      return fail(CUDA_ERROR_INVALID_VALUE, "launch attributes are announced but their array is null");
    std::array<uint32_t, 3> cluster{0, 0, 0};
    for (unsigned i = 0; i < config->numAttrs; ++i)
      if (CUresult r = take_attribute(config->attrs[i], &cluster)) return r;
    return launch(function, {{config->gridDimX, config->gridDimY, config->gridDimZ},
                             {config->blockDimX, config->blockDimY, config->blockDimZ},
                             config->sharedMemBytes,
                             config->hStream,
                             params,
                             extra,
                             cluster});
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction, unsigned int, unsigned int, unsigned int,
                                                         unsigned int, unsigned int, unsigned int,
                                                         unsigned int, CUstream, void**) {
  return in_context(
      [](CUcontext) { return fail(CUDA_ERROR_NOT_SUPPORTED, "cooperative launches are not simulated"); });
}
