// SPDX-License-Identifier: Apache-2.0
// Modules (of a context) and libraries (of the process): loading, their kernels and their variables.
#include <cstring>
#include <fstream>
#include <iterator>

#include "../ptx/module.h"
#include "image.h"
#include "state.h"

using namespace fa4::sim;
using namespace fa4::sim::driver;

namespace {

CUresult null_result() {
  return fail(CUDA_ERROR_INVALID_VALUE, "the pointer for the result is null");
}

// The options of a load that have an effect here: where the log goes. The others tune a compiler that there
// is none of.
class JitOptions {
 public:
  CUresult read(unsigned count, CUjit_option* options, void** values) {
    if (count > 0 && (options == nullptr || values == nullptr))
      return fail(CUDA_ERROR_INVALID_VALUE, "options are announced but their array is null");
    for (unsigned i = 0; i < count; ++i) {
      const auto number = static_cast<unsigned>(reinterpret_cast<uintptr_t>(values[i]));
      switch (options[i]) {
        case CU_JIT_ERROR_LOG_BUFFER:
          error_ = static_cast<char*>(values[i]);
          break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
          error_bytes_ = number, error_size_ = &values[i];
          break;
        case CU_JIT_INFO_LOG_BUFFER:
          info_ = static_cast<char*>(values[i]);
          break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
          info_bytes_ = number, info_size_ = &values[i];
          break;
        case CU_JIT_TARGET:
          if (number % CU_COMPUTE_ACCELERATED_TARGET_BASE != state().gpu->number)
            return fail(CUDA_ERROR_INVALID_VALUE,
                        "CU_JIT_TARGET must be " + std::to_string(state().gpu->number) + ", not " + std::to_string(number));
          break;
        default:
          if (options[i] < 0 || options[i] >= CU_JIT_NUM_OPTIONS)
            return fail(CUDA_ERROR_INVALID_VALUE, text("unknown option of a load: ", options[i]));
      }
    }
    return CUDA_SUCCESS;
  }
  // Writes the log of a load that ended with `result`.
  void report(CUresult result) const {
    write(error_, error_bytes_, error_size_, result == CUDA_SUCCESS ? "" : last_error());
    write(info_, info_bytes_, info_size_, "");
  }

