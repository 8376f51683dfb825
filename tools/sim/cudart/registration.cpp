// SPDX-License-Identifier: Apache-2.0
// What nvcc's generated host code calls: fat binaries with their kernels and variables make themselves known
// before main(), and are loaded when one of them is first used; launches of the <<<>>> form.
#include <cstdio>
#include <list>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "../per_thread.h"
#include "cudart.h"

using namespace fa4::sim::cudart;

namespace {

struct Binary {
  const void* image;
  CUlibrary library = nullptr;
  CUresult refused = CUDA_SUCCESS;  // what its load came to, which every later use comes to as well
};

struct Entry {
  Binary* binary;
  const char* name;
  CUfunction kernel = nullptr;
};

struct Variable {
  Binary* binary;
  const char* name;
  CUdeviceptr address = 0;
  size_t bytes = 0;
};

struct Registry {
  std::mutex lock;
  std::list<Binary> binaries;
  std::unordered_map<const void*, Entry> kernels;  // by host function
  std::unordered_map<const void*, Variable> variables;
};

// Never destroyed: programs unregister in exit handlers of their own.
Registry& registry() {
  static Registry* all = new Registry;
  return *all;
}

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
std::vector<Configuration>& configurations() {
  static auto* const all = new fa4::sim::PerThread<std::vector<Configuration>>;
  return all->get();
}

cudaError_t load(Binary* binary) {
  if (binary->library == nullptr && binary->refused == CUDA_SUCCESS)
    binary->refused =
        cuLibraryLoadData(&binary->library, binary->image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  return static_cast<cudaError_t>(binary->refused);
}

// The runtime has a code of its own for grids and blocks that no kernel can have.
bool possible(dim3 grid, dim3 block) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  return threads >= 1 && threads <= 1024 && block.z <= 64 && grid.x >= 1 && grid.x <= 0x7fff'ffff &&
         grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 && grid.z <= 65535;
}

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                   cudaStream_t stream) {
  return in_context([&] {
    CUfunction kernel;
    if (const cudaError_t error = find_kernel(function, &kernel)) return error;
    if (!possible(grid, block)) return cudaErrorInvalidConfiguration;
    return static_cast<cudaError_t>(cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                   static_cast<unsigned>(shared), stream, arguments,
                                                   nullptr));
  });
}

}  // namespace

namespace fa4::sim::cudart {

cudaError_t find_kernel(const void* function, CUfunction* kernel) {
  Registry& all = registry();
  std::lock_guard guard(all.lock);
  const auto found = all.kernels.find(function);
  if (found == all.kernels.end()) {
    // A handle of cudaGetKernel, cudaGetFuncBySymbol or the driver itself.
    *kernel = static_cast<CUfunction>(const_cast<void*>(function));
    const char* name;
    return cuFuncGetName(&name, *kernel) == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidDeviceFunction;
  }
  Entry& entry = found->second;
  if (entry.kernel == nullptr) {
    if (const cudaError_t error = load(entry.binary)) return error;
    CUkernel handle;
    if (const CUresult r = cuLibraryGetKernel(&handle, entry.binary->library, entry.name))
      return static_cast<cudaError_t>(r);
    if (const CUresult r = cuKernelGetFunction(&entry.kernel, handle)) return static_cast<cudaError_t>(r);
  }
  *kernel = entry.kernel;
  return cudaSuccess;
}

cudaError_t find_variable(const void* symbol, CUdeviceptr* address, size_t* bytes) {
  Registry& all = registry();
  std::lock_guard guard(all.lock);
  const auto found = all.variables.find(symbol);
  if (found == all.variables.end()) return cudaErrorInvalidSymbol;
  Variable& variable = found->second;
  if (variable.address == 0) {
    if (const cudaError_t error = load(variable.binary)) return error;
    if (const CUresult r =
            cuLibraryGetGlobal(&variable.address, &variable.bytes, variable.binary->library, variable.name))
      return static_cast<cudaError_t>(r);
  }
  *address = variable.address;
  *bytes = variable.bytes;
  return cudaSuccess;
}

}  // namespace fa4::sim::cudart

FA4SIM_CUDART void** __cudaRegisterFatBinary(void* image) {
  Registry& all = registry();
  std::lock_guard guard(all.lock);
  return reinterpret_cast<void**>(&all.binaries.emplace_back(Binary{image}));
}

FA4SIM_CUDART void __cudaRegisterFatBinaryEnd(void**) {}

// Modules end with the process; a program's exit handlers may still use what they hold.
FA4SIM_CUDART void __cudaUnregisterFatBinary(void**) {}

FA4SIM_CUDART char __cudaInitModule(void**) {
  return 1;
}

FA4SIM_CUDART void __cudaRegisterFunction(void** binary, const char* host_function, char*, const char* name,
                                          int, uint3*, uint3*, dim3*, dim3*, int*) {
  Registry& all = registry();
  std::lock_guard guard(all.lock);
  all.kernels[host_function] = Entry{reinterpret_cast<Binary*>(binary), name};
}

FA4SIM_CUDART void __cudaRegisterVar(void** binary, char* host_variable, char*, const char* name, int, size_t,
                                     int, int) {
  Registry& all = registry();
  std::lock_guard guard(all.lock);
  all.variables[host_variable] = Variable{reinterpret_cast<Binary*>(binary), name};
}

FA4SIM_CUDART void __cudaRegisterManagedVar(void**, void**, char*, const char* name, int, size_t, int, int) {
  say("managed variables are not simulated; uses of this one will fail", name);
}

FA4SIM_CUDART unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                   CUstream_st* stream) {
  configurations().push_back({grid, block, shared, stream});
  return 0;
}

FA4SIM_CUDART cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (configurations().empty()) return keep(cudaErrorMissingConfiguration);
  const Configuration c = configurations().back();
  configurations().pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  *static_cast<cudaStream_t*>(stream) = c.stream;
  return cudaSuccess;
}

// Asked once for each kernel, and its answer's error is lost: the module is loaded by the launch, which can
// report.
FA4SIM_CUDART cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

FA4SIM_CUDART cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                             size_t shared, cudaStream_t stream) {
  return launch(kernel, grid, block, arguments, shared, stream);
}

FA4SIM_CUDART cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                           size_t shared, cudaStream_t stream) {
  return launch(function, grid, block, arguments, shared, stream);
}
