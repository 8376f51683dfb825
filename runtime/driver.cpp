// SPDX-License-Identifier: Apache-2.0
// Opens the driver with dlopen and resolves its functions; turns its codes into sentences.
#include "driver.h"

#include <dlfcn.h>

namespace fa4 {
namespace {

struct ErrorCode {
  CUresult code;
  const char* name;
  const char* meaning;
  const char* remedy;  // "" where none is to be had in general
};

constexpr const char* kLostContext =
    "the CUDA context is lost and must be destroyed; compute-sanitizer finds the kernel and its line";

// The codes that users meet. Name and meaning stand in for a driver that cannot give them, such as the
// toolkit's stub or one that is older than the code.
#define FA4_ERROR_CODE(code, meaning, remedy) \
  { code, #code, meaning, remedy }
constexpr ErrorCode kErrorCodes[] = {
    FA4_ERROR_CODE(CUDA_ERROR_OUT_OF_MEMORY, "out of memory",
                   "nvidia-smi shows who holds the device's memory"),
    FA4_ERROR_CODE(CUDA_ERROR_NOT_INITIALIZED, "the driver is not initialised",
                   "a process that was forked after cuInit cannot use CUDA: start it by exec, or call CUDA "
                   "only in the child"),
    FA4_ERROR_CODE(CUDA_ERROR_DEINITIALIZED, "the driver is shutting down",
                   "CUDA cannot be used in static destructors or exit handlers"),
    FA4_ERROR_CODE(CUDA_ERROR_STUB_LIBRARY, "this is the CUDA toolkit's stub library, not a driver",
                   "take the toolkit's lib64/stubs out of LD_LIBRARY_PATH and of rpaths and install the "
                   "NVIDIA driver; in a container, have the host's driver mounted (--gpus all)"),
    FA4_ERROR_CODE(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, "the driver is too old for the call",
                   "update the NVIDIA driver"),
    FA4_ERROR_CODE(CUDA_ERROR_DEVICE_UNAVAILABLE, "the device is busy or unavailable",
                   "another process may hold it in exclusive mode: nvidia-smi -q -d COMPUTE shows the mode"),
    FA4_ERROR_CODE(
        CUDA_ERROR_NO_DEVICE, "no CUDA device is visible",
        "see that nvidia-smi lists one, that CUDA_VISIBLE_DEVICES does not hide it, and that a container has "
        "/dev/nvidia* (--gpus all)"),
    FA4_ERROR_CODE(CUDA_ERROR_INVALID_DEVICE, "no device has this number",
                   "CUDA_VISIBLE_DEVICES renumbers the devices of nvidia-smi from 0"),
    FA4_ERROR_CODE(CUDA_ERROR_DEVICE_NOT_LICENSED, "the device has no licence",
                   "a virtual GPU needs a licence from its licence server"),
    FA4_ERROR_CODE(CUDA_ERROR_INVALID_IMAGE, "the image is not valid", ""),
    FA4_ERROR_CODE(
        CUDA_ERROR_INVALID_CONTEXT, "no valid context is current",
        "make one current: cuDevicePrimaryCtxRetain and cuCtxSetCurrent, or cudaSetDevice and cudaFree(0)"),
    FA4_ERROR_CODE(CUDA_ERROR_NO_BINARY_FOR_GPU, "the image holds no code for this device",
                   "build it for the device's architecture, or as PTX of one that is no newer"),
    FA4_ERROR_CODE(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable memory error",
                   "reset the GPU: nvidia-smi -r"),
    FA4_ERROR_CODE(CUDA_ERROR_INVALID_PTX, "the PTX could not be compiled", ""),
    FA4_ERROR_CODE(
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "the driver's PTX compiler was not found",
        "libnvidia-ptxjitcompiler.so.1 belongs to the driver: install all of it, or have it mounted into the "
        "container"),
    FA4_ERROR_CODE(
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the PTX is newer than the driver's compiler",
        "update the NVIDIA driver, or build the image with the toolkit of the driver's CUDA version"),
    FA4_ERROR_CODE(CUDA_ERROR_JIT_COMPILATION_DISABLED, "compiling PTX is disabled",
                   "unset CUDA_DISABLE_PTX_JIT"),
    FA4_ERROR_CODE(CUDA_ERROR_OPERATING_SYSTEM, "a call of the operating system failed",
                   "see that this user may open /dev/nvidia* and that nvidia-smi works"),
    FA4_ERROR_CODE(CUDA_ERROR_NOT_FOUND, "the name was not found",
                   "the image must hold all kernels of this library"),
    FA4_ERROR_CODE(CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel accessed an illegal address", kLostContext),
    FA4_ERROR_CODE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "the launch asks for too many resources", ""),
    FA4_ERROR_CODE(CUDA_ERROR_LAUNCH_TIMEOUT, "a kernel did not end in time", kLostContext),
    FA4_ERROR_CODE(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed",
                   "the CUDA context must outlive the fa4_context"),
    FA4_ERROR_CODE(CUDA_ERROR_ILLEGAL_INSTRUCTION, "a kernel executed an illegal instruction", kLostContext),
    FA4_ERROR_CODE(CUDA_ERROR_MISALIGNED_ADDRESS, "a kernel accessed a misaligned address", kLostContext),
    FA4_ERROR_CODE(CUDA_ERROR_LAUNCH_FAILED, "a kernel failed", kLostContext),
    FA4_ERROR_CODE(CUDA_ERROR_NOT_SUPPORTED, "not supported on this device or by this driver", ""),
    FA4_ERROR_CODE(CUDA_ERROR_SYSTEM_NOT_READY, "the system is not ready for CUDA",
                   "systems with NVSwitch need the service nvidia-fabricmanager, of the driver's version"),
    FA4_ERROR_CODE(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
                   "the driver library and the kernel module are of different versions",
                   "reboot after an update of the driver; in a container, mount the host's libcuda.so.1"),
    FA4_ERROR_CODE(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
                   "forward compatibility is not supported on this device",
                   "take the package cuda-compat out of LD_LIBRARY_PATH, or update the NVIDIA driver"),
    FA4_ERROR_CODE(CUDA_ERROR_MPS_CONNECTION_FAILED, "no connection to the MPS server",
                   "start nvidia-cuda-mps-control, or unset CUDA_MPS_PIPE_DIRECTORY"),
    FA4_ERROR_CODE(CUDA_ERROR_UNKNOWN, "unknown error",
                   "see dmesg; after a suspended session, reload the kernel module nvidia_uvm"),
};
#undef FA4_ERROR_CODE

fa4_status status_of(CUresult code) {
  switch (code) {
    case CUDA_ERROR_NO_DEVICE:
      return FA4_ERROR_NO_DEVICE;
    case CUDA_ERROR_STUB_LIBRARY:
      return FA4_ERROR_NO_DRIVER;
    default:
      return FA4_ERROR_DRIVER;
  }
}

}  // namespace

// Two steps, so that cuda.h's renaming happens before the name becomes a string.
#define FA4_SYMBOL_TEXT(symbol) #symbol
#define FA4_SYMBOL(name) FA4_SYMBOL_TEXT(name)
#define FA4_DRIVER_RESOLVE(name)                                                  \
  name = reinterpret_cast<decltype(&::name)>(resolve(FA4_SYMBOL(name), message)); \
  if (name == nullptr) return FA4_ERROR_NO_DRIVER;

Driver::~Driver() {
  if (handle_ != nullptr) dlclose(handle_);
}

fa4_status Driver::open(const char* library, Message& message) {
  library_ = library != nullptr ? library : kDefaultDriverLibrary;
  // RTLD_LOCAL: a simulated driver beside a real one must not lend it symbols.
  handle_ = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* reason = dlerror();
    return message.fail(
        FA4_ERROR_NO_DRIVER,
        "cannot open the CUDA driver library \"%s\": %s; install the NVIDIA driver, or name a driver "
        "library in driver_library",
        library_.c_str(), reason != nullptr ? reason : "no reason given");
  }
  FA4_DRIVER_FUNCTIONS(FA4_DRIVER_RESOLVE)
  return FA4_OK;
}

fa4_status HostDriver::open(const char* library, Message& message) {
  if (fa4_status status = Driver::open(library, message); status != FA4_OK) return status;
  FA4_HOST_DRIVER_FUNCTIONS(FA4_DRIVER_RESOLVE)
  return FA4_OK;
}

void* Driver::resolve(const char* symbol, Message& message) const {
  void* address = dlsym(handle_, symbol);
  if (address == nullptr) {
    message.fail(
        FA4_ERROR_NO_DRIVER,
        "the driver library \"%s\" has no function %s; a CUDA driver of version 12.0 or newer has it",
        library_.c_str(), symbol);
  }
  return address;
}

fa4_status Driver::check(CUresult result, const char* function, Message& message) const {
  if (result == CUDA_SUCCESS) return FA4_OK;
  ErrorCode known{result, "a code unknown to the driver", "no text", ""};
  for (const ErrorCode& row : kErrorCodes)
    if (row.code == result) known = row;
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = known.name;
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) text = known.meaning;
  // The file behind a soname says where a stub or an old driver comes from.
  Dl_info file{};
  if (dladdr(reinterpret_cast<void*>(cuInit), &file) == 0 || file.dli_fname == nullptr)
    file.dli_fname = library_.c_str();
  return message.fail(status_of(result), "%s failed with error %d, %s: %s%s%s (driver library \"%s\")",
                      function, static_cast<int>(result), name, text, *known.remedy ? "; " : "", known.remedy,
                      file.dli_fname);
}

}  // namespace fa4