 private:
  static void write(char* buffer, size_t bytes, void** size, const std::string& log) {
    if (buffer == nullptr || bytes == 0) return;
    const size_t used = std::min(bytes - 1, log.size());
    std::memcpy(buffer, log.data(), used);
    buffer[used] = '\0';
    *size = reinterpret_cast<void*>(uintptr_t{used});
  }
  char* error_ = nullptr;
  char* info_ = nullptr;
  size_t error_bytes_ = 0, info_bytes_ = 0;
  void **error_size_ = nullptr, **info_size_ = nullptr;
};

// Puts the module's variables into device memory.
CUresult place_globals(Code* code) {
  State& s = state();
  std::lock_guard guard(s.device_lock);
  GlobalMemory& memory = s.device->memory();
  const auto& globals = code->program->globals();
  for (size_t i = 0; i < globals.size(); ++i) {
    const uint64_t address = memory.allocate(globals[i].size);
    if (address == 0) {
      for (uint64_t placed : code->global_addresses) memory.release(placed);
      if (globals[i].size == 0)
        return fail(CUDA_ERROR_INVALID_PTX, "variable " + globals[i].name + " is declared but not defined");
      return fail(CUDA_ERROR_OUT_OF_MEMORY, "no room in device memory for variable " + globals[i].name +
                                                " of " + std::to_string(globals[i].size) + " bytes");
    }
    code->global_addresses.push_back(address);
    std::byte* const target = memory.at(address, globals[i].size);
    const std::vector<std::byte> initial = Device::initial_bytes(*code->program, i);
    const size_t given = std::min<size_t>(initial.size(), globals[i].size);
    std::memcpy(target, initial.data(), given);
    std::memset(target + given, 0, globals[i].size - given);  // reused memory is not zero by itself
  }
  return CUDA_SUCCESS;
}

CUresult load_code(const void* bytes, size_t size, std::shared_ptr<Code>* result) {
  Image image;
  if (CUresult r = read_image(bytes, size, &image)) return r;
  auto code = std::make_shared<Code>();
  code->ptx_version = image.header.version;
  try {
    code->program = build_program(std::move(image.ptx));
  } catch (const ptx::Error& error) {
    return fail(CUDA_ERROR_INVALID_PTX, error.what());
  }
  if (CUresult r = place_globals(code.get())) return r;
  *result = std::move(code);
  return CUDA_SUCCESS;
}

CUresult read_file(const char* path, std::vector<char>* bytes) {
  if (path == nullptr) return fail(CUDA_ERROR_INVALID_VALUE, "the file name is null");
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(CUDA_ERROR_FILE_NOT_FOUND, std::string("cannot open ") + path);
  bytes->assign(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return fail(CUDA_ERROR_OPERATING_SYSTEM, std::string("cannot read ") + path);
  return CUDA_SUCCESS;
}

CUresult load_module(CUmodule* result, const void* bytes, size_t size, const JitOptions& options) {
  return in_context([&](CUcontext current) -> CUresult {
    if (result == nullptr) return null_result();
    auto module = std::make_shared<Module>();
    const CUresult loaded = load_code(bytes, size, &module->code);
    options.report(loaded);
    if (loaded != CUDA_SUCCESS) return loaded;
    module->context = current;
    State& s = state();
    std::lock_guard guard(s.lock);
    *result = s.modules.add(module);
    add_functions(module->code, current, *result, nullptr, &module->functions);
    return CUDA_SUCCESS;
  });
}

CUresult load_library(CUlibrary* result, const void* bytes, size_t size, const JitOptions& options) {
  if (result == nullptr) return null_result();
  auto library = std::make_shared<Library>();
  const CUresult loaded = load_code(bytes, size, &library->code);
  options.report(loaded);
  // As a real driver, a library without code for this GPU loads; looking for a kernel in it then fails with
  // this.
  if (loaded == CUDA_ERROR_NO_BINARY_FOR_GPU)
    library->refusal = last_error();
  else if (loaded != CUDA_SUCCESS)
    return loaded;
  State& s = state();
  std::lock_guard guard(s.lock);
  *result = s.libraries.add(library);
  if (library->code != nullptr) {
    auto module = std::make_shared<Module>();
    module->library = *result;
    module->code = library->code;
    library->module = s.modules.add(module);
    add_functions(module->code, nullptr, library->module, *result, &module->functions);
  }
  return CUDA_SUCCESS;
}

CUresult check_library_options(unsigned count, CUlibraryOption* options) {
  if (count > 0 && options == nullptr)
    return fail(CUDA_ERROR_INVALID_VALUE, "library options are announced but their array is null");
  for (unsigned i = 0; i < count; ++i)
    if (options[i] != CU_LIBRARY_BINARY_IS_PRESERVED)
      return fail(CUDA_ERROR_NOT_SUPPORTED, text("library option is not simulated: ", options[i]));
  return CUDA_SUCCESS;
}

// Call with the lock held.
CUresult find_module(CUmodule handle, std::shared_ptr<Module>* module) {
  *module = state().modules.find(handle);
  return *module ? CUDA_SUCCESS : fail(CUDA_ERROR_INVALID_HANDLE, "the module handle is not a live module");
}

// Call with the lock held. A library that holds no code for this GPU is refused with 209.
CUresult find_library_module(CUlibrary handle, std::shared_ptr<Module>* module, CUmodule* module_handle) {
  const auto library = state().libraries.find(handle);
  if (library == nullptr) return fail(CUDA_ERROR_INVALID_HANDLE, "the library handle is not a live library");
  if (library->code == nullptr) return fail(CUDA_ERROR_NO_BINARY_FOR_GPU, library->refusal);
  *module_handle = library->module;
  return find_module(library->module, module);
}

CUresult find_entry(const Module& module, const char* name, CUfunction* result) {
  if (result == nullptr) return null_result();
  if (name == nullptr) return fail(CUDA_ERROR_INVALID_VALUE, "the name of the kernel is null");
  auto found = module.functions.find(name);
  if (found != module.functions.end()) return *result = found->second, CUDA_SUCCESS;
  std::string names;
  for (const auto& [held, function] : module.functions) names += (names.empty() ? "" : ", ") + held;
  return fail(CUDA_ERROR_NOT_FOUND, std::string("no kernel ") + name + "; the image holds " +
                                        (names.empty() ? std::string("none") : names));
}

// Called without the lock: a kernel is decoded when it is first asked for.
CUresult take(CUfunction found, CUfunction* result) {
  return api([&]() -> CUresult {
    std::shared_ptr<Function> function;
    if (CUresult r = find_function(found, &function)) return r;
    return *result = found, CUDA_SUCCESS;
  });
}

CUresult find_global(const Code& code, const char* name, CUdeviceptr* address, size_t* bytes) {
  if (name == nullptr) return fail(CUDA_ERROR_INVALID_VALUE, "the name of the variable is null");
  if (address == nullptr && bytes == nullptr) return fail(CUDA_ERROR_INVALID_VALUE, "neither the address nor the size is asked for");
  const auto& globals = code.program->globals();
  for (size_t i = 0; i < globals.size(); ++i) {
    if (globals[i].name != name) continue;
    if (address != nullptr) *address = code.global_addresses[i];
    if (bytes != nullptr) *bytes = globals[i].size;
    return CUDA_SUCCESS;
  }
  for (const std::string& entry : code.program->entries())
    if (entry == name) return fail(CUDA_ERROR_INVALID_VALUE, std::string(name) + " is a kernel, not a variable");
  return fail(CUDA_ERROR_NOT_FOUND, std::string("no variable ") + name + " in the image");
}

template <typename Handle>
CUresult enumerate(const Module& module, Handle* functions, unsigned count) {
  if (functions == nullptr && count > 0) return null_result();
  auto it = module.functions.begin();
  for (unsigned i = 0; i < count && it != module.functions.end(); ++i, ++it)
    functions[i] = reinterpret_cast<Handle>(it->second);
  return CUDA_SUCCESS;
}

// body(module) with the lock held, for calls about a live module in a context.
template <typename Body>
CUresult of_module(CUmodule handle, Body body) {
  return in_context([&](CUcontext) -> CUresult {
    std::lock_guard guard(state().lock);
    std::shared_ptr<Module> module;
    if (CUresult r = find_module(handle, &module)) return r;
    return body(*module);
  });
}

template <typename Body>
CUresult of_library(CUlibrary handle, Body body) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    std::lock_guard guard(state().lock);
    std::shared_ptr<Module> module;
    CUmodule module_handle;
    if (CUresult r = find_library_module(handle, &module, &module_handle)) return r;
    return body(*module, module_handle);
  });
}

}  // namespace

