// SPDX-License-Identifier: Apache-2.0
// Opens the driver with dlopen and resolves its functions; turns its codes into sentences.
#include "driver.h"

#include <dlfcn.h>

namespace fa4 {

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
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "a code unknown to the driver";
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) text = "no text";
  return message.fail(result == CUDA_ERROR_NO_DEVICE ? FA4_ERROR_NO_DEVICE : FA4_ERROR_DRIVER,
                      "%s failed with error %d, %s: %s", function, static_cast<int>(result), name, text);
}

}  // namespace fa4
