// SPDX-License-Identifier: Apache-2.0
// Contexts: the primary one, those that a program creates, and each thread's stack of current contexts.
#include "state.h"

using namespace fa4::sim::driver;

namespace {

CUresult check_device(CUdevice device) {
  if (CUresult r = check_initialised()) return r;
  if (device != 0)
    return fail(CUDA_ERROR_INVALID_DEVICE, "device " + std::to_string(device) + ": there is only 0");
  return CUDA_SUCCESS;
}

CUresult null_result() {
  return fail(CUDA_ERROR_INVALID_VALUE, "the pointer for the result is null");
}

CUresult create(CUcontext* result, unsigned flags, CUdevice device) {
  if (CUresult r = check_device(device)) return r;
  if (result == nullptr) return null_result();
  if (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK))
    return fail(CUDA_ERROR_INVALID_VALUE, "unknown context flags " + hex(flags));
  State& s = state();
  std::lock_guard guard(s.lock);
  auto context = std::make_shared<Context>();
  context->flags = flags;
  context->id = s.next_id++;
  *result = s.contexts.add(std::move(context));
  context_stack().push_back(*result);
  return CUDA_SUCCESS;
}

CUresult check_live(CUcontext handle) {
  State& s = state();
  std::lock_guard guard(s.lock);
  const auto context = s.contexts.find(handle);
  if (context == nullptr) return fail(CUDA_ERROR_INVALID_CONTEXT, "the context handle is not a live context");
  if (!context->alive) return fail(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the primary context is not retained");
  return CUDA_SUCCESS;
}

// Ends the primary context's present life.
void end_primary() {
  State& s = state();
  {
    std::lock_guard guard(s.lock);
    const auto context = s.contexts.find(s.primary);
    context->alive = false;
    context->fault = CUDA_SUCCESS;
    s.primary_users = 0;
  }
  destroy_contents(s.primary);
}

}  // namespace

FA4SIM_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* result, CUdevice device) {
  return api([&]() -> CUresult {
    if (CUresult r = check_device(device)) return r;
    if (result == nullptr) return null_result();
    State& s = state();
    std::lock_guard guard(s.lock);
    s.contexts.find(s.primary)->alive = true;
    ++s.primary_users;
    *result = s.primary;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  return api([&]() -> CUresult {
    if (CUresult r = check_device(device)) return r;
    State& s = state();
    {
      std::lock_guard guard(s.lock);
      if (s.primary_users == 0)
        return fail(CUDA_ERROR_INVALID_CONTEXT,
                    "the primary context has been released as often as it was retained");
      if (--s.primary_users > 0) return CUDA_SUCCESS;
    }
    end_primary();
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
  return api([&]() -> CUresult {
    if (CUresult r = check_device(device)) return r;
    end_primary();
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  return api([&]() -> CUresult {
    if (CUresult r = check_device(device)) return r;
    if (flags == nullptr || active == nullptr) return null_result();
    State& s = state();
    std::lock_guard guard(s.lock);
    const auto context = s.contexts.find(s.primary);
    *flags = context->flags;
    *active = context->alive;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  return api([&]() -> CUresult {
    if (CUresult r = check_device(device)) return r;
    if (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK))
      return fail(CUDA_ERROR_INVALID_VALUE, "unknown context flags " + hex(flags));
    State& s = state();
    std::lock_guard guard(s.lock);
    s.contexts.find(s.primary)->flags = flags;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuCtxCreate(CUcontext* result, CUctxCreateParams* params, unsigned int flags,
                                           CUdevice device) {
  return api([&]() -> CUresult {
    if (params != nullptr && (params->numExecAffinityParams != 0 || params->cigParams != nullptr))
      return fail(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,
                  "execution affinity and graphics sharing are not simulated");
    return create(result, flags, device);
  });
}

// The form of programs built with toolkits before 13.
FA4SIM_EXPORT CUresult CUDAAPI cuCtxCreate_v2(CUcontext* result, unsigned int flags, CUdevice device) {
  return api([&] { return create(result, flags, device); });
}

FA4SIM_EXPORT CUresult CUDAAPI cuCtxDestroy(CUcontext handle) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    State& s = state();
    {
      std::lock_guard guard(s.lock);
      const auto context = s.contexts.find(handle);
      if (context == nullptr)
        return fail(CUDA_ERROR_INVALID_CONTEXT, "the context handle is not a live context");
      if (context->primary)
        return fail(CUDA_ERROR_INVALID_CONTEXT, "the primary context is released, not destroyed");
      s.contexts.remove(handle);
    }
    auto& stack = context_stack();
    if (!stack.empty() && stack.back() == handle) stack.pop_back();
    destroy_contents(handle);
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuCtxGetCurrent(CUcontext* result) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    if (result == nullptr) return null_result();
    *result = context_stack().empty() ? nullptr : context_stack().back();
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuCtxSetCurrent(CUcontext handle) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    auto& stack = context_stack();
    if (handle != nullptr)
      if (CUresult r = check_live(handle)) return r;
    if (!stack.empty()) stack.pop_back();
    if (handle != nullptr) stack.push_back(handle);
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuCtxPushCurrent(CUcontext handle) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    if (CUresult r = check_live(handle)) return r;
    context_stack().push_back(handle);
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuCtxPopCurrent(CUcontext* result) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    auto& stack = context_stack();
    if (stack.empty()) return fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread");
    if (result != nullptr) *result = stack.back();
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  return in_context([&](CUcontext) -> CUresult {
    if (device == nullptr) return null_result();
    *device = 0;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuCtxGetFlags(unsigned int* flags) {
  return in_context([&](CUcontext current) -> CUresult {
    if (flags == nullptr) return null_result();
    State& s = state();
    std::lock_guard guard(s.lock);
    *flags = s.contexts.find(current)->flags;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return in_context([&](CUcontext current) -> CUresult {
    if (id == nullptr) return null_result();
    State& s = state();
    std::lock_guard guard(s.lock);
    const auto context = s.contexts.find(handle == nullptr ? current : handle);
    if (context == nullptr)
      return fail(CUDA_ERROR_INVALID_CONTEXT, "the context handle is not a live context");
    *id = context->id;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    if (version == nullptr) return null_result();
    if (handle != nullptr)
      if (CUresult r = check_live(handle)) return r;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return in_context([&](CUcontext) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = 0;
    return CUDA_SUCCESS;
  });
}

// Launches and copies end before their call returns: nothing is left to wait for.
FA4SIM_EXPORT CUresult CUDAAPI cuCtxSynchronize(void) {
  return in_context([](CUcontext) { return CUDA_SUCCESS; });
}
