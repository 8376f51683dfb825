// SPDX-License-Identifier: Apache-2.0
// Creation, and the call path.
#include "context.h"

#include "plan.h"
#include "problem.h"

namespace fa4 {
namespace {

fa4_status check_create_params(const fa4_create_params& params, Message& message) {
  for (int i = 0; i < 4; ++i) {
    if (params.reserved[i] != 0) {
      return message.fail(FA4_ERROR_INVALID_ARGUMENT, "reserved[%d] is %llu; it must be 0", i,
                          static_cast<unsigned long long>(params.reserved[i]));
    }
  }
  return FA4_OK;
}

}  // namespace

fa4_status Context::open(const fa4_create_params& params, Message& message) {
  fa4_status status = check_create_params(params, message);
  if (status == FA4_OK) status = driver_.open(params.driver_library, message);
  if (status == FA4_OK) status = driver_.check(driver_.cuInit(0), "cuInit", message);
  if (status == FA4_OK)
    status = driver_.check(driver_.cuCtxGetCurrent(&cuda_context_), "cuCtxGetCurrent", message);
  if (status != FA4_OK) return status;
  if (cuda_context_ == nullptr) {
    return message.fail(
        FA4_ERROR_NO_DEVICE,
        "the calling thread has no current CUDA context; make one current first: with the driver API by "
        "cuDevicePrimaryCtxRetain and cuCtxSetCurrent, with the runtime API by cudaSetDevice, before CUDA 12 "
        "also cudaFree(0)");
  }
  CUdevice device = 0;
  int sm_count = 0;
  status = driver_.check(driver_.cuCtxGetDevice(&device), "cuCtxGetDevice", message);
  if (status != FA4_OK) return status;
  status =
      driver_.check(driver_.cuDeviceGetAttribute(&sm_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
                    "cuDeviceGetAttribute", message);
  if (status != FA4_OK) return status;
  sm_count_ = static_cast<uint32_t>(sm_count);
  return library_.load(driver_, params.image != nullptr ? params.image : builtin_image(), device, message);
}

fa4_status Context::forward(const fa4_forward_params& problem, Message& message) const {
  Plan plan;
  fa4_status status = plan_forward(problem, {&library_.kernels(), sm_count_}, plan, message);
  if (status != FA4_OK || plan.grid == 0) return status;
  if (status = check_workspace(problem, message); status != FA4_OK) return status;

  CUcontext current = nullptr;
  status = driver_.check(driver_.cuCtxGetCurrent(&current), "cuCtxGetCurrent", message);
  if (status != FA4_OK) return status;
  if (current == nullptr) {
    return message.fail(
        FA4_ERROR_NO_DEVICE,
        "the calling thread has no current CUDA context; make the one of fa4_create current, %p, by "
        "cuCtxSetCurrent or cudaSetDevice",
        static_cast<void*>(cuda_context_));
  }
  if (current != cuda_context_) {
    return message.fail(
        FA4_ERROR_NO_DEVICE,
        "the calling thread's current CUDA context is %p; the fa4_context was created in %p, which must be "
        "current",
        static_cast<void*>(current), static_cast<void*>(cuda_context_));
  }

  AttentionParams& params = plan.params;
  status = encode_tensor_map(driver_, plan.q, "q", params.q, message);
  if (status == FA4_OK) status = encode_tensor_map(driver_, plan.k, "k", params.k, message);
  if (status == FA4_OK) status = encode_tensor_map(driver_, plan.v, "v", params.v, message);
  if (status == FA4_OK) status = encode_tensor_map(driver_, plan.o, "o", params.o, message);
  if (status != FA4_OK) return status;

  void* arguments[] = {&params};
  return driver_.check(
      driver_.cuLaunchKernel(library_.function(*plan.kernel), plan.grid, 1, 1, plan.kernel->threads, 1, 1,
                             plan.kernel->shared_bytes, static_cast<CUstream>(problem.stream), arguments, nullptr),
      "cuLaunchKernel", message);
}

}  // namespace fa4
