// SPDX-License-Identifier: Apache-2.0
// Names and descriptions of all result codes.
#include "state.h"

using namespace fa4::sim::driver;

namespace {

struct Description {
  CUresult code;
  const char* name;
  const char* text;
};

#define ROW(code, text) \
  { code, #code, text }
constexpr Description descriptions[] = {
    ROW(CUDA_SUCCESS, "no error"),
    ROW(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ROW(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ROW(CUDA_ERROR_NOT_INITIALIZED, "the driver is not initialised"),
    ROW(CUDA_ERROR_DEINITIALIZED, "the driver is shutting down"),
    ROW(CUDA_ERROR_PROFILER_DISABLED, "profiling is disabled"),
    ROW(CUDA_ERROR_PROFILER_NOT_INITIALIZED, "the profiler is not initialised"),
    ROW(CUDA_ERROR_PROFILER_ALREADY_STARTED, "the profiler runs already"),
    ROW(CUDA_ERROR_PROFILER_ALREADY_STOPPED, "the profiler is stopped already"),
    ROW(CUDA_ERROR_STUB_LIBRARY, "the driver library is a stub"),
    ROW(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, "the call needs a newer driver"),
    ROW(CUDA_ERROR_DEVICE_UNAVAILABLE, "the device is busy or unavailable"),
    ROW(CUDA_ERROR_NO_DEVICE, "no CUDA device"),
    ROW(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ROW(CUDA_ERROR_DEVICE_NOT_LICENSED, "the device is not licensed"),
    ROW(CUDA_ERROR_INVALID_IMAGE, "invalid kernel image"),
    ROW(CUDA_ERROR_INVALID_CONTEXT, "invalid context"),
    ROW(CUDA_ERROR_CONTEXT_ALREADY_CURRENT, "the context is current already"),
    ROW(CUDA_ERROR_MAP_FAILED, "mapping failed"),
    ROW(CUDA_ERROR_UNMAP_FAILED, "unmapping failed"),
    ROW(CUDA_ERROR_ARRAY_IS_MAPPED, "the array is mapped"),
    ROW(CUDA_ERROR_ALREADY_MAPPED, "the resource is mapped already"),
    ROW(CUDA_ERROR_NO_BINARY_FOR_GPU, "the image holds no code for this device"),
    ROW(CUDA_ERROR_ALREADY_ACQUIRED, "the resource is acquired already"),
    ROW(CUDA_ERROR_NOT_MAPPED, "the resource is not mapped"),
    ROW(CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "the resource is not mapped as an array"),
    ROW(CUDA_ERROR_NOT_MAPPED_AS_POINTER, "the resource is not mapped as a pointer"),
    ROW(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable memory error"),
    ROW(CUDA_ERROR_UNSUPPORTED_LIMIT, "the limit is not supported"),
    ROW(CUDA_ERROR_CONTEXT_ALREADY_IN_USE, "the context is in use by another thread"),
    ROW(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported"),
    ROW(CUDA_ERROR_INVALID_PTX, "the PTX could not be compiled"),
    ROW(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, "invalid graphics context"),
    ROW(CUDA_ERROR_NVLINK_UNCORRECTABLE, "uncorrectable NVLink error"),
    ROW(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "the PTX compiler was not found"),
    ROW(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the PTX version is newer than the driver's"),
    ROW(CUDA_ERROR_JIT_COMPILATION_DISABLED, "compiling PTX is disabled"),
    ROW(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "the execution affinity is not supported"),
    ROW(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, "synchronising on the device is not supported"),
    ROW(CUDA_ERROR_CONTAINED, "a contained hardware error"),
    ROW(CUDA_ERROR_INVALID_SOURCE, "invalid kernel source"),
    ROW(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    ROW(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "a symbol of a shared object was not found"),
    ROW(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "a shared object could not be initialised"),
    ROW(CUDA_ERROR_OPERATING_SYSTEM, "a call of the operating system failed"),
    ROW(CUDA_ERROR_INVALID_HANDLE, "invalid handle"),
    ROW(CUDA_ERROR_ILLEGAL_STATE, "the operation is not allowed in this state"),
    ROW(CUDA_ERROR_LOSSY_QUERY, "the query would lose information"),
    ROW(CUDA_ERROR_NOT_FOUND, "no such name"),
    ROW(CUDA_ERROR_NOT_READY, "not ready"),
    ROW(CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel accessed an illegal address"),
    ROW(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "the launch asks for too many resources"),
    ROW(CUDA_ERROR_LAUNCH_TIMEOUT, "a kernel did not end"),
    ROW(CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, "incompatible texturing mode"),
    ROW(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is enabled already"),
    ROW(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access is not enabled"),
    ROW(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is active"),
    ROW(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed"),
    ROW(CUDA_ERROR_ASSERT, "an assertion in a kernel failed"),
    ROW(CUDA_ERROR_TOO_MANY_PEERS, "too many peers"),
    ROW(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "the host memory is registered already"),
    ROW(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "the host memory is not registered"),
    ROW(CUDA_ERROR_HARDWARE_STACK_ERROR, "stack error in a kernel"),
    ROW(CUDA_ERROR_ILLEGAL_INSTRUCTION, "a kernel executed an illegal instruction"),
    ROW(CUDA_ERROR_MISALIGNED_ADDRESS, "a kernel accessed a misaligned address"),
    ROW(CUDA_ERROR_INVALID_ADDRESS_SPACE, "a kernel accessed an address of the wrong space"),
    ROW(CUDA_ERROR_INVALID_PC, "a kernel jumped to an invalid address"),
    ROW(CUDA_ERROR_LAUNCH_FAILED, "a kernel failed"),
    ROW(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks for a cooperative launch"),
    ROW(CUDA_ERROR_TENSOR_MEMORY_LEAK, "a kernel ended without freeing its tensor memory"),
    ROW(CUDA_ERROR_NOT_PERMITTED, "not permitted"),
    ROW(CUDA_ERROR_NOT_SUPPORTED, "not supported"),
    ROW(CUDA_ERROR_SYSTEM_NOT_READY, "the system is not ready"),
    ROW(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "driver versions of the system disagree"),
    ROW(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "forward compatibility is not supported on this device"),
    ROW(CUDA_ERROR_MPS_CONNECTION_FAILED, "no connection to the MPS server"),
    ROW(CUDA_ERROR_MPS_RPC_FAILURE, "a call of the MPS server failed"),
    ROW(CUDA_ERROR_MPS_SERVER_NOT_READY, "the MPS server is not ready"),
    ROW(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "the MPS server has its most clients"),
    ROW(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, "the MPS server has its most connections"),
    ROW(CUDA_ERROR_MPS_CLIENT_TERMINATED, "the MPS client was ended"),
    ROW(CUDA_ERROR_CDP_NOT_SUPPORTED, "launches from the device are not supported"),
    ROW(CUDA_ERROR_CDP_VERSION_MISMATCH, "versions of launches from the device disagree"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not possible while a stream is captured"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "an error ended the capture"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_MERGE, "two captures would merge"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture began elsewhere"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "the capture has unjoined work"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "a dependence would cross the capture's border"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "an implicit dependence in a capture"),
    ROW(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a capture"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture belongs to another thread"),
    ROW(CUDA_ERROR_TIMEOUT, "timeout"),
    ROW(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph cannot be updated that way"),
    ROW(CUDA_ERROR_EXTERNAL_DEVICE, "an error of an external device"),
    ROW(CUDA_ERROR_INVALID_CLUSTER_SIZE, "invalid cluster size"),
    ROW(CUDA_ERROR_FUNCTION_NOT_LOADED, "the function is not loaded"),
    ROW(CUDA_ERROR_INVALID_RESOURCE_TYPE, "invalid resource type"),
    ROW(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "invalid resource configuration"),
    ROW(CUDA_ERROR_KEY_ROTATION, "a key is being rotated"),
    ROW(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef ROW

CUresult look_up(CUresult code, const char** result, const char* Description::*what) {
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *result = nullptr;
  for (const Description& description : descriptions)
    if (description.code == code) return *result = description.*what, CUDA_SUCCESS;
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

FA4SIM_EXPORT CUresult CUDAAPI cuGetErrorName(CUresult code, const char** name) {
  return look_up(code, name, &Description::name);
}

FA4SIM_EXPORT CUresult CUDAAPI cuGetErrorString(CUresult code, const char** text) {
  return look_up(code, text, &Description::text);
}