FA4SIM_EXPORT CUresult CUDAAPI cuModuleLoadData(CUmodule* result, const void* image) {
  return load_module(result, image, unknown_size, {});
}

FA4SIM_EXPORT CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule* result, const void* image) {
  return load_module(result, image, unknown_size, {});
}

FA4SIM_EXPORT CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* result, const void* image, unsigned int count,
                                                  CUjit_option* options, void** values) {
  return in_context([&](CUcontext) -> CUresult {
    JitOptions jit;
    if (CUresult r = jit.read(count, options, values)) return r;
    return load_module(result, image, unknown_size, jit);
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuModuleLoad(CUmodule* result, const char* path) {
  return in_context([&](CUcontext) -> CUresult {
    std::vector<char> bytes;
    if (CUresult r = read_file(path, &bytes)) return r;
    return load_module(result, bytes.data() ? bytes.data() : "", bytes.size(), {});
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuModuleUnload(CUmodule handle) {
  return in_context([&](CUcontext) -> CUresult {
    State& s = state();
    std::shared_ptr<Module> module;
    {
      std::lock_guard guard(s.lock);
      if (CUresult r = find_module(handle, &module)) return r;
      if (module->library != nullptr)
        return fail(CUDA_ERROR_INVALID_HANDLE,
                    "the module belongs to a library, which is unloaded as a whole");
      s.modules.remove(handle);
      s.functions.remove_if([&](const Function& function) { return function.module == handle; });
    }
    free_globals(*module->code);
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuModuleGetFunction(CUfunction* result, CUmodule handle, const char* name) {
  CUfunction found = nullptr;
  if (CUresult r = of_module(handle, [&](const Module& module) { return find_entry(module, name, result == nullptr ? nullptr : &found); })) return r;
  return take(found, result);
}

FA4SIM_EXPORT CUresult CUDAAPI cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  return of_module(handle, [&](const Module& module) -> CUresult {
    if (count == nullptr) return null_result();
    *count = static_cast<unsigned>(module.functions.size());
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count,
                                                          CUmodule handle) {
  return of_module(handle, [&](const Module& module) { return enumerate(module, functions, count); });
}

FA4SIM_EXPORT CUresult CUDAAPI cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule handle,
                                                 const char* name) {
  return of_module(handle,
                   [&](const Module& module) { return find_global(*module.code, name, address, bytes); });
}

FA4SIM_EXPORT CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    if (mode == nullptr) return null_result();
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuLibraryLoadData(CUlibrary* result, const void* image, CUjit_option* options,
                                                 void** values, unsigned int count,
                                                 CUlibraryOption* library_options, void**,
                                                 unsigned int library_count) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    JitOptions jit;
    if (CUresult r = jit.read(count, options, values)) return r;
    if (CUresult r = check_library_options(library_count, library_options)) return r;
    return load_library(result, image, unknown_size, jit);
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary* result, const char* path,
                                                     CUjit_option* options, void** values, unsigned int count,
                                                     CUlibraryOption* library_options, void**,
                                                     unsigned int library_count) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    JitOptions jit;
    if (CUresult r = jit.read(count, options, values)) return r;
    if (CUresult r = check_library_options(library_count, library_options)) return r;
    std::vector<char> bytes;
    if (CUresult r = read_file(path, &bytes)) return r;
    return load_library(result, bytes.data() ? bytes.data() : "", bytes.size(), jit);
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuLibraryUnload(CUlibrary handle) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    State& s = state();
    std::shared_ptr<Library> library;
    {
      std::lock_guard guard(s.lock);
      library = s.libraries.find(handle);
      if (library == nullptr)
        return fail(CUDA_ERROR_INVALID_HANDLE, "the library handle is not a live library");
      s.libraries.remove(handle);
      s.modules.remove(library->module);
      s.functions.remove_if([&](const Function& function) { return function.library == handle; });
    }
    if (library->code != nullptr) free_globals(*library->code);
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuLibraryGetKernel(CUkernel* result, CUlibrary handle, const char* name) {
  CUfunction found = nullptr;
  if (CUresult r = of_library(handle, [&](const Module& module, CUmodule) { return find_entry(module, name, result == nullptr ? nullptr : &found); })) return r;
  return take(found, reinterpret_cast<CUfunction*>(result));
}

FA4SIM_EXPORT CUresult CUDAAPI cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
  return of_library(handle, [&](const Module& module, CUmodule) -> CUresult {
    if (count == nullptr) return null_result();
    *count = static_cast<unsigned>(module.functions.size());
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int count,
                                                         CUlibrary handle) {
  return of_library(handle,
                    [&](const Module& module, CUmodule) { return enumerate(module, kernels, count); });
}

FA4SIM_EXPORT CUresult CUDAAPI cuLibraryGetModule(CUmodule* result, CUlibrary handle) {
  return in_context([&](CUcontext) {
    return of_library(handle, [&](const Module&, CUmodule module) -> CUresult {
      if (result == nullptr) return null_result();
      *result = module;
      return CUDA_SUCCESS;
    });
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary handle,
                                                  const char* name) {
  return in_context([&](CUcontext) {
    return of_library(handle, [&](const Module& module, CUmodule) {
      return find_global(*module.code, name, address, bytes);
    });
  });
}
