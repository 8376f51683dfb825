// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: every exported driver function by its plain name. And cuGetExportTable, which gives none.
#define CUDA_ENABLE_DEPRECATED  // cuDeviceComputeCapability is on offer like any other

#include <atomic>
#include <cstring>

#include "state.h"

using namespace fa4::sim::driver;

// The form before 13, which cuda.h no longer shows.
extern "C" CUresult CUDAAPI cuCtxCreate_v2(CUcontext* result, unsigned int flags, CUdevice device);

namespace {

struct Symbol {
  const char* name;  // without the suffix that the header's macros add
  void* function;
  int from_version = 0;  // of CUDA, in which the plain name came to mean this form
};

// The name is taken before, the address after the header's macros have added their suffix.
#define ROW(function) \
  { #function, reinterpret_cast < void*>(function) }
const Symbol symbols[] = {
    {"cuCtxCreate", reinterpret_cast<void*>(cuCtxCreate), 13000},
    {"cuCtxCreate", reinterpret_cast<void*>(cuCtxCreate_v2)},
    ROW(cuCtxDestroy),
    ROW(cuCtxGetApiVersion),
    ROW(cuCtxGetCurrent),
    ROW(cuCtxGetDevice),
    ROW(cuCtxGetFlags),
    ROW(cuCtxGetId),
    ROW(cuCtxGetStreamPriorityRange),
    ROW(cuCtxPopCurrent),
    ROW(cuCtxPushCurrent),
    ROW(cuCtxSetCurrent),
    ROW(cuCtxSynchronize),
    ROW(cuDeviceComputeCapability),
    ROW(cuDeviceGet),
    ROW(cuDeviceGetAttribute),
    ROW(cuDeviceGetCount),
    ROW(cuDeviceGetName),
    ROW(cuDeviceGetUuid),
    ROW(cuDevicePrimaryCtxGetState),
    ROW(cuDevicePrimaryCtxRelease),
    ROW(cuDevicePrimaryCtxReset),
    ROW(cuDevicePrimaryCtxRetain),
    ROW(cuDevicePrimaryCtxSetFlags),
    ROW(cuDeviceTotalMem),
    ROW(cuDriverGetVersion),
    ROW(cuEventCreate),
    ROW(cuEventDestroy),
    ROW(cuEventElapsedTime),
    ROW(cuEventQuery),
    ROW(cuEventRecord),
    ROW(cuEventRecordWithFlags),
    ROW(cuEventSynchronize),
    ROW(cuFuncGetAttribute),
    ROW(cuFuncGetModule),
    ROW(cuFuncGetName),
    ROW(cuFuncGetParamInfo),
    ROW(cuFuncSetAttribute),
    ROW(cuGetErrorName),
    ROW(cuGetErrorString),
    ROW(cuGetExportTable),
    ROW(cuGetProcAddress),
    ROW(cuInit),
    ROW(cuKernelGetAttribute),
    ROW(cuKernelGetFunction),
    ROW(cuKernelGetLibrary),
    ROW(cuKernelGetName),
    ROW(cuKernelGetParamInfo),
    ROW(cuKernelSetAttribute),
    ROW(cuLaunchCooperativeKernel),
    ROW(cuLaunchHostFunc),
    ROW(cuLaunchKernel),
    ROW(cuLaunchKernelEx),
    ROW(cuLibraryEnumerateKernels),
    ROW(cuLibraryGetGlobal),
    ROW(cuLibraryGetKernel),
    ROW(cuLibraryGetKernelCount),
    ROW(cuLibraryGetModule),
    ROW(cuLibraryLoadData),
    ROW(cuLibraryLoadFromFile),
    ROW(cuLibraryUnload),
    ROW(cuMemAlloc),
    ROW(cuMemAllocHost),
    ROW(cuMemFree),
    ROW(cuMemFreeHost),
    ROW(cuMemGetAddressRange),
    ROW(cuMemGetInfo),
    ROW(cuMemHostAlloc),
    ROW(cuMemcpy),
    ROW(cuMemcpyAsync),
    ROW(cuMemcpyDtoD),
    ROW(cuMemcpyDtoDAsync),
    ROW(cuMemcpyDtoH),
    ROW(cuMemcpyDtoHAsync),
    ROW(cuMemcpyHtoD),
    ROW(cuMemcpyHtoDAsync),
    ROW(cuMemsetD16),
    ROW(cuMemsetD16Async),
    ROW(cuMemsetD32),
    ROW(cuMemsetD32Async),
    ROW(cuMemsetD8),
    ROW(cuMemsetD8Async),
    ROW(cuModuleEnumerateFunctions),
    ROW(cuModuleGetFunction),
    ROW(cuModuleGetFunctionCount),
    ROW(cuModuleGetGlobal),
    ROW(cuModuleGetLoadingMode),
    ROW(cuModuleLoad),
    ROW(cuModuleLoadData),
    ROW(cuModuleLoadDataEx),
    ROW(cuModuleLoadFatBinary),
    ROW(cuModuleUnload),
    ROW(cuOccupancyMaxActiveBlocksPerMultiprocessor),
    ROW(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags),
    ROW(cuOccupancyMaxActiveClusters),
    ROW(cuOccupancyMaxPotentialClusterSize),
    ROW(cuPointerGetAttribute),
    ROW(cuStreamBeginCapture),
    ROW(cuStreamCreate),
    ROW(cuStreamCreateWithPriority),
    ROW(cuStreamDestroy),
    ROW(cuStreamEndCapture),
    ROW(cuStreamGetCtx),
    ROW(cuStreamGetDevice),
    ROW(cuStreamGetFlags),
    ROW(cuStreamGetId),
    ROW(cuStreamGetPriority),
    ROW(cuStreamIsCapturing),
    ROW(cuStreamQuery),
    ROW(cuStreamSynchronize),
    ROW(cuStreamWaitEvent),
    ROW(cuTensorMapEncodeTiled),
};
#undef ROW

}  // namespace

FA4SIM_EXPORT CUresult CUDAAPI cuGetProcAddress(const char* name, void** function, int version,
                                                cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  if (name == nullptr || function == nullptr)
    return fail(CUDA_ERROR_INVALID_VALUE, "the name or the pointer for the result is null");
  if (version > CUDA_VERSION)
    return fail(CUDA_ERROR_INVALID_VALUE, text("the driver is of CUDA 13000, asked for was ", version));
  const cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (flags & ~known) return fail(CUDA_ERROR_INVALID_VALUE, "unknown flags " + hex(flags));
  *function = nullptr;
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  for (const Symbol& symbol : symbols) {
    if (std::strcmp(symbol.name, name) != 0 || version < symbol.from_version) continue;
    *function = symbol.function;
    if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SUCCESS;
    break;
  }
  return CUDA_SUCCESS;
}

// NVIDIA's CUDA runtime asks for tables of undocumented functions before anything else, and answers every
// call of the program with the code that it gets. The program cannot ask for the sentence, hence aloud, once.
FA4SIM_EXPORT CUresult CUDAAPI cuGetExportTable(const void** table, const CUuuid*) {
  if (table != nullptr) *table = nullptr;
  static std::atomic<bool> told{false};
  return (told.exchange(true) ? fail : fail_aloud)(
      CUDA_ERROR_NOT_SUPPORTED,
      "NVIDIA's CUDA runtime is in this program, linked into it or as a libcudart.so of its own, and needs "
      "functions of the driver that are not documented (cuGetExportTable): build the program with nvcc "
      "-cudart shared and put the folder of the simulated GPU's libcudart.so.13 in front of LD_LIBRARY_PATH");
}
