// SPDX-License-Identifier: Apache-2.0
#include "driver_rows.h"

#include <cstring>

#include "harness.h"
#include "isolated.h"

namespace fa4::conformance {
namespace {

using support::Gpu;

std::string target_of(Gpu& gpu) {
  return "sm_" + std::to_string(10 * gpu.properties().major + gpu.properties().minor);
}
std::string module_of(Gpu& gpu, const std::string& body) {
  return ".version 8.6\n.target " + target_of(gpu) + "\n.address_size 64\n" + body;
}
const char* const kStore =
    ".visible .entry store(.param .u64 out) .maxntid 128, 1, 1 { .reg .b64 %a; ld.param.u64 %a, [out]; "
    "st.global.u32 [%a], 1; ret; }\n"
    ".visible .entry sum(.param .u32 a, .param .u64 out) { ret; }\n"
    ".visible .entry none() { ret; }\n.visible .global .align 4 .u32 variable = 3;\n.visible .global .align "
    "8 .b8 bytes[24];\n";

// A loaded module for the span of a call.
class Loaded {
 public:
  Loaded(Gpu& gpu, const std::string& body) : gpu_(gpu) {
    status = gpu.driver().cuModuleLoadData(&module, module_of(gpu, body).c_str());
  }
  ~Loaded() {
    if (module) gpu_.driver().cuModuleUnload(module);
  }
  CUfunction function(const char* name) {
    CUfunction f = nullptr;
    gpu_.driver().cuModuleGetFunction(&f, module, name);
    return f;
  }
  CUmodule module = nullptr;
  CUresult status;

 private:
  Gpu& gpu_;
};

struct Shape {
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, shared = 0;
};

CUresult launch(Gpu& gpu, const char* entry, const Shape& s, void** params) {
  Loaded m(gpu, kStore);
  const CUresult r =
      gpu.driver().cuLaunchKernel(m.function(entry), s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1],
                                  s.block[2], s.shared, nullptr, params, nullptr);
  if (r != CUDA_SUCCESS) return r;
  return gpu.driver().cuCtxSynchronize();
}
CUresult launch_shape(Gpu& gpu, const Shape& s) {
  return launch(gpu, "none", s, nullptr);
}

CUresult load_text(Gpu& gpu, const std::string& text) {
  CUmodule module = nullptr;
  const CUresult r = gpu.driver().cuModuleLoadData(&module, text.c_str());
  if (r == CUDA_SUCCESS) gpu.driver().cuModuleUnload(module);
  return r;
}

// A kernel of one thread with (out), run to its end.
CUresult run(Gpu& gpu, const std::string& body, uint64_t argument_offset = 0) {
  Loaded m(gpu,
           ".visible .entry k(.param .u64 out)\n.maxntid 32, 1, 1\n{ .reg .b64 %a, %b; .reg .b32 %r, %s; "
           ".reg .pred %p; ld.param.u64 %a, [out];\n" +
               body + "\nret; }\n");
  if (m.status != CUDA_SUCCESS) return m.status;
  CUdeviceptr memory = 0;
  gpu.driver().cuMemAlloc(&memory, 1024);
  CUdeviceptr argument = memory + argument_offset;
  void* params[] = {&argument};
  CUresult r = gpu.driver().cuLaunchKernel(m.function("k"), 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr);
  if (r == CUDA_SUCCESS) r = gpu.driver().cuCtxSynchronize();
  if (r == CUDA_SUCCESS) gpu.driver().cuMemFree(memory);
  return r;
}

struct Encode {
  alignas(128) unsigned char storage[256] = {};
  size_t at = 0;
  bool null_map = false;
  int type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  cuuint32_t rank = 3;
  uint64_t address = 0x1000;
  cuuint64_t extents[5] = {128, 64, 4, 1, 1};
  cuuint64_t strides[4] = {256, 16384, 65536, 65536};
  cuuint32_t box[5] = {64, 8, 1, 1, 1};
  cuuint32_t element_strides[5] = {1, 1, 1, 1, 1};
  int interleave = 0, swizzle = CU_TENSOR_MAP_SWIZZLE_128B, l2 = 0, fill = 0;
  bool no_extents = false, no_strides = false, no_box = false, no_element_strides = false;
};

std::vector<DriverRow> make() {
  std::vector<DriverRow> rows;
  const auto add = [&](std::string name, std::function<CUresult(Gpu&)> call, bool faults = false) {
    rows.push_back({std::move(name), std::move(call), {}, faults});
  };
  const auto encode = [&](const char* name, void (*change)(Encode&)) {
    add(std::string("cuTensorMapEncodeTiled: ") + name, [change](Gpu& gpu) {
      Encode e;
      change(e);
      return gpu.driver().cuTensorMapEncodeTiled(
          e.null_map ? nullptr : reinterpret_cast<CUtensorMap*>(e.storage + e.at),
          CUtensorMapDataType(e.type), e.rank, reinterpret_cast<void*>(e.address),
          e.no_extents ? nullptr : e.extents, e.no_strides ? nullptr : e.strides, e.no_box ? nullptr : e.box,
          e.no_element_strides ? nullptr : e.element_strides, CUtensorMapInterleave(e.interleave),
          CUtensorMapSwizzle(e.swizzle), CUtensorMapL2promotion(e.l2), CUtensorMapFloatOOBfill(e.fill));
    });
  };
  using E = Encode;
  encode("a plain map", [](E&) {});
  encode("null map", [](E& e) { e.null_map = true; });
  encode("map aligned to 32 bytes", [](E& e) { e.at = 32; });
  encode("map aligned to 16 bytes", [](E& e) { e.at = 16; });
  encode("data type -1", [](E& e) { e.type = -1; });
  encode("data type 16", [](E& e) { e.type = 16; });
  encode("rank 0", [](E& e) { e.rank = 0; });
  encode("rank 1", [](E& e) { e.rank = 1; });
  encode("rank 1, null strides", [](E& e) { e.rank = 1, e.no_strides = true; });
  encode("rank 5", [](E& e) { e.rank = 5; });
  encode("rank 6", [](E& e) { e.rank = 6; });
  encode("null address", [](E& e) { e.address = 0; });
  encode("address aligned to 8 bytes", [](E& e) { e.address = 0x1008; });
  encode("null extents", [](E& e) { e.no_extents = true; });
  encode("null strides", [](E& e) { e.no_strides = true; });
  encode("null box", [](E& e) { e.no_box = true; });
  encode("null element strides", [](E& e) { e.no_element_strides = true; });
  encode("extent 0", [](E& e) { e.extents[1] = 0; });
  encode("extent 2^32", [](E& e) { e.extents[1] = 1ull << 32; });
  encode("extent 2^32 + 1", [](E& e) { e.extents[1] = (1ull << 32) + 1; });
  encode("stride 0", [](E& e) { e.strides[0] = 0; });
  encode("stride smaller than a row", [](E& e) { e.strides[0] = 16; });
  encode("stride 8", [](E& e) { e.strides[0] = 8; });
  encode("stride 2^40 - 16", [](E& e) { e.strides[1] = (1ull << 40) - 16; });
  encode("stride 2^40", [](E& e) { e.strides[1] = 1ull << 40; });
  encode("negative stride", [](E& e) { e.strides[1] = -256ull; });
  encode("negative stride of a dimension of extent 1",
         [](E& e) { e.extents[2] = 1, e.strides[1] = -256ull; });
  encode("odd stride of a dimension of extent 1", [](E& e) { e.extents[2] = 1, e.strides[1] = 7; });
  encode("odd stride beyond the rank", [](E& e) { e.strides[2] = 7; });
  encode("box 0", [](E& e) { e.box[1] = 0; });
  encode("box 256", [](E& e) { e.box[1] = 256; });
  encode("box 257", [](E& e) { e.box[1] = 257; });
  encode("box larger than the tensor", [](E& e) { e.extents[1] = 2; });
  encode("box larger than shared memory", [](E& e) { e.box[1] = 256, e.box[2] = 16; });
  encode("inner box of 8 bytes", [](E& e) { e.box[0] = 4; });
  encode("inner box of 24 bytes", [](E& e) { e.box[0] = 12; });
  encode("inner box of 144 bytes, 128B swizzle", [](E& e) { e.box[0] = 72; });
  encode("inner box of 80 bytes, 64B swizzle", [](E& e) { e.box[0] = 40, e.swizzle = 2; });
  encode("inner box of 48 bytes, 32B swizzle", [](E& e) { e.box[0] = 24, e.swizzle = 1; });
  encode("inner box of 512 bytes, no swizzle", [](E& e) { e.box[0] = 256, e.swizzle = 0; });
  encode("element stride 0", [](E& e) { e.element_strides[1] = 0; });
  encode("element stride 8", [](E& e) { e.element_strides[1] = 8; });
  encode("element stride 9", [](E& e) { e.element_strides[1] = 9; });
  encode("element stride 0 of dimension 0", [](E& e) { e.element_strides[0] = 0; });
  encode("interleave 3", [](E& e) { e.interleave = 3; });
  encode("interleave 16B", [](E& e) { e.interleave = 1; });
  encode("interleave 16B, rank 2", [](E& e) { e.interleave = 1, e.rank = 2; });
  encode("interleave 32B, swizzle 32B", [](E& e) { e.interleave = 2, e.swizzle = 1; });
  encode("interleave 32B, swizzle 128B", [](E& e) { e.interleave = 2; });
  encode("interleave 32B, address aligned to 16",
         [](E& e) { e.interleave = 2, e.swizzle = 1, e.address = 0x1010; });
  encode("interleave 32B, stride of 16 n", [](E& e) { e.interleave = 2, e.swizzle = 1, e.strides[0] = 272; });
  encode("swizzle 7", [](E& e) { e.swizzle = 7; });
  encode("L2 promotion 256B", [](E& e) { e.l2 = 3; });
  encode("L2 promotion 4", [](E& e) { e.l2 = 4; });
  encode("NaN fill of f16", [](E& e) { e.fill = 1; });
  encode("NaN fill of u16", [](E& e) { e.fill = 1, e.type = 1; });
  encode("fill 2", [](E& e) { e.fill = 2; });

  // launches
  add("cuLaunchKernel: a kernel without parameters", [](Gpu& g) { return launch_shape(g, {}); });
  add("cuLaunchKernel: null function", [](Gpu& g) {
    return g.driver().cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  });
  add("cuLaunchKernel: grid of 0", [](Gpu& g) { return launch_shape(g, {{0, 1, 1}, {1, 1, 1}, 0}); });
  add("cuLaunchKernel: grid y of 65536", [](Gpu& g) {
    return launch_shape(g, {{1, 65536, 1}, {1, 1, 1}, 0});
  });
  add("cuLaunchKernel: grid y of 65535", [](Gpu& g) {
    return launch_shape(g, {{1, 65535, 1}, {1, 1, 1}, 0});
  });
  add("cuLaunchKernel: grid x of 2^31", [](Gpu& g) {
    return launch_shape(g, {{1u << 31, 1, 1}, {1, 1, 1}, 0});
  });
  add("cuLaunchKernel: block of 0", [](Gpu& g) { return launch_shape(g, {{1, 1, 1}, {1, 0, 1}, 0}); });
  add("cuLaunchKernel: block of 1025 threads", [](Gpu& g) {
    return launch_shape(g, {{1, 1, 1}, {1025, 1, 1}, 0});
  });
  add("cuLaunchKernel: block of 33 x 32 threads", [](Gpu& g) {
    return launch_shape(g, {{1, 1, 1}, {33, 32, 1}, 0});
  });
  add("cuLaunchKernel: block z of 65", [](Gpu& g) { return launch_shape(g, {{1, 1, 1}, {1, 1, 65}, 0}); });
  add("cuLaunchKernel: block of 1024 threads", [](Gpu& g) {
    return launch_shape(g, {{1, 1, 1}, {1024, 1, 1}, 0});
  });
  add("cuLaunchKernel: more threads than .maxntid", [](Gpu& g) {
    CUdeviceptr memory = 0;
    g.driver().cuMemAlloc(&memory, 64);
    void* params[] = {&memory};
    const CUresult r = launch(g, "store", {{1, 1, 1}, {129, 1, 1}, 0}, params);
    g.driver().cuMemFree(memory);
    return r;
  });
  add("cuLaunchKernel: 48 KiB of dynamic shared memory", [](Gpu& g) {
    return launch_shape(g, {{1, 1, 1}, {1, 1, 1}, 49152});
  });
  add("cuLaunchKernel: 48 KiB and 1 byte of dynamic shared memory", [](Gpu& g) {
    return launch_shape(g, {{1, 1, 1}, {1, 1, 1}, 49153});
  });
  add("cuLaunchKernel: parameters missing", [](Gpu& g) { return launch(g, "store", {}, nullptr); });
  add("cuLaunchKernel: parameters and extra", [](Gpu& g) {
    Loaded m(g, kStore);
    void* params[] = {nullptr};
    void* extra[] = {CU_LAUNCH_PARAM_END};
    return g.driver().cuLaunchKernel(m.function("none"), 1, 1, 1, 1, 1, 1, 0, nullptr, params, extra);
  });
  add("cuLaunchKernel: a wrong buffer size in extra", [](Gpu& g) {
    Loaded m(g, kStore);
    uint64_t buffer[4] = {};
    size_t size = 4;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    return g.driver().cuLaunchKernel(m.function("sum"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra);
  });
  rows.back().stricter = "the kernel would read parameters that nobody gave";
  for (const auto& [name, value] : {std::pair{"232448", 232448}, {"232449", 232449}, {"-1", -1}, {"0", 0}}) {
    add(std::string("cuFuncSetAttribute: dynamic shared memory of ") + name, [value = value](Gpu& g) {
      Loaded m(g, kStore);
      return g.driver().cuFuncSetAttribute(m.function("none"),
                                           CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, value);
    });
  }
  add("cuFuncSetAttribute: an attribute that cannot be set", [](Gpu& g) {
    Loaded m(g, kStore);
    return g.driver().cuFuncSetAttribute(m.function("none"), CU_FUNC_ATTRIBUTE_NUM_REGS, 8);
  });
  add("cuFuncSetAttribute: unknown attribute", [](Gpu& g) {
    Loaded m(g, kStore);
    return g.driver().cuFuncSetAttribute(m.function("none"), CUfunction_attribute(1000), 8);
  });
  add("cuFuncGetAttribute: unknown attribute", [](Gpu& g) {
    Loaded m(g, kStore);
    int value;
    return g.driver().cuFuncGetAttribute(&value, CUfunction_attribute(1000), m.function("none"));
  });
  add("cuFuncGetAttribute: null result", [](Gpu& g) {
    Loaded m(g, kStore);
    return g.driver().cuFuncGetAttribute(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, m.function("none"));
  });

  // loads
  add("cuModuleLoadData: null image", [](Gpu& g) {
    CUmodule m;
    return g.driver().cuModuleLoadData(&m, nullptr);
  });
  add("cuModuleLoadData: null result",
      [](Gpu& g) { return g.driver().cuModuleLoadData(nullptr, module_of(g, kStore).c_str()); });
  add("cuModuleLoadData: empty text", [](Gpu& g) { return load_text(g, ""); });
  add("cuModuleLoadData: text that is no PTX", [](Gpu& g) { return load_text(g, "this is not PTX"); });
  add("cuModuleLoadData: a syntax error",
      [](Gpu& g) { return load_text(g, module_of(g, ".visible .entry k() { add.u32 ; ret; }\n")); });
  add("cuModuleLoadData: an unknown instruction", [](Gpu& g) {
    return load_text(g, module_of(g, ".visible .entry k() { .reg .b32 %r; frobnicate.u32 %r, %r; ret; }\n"));
  });
  add("cuModuleLoadData: an undeclared register", [](Gpu& g) {
    return load_text(g, module_of(g, ".visible .entry k() { add.u32 %r1, %r2, 3; ret; }\n"));
  });
  add("cuModuleLoadData: a newer PTX version", [](Gpu& g) {
    return load_text(
        g, ".version 99.0\n.target " + target_of(g) + "\n.address_size 64\n.visible .entry k() { ret; }\n");
  });
  add("cuModuleLoadData: an older target", [](Gpu& g) {
    return load_text(g, ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n");
  });
  add("cuModuleLoadData: a newer target", [](Gpu& g) {
    return load_text(g, ".version 8.8\n.target sm_120\n.address_size 64\n.visible .entry k() { ret; }\n");
  });
  add("cuModuleLoadData: another chip's own target", [](Gpu& g) {
    return load_text(g, std::string(".version 8.8\n.target ") +
                            (g.properties().major == 9 ? "sm_100a" : "sm_120a") +
                            "\n.address_size 64\n.visible .entry k() { ret; }\n");
  });
  add("cuModuleLoadData: an unresolved function", [](Gpu& g) {
    return load_text(g,
                     module_of(g, ".extern .func missing();\n.visible .entry k() { call missing; ret; }\n"));
  });

  // look-ups
  add("cuModuleGetFunction: unknown name", [](Gpu& g) {
    Loaded m(g, kStore);
    CUfunction f;
    return g.driver().cuModuleGetFunction(&f, m.module, "nothing");
  });
  add("cuModuleGetFunction: null name", [](Gpu& g) {
    Loaded m(g, kStore);
    CUfunction f;
    return g.driver().cuModuleGetFunction(&f, m.module, nullptr);
  });
  add("cuModuleGetFunction: null result", [](Gpu& g) {
    Loaded m(g, kStore);
    return g.driver().cuModuleGetFunction(nullptr, m.module, "none");
  });
  add("cuModuleGetFunction: the name of a variable", [](Gpu& g) {
    Loaded m(g, kStore);
    CUfunction f;
    return g.driver().cuModuleGetFunction(&f, m.module, "variable");
  });
  add("cuModuleGetFunction: null module", [](Gpu& g) {
    CUfunction f;
    return g.driver().cuModuleGetFunction(&f, nullptr, "none");
  });
  add("cuModuleGetGlobal: unknown name", [](Gpu& g) {
    Loaded m(g, kStore);
    CUdeviceptr p;
    size_t bytes;
    return g.driver().cuModuleGetGlobal(&p, &bytes, m.module, "nothing");
  });
  add("cuModuleGetGlobal: the name of a kernel", [](Gpu& g) {
    Loaded m(g, kStore);
    CUdeviceptr p;
    size_t bytes;
    return g.driver().cuModuleGetGlobal(&p, &bytes, m.module, "none");
  });
  add("cuModuleGetGlobal: null size", [](Gpu& g) {
    Loaded m(g, kStore);
    CUdeviceptr p;
    return g.driver().cuModuleGetGlobal(&p, nullptr, m.module, "bytes");
  });
  add("cuModuleGetGlobal: null address and null size", [](Gpu& g) {
    Loaded m(g, kStore);
    return g.driver().cuModuleGetGlobal(nullptr, nullptr, m.module, "bytes");
  });
  add("cuModuleUnload: null", [](Gpu& g) { return g.driver().cuModuleUnload(nullptr); });

  // memory
  add("cuMemAlloc: 0 bytes", [](Gpu& g) {
    CUdeviceptr p = 0;
    return g.driver().cuMemAlloc(&p, 0);
  });
  add("cuMemAlloc: null result", [](Gpu& g) { return g.driver().cuMemAlloc(nullptr, 16); });
  add("cuMemAlloc: more than there is", [](Gpu& g) {
    CUdeviceptr p = 0;
    return g.driver().cuMemAlloc(&p, size_t(1) << 50);
  });
  add("cuMemFree: null", [](Gpu& g) { return g.driver().cuMemFree(0); });
  add("cuMemFree: no allocation", [](Gpu& g) { return g.driver().cuMemFree(0x1234567890ull); });
  add("cuMemFree: the middle of an allocation", [](Gpu& g) {
    CUdeviceptr p = 0;
    g.driver().cuMemAlloc(&p, 4096);
    const CUresult r = g.driver().cuMemFree(p + 256);
    g.driver().cuMemFree(p);
    return r;
  });
  add("cuMemFree: twice", [](Gpu& g) {
    CUdeviceptr p = 0;
    g.driver().cuMemAlloc(&p, 4096);
    g.driver().cuMemFree(p);
    return g.driver().cuMemFree(p);
  });
  add("cuMemcpyHtoD: beyond the allocation", [](Gpu& g) {
    CUdeviceptr p = 0;
    g.driver().cuMemAlloc(&p, 4096);
    const std::vector<char> bytes(size_t(64) << 20);
    const CUresult r = g.driver().cuMemcpyHtoD(p, bytes.data(), bytes.size());
    g.driver().cuMemFree(p);
    return r;
  });
  add("cuMemcpyHtoD: to no allocation", [](Gpu& g) {
    int value = 0;
    return g.driver().cuMemcpyHtoD(0x1234567890ull, &value, 4);
  });
  add("cuMemcpyHtoD: 0 bytes to null", [](Gpu& g) { return g.driver().cuMemcpyHtoD(0, nullptr, 0); });
  add("cuMemsetD8: to no allocation", [](Gpu& g) { return g.driver().cuMemsetD8(0x1234567890ull, 1, 4); });

  // devices, streams, events
  add("cuDeviceGet: 1000", [](Gpu& g) {
    CUdevice d;
    return g.driver().cuDeviceGet(&d, 1000);
  });
  add("cuDeviceGet: -1", [](Gpu& g) {
    CUdevice d;
    return g.driver().cuDeviceGet(&d, -1);
  });
  add("cuDeviceGet: null result", [](Gpu& g) { return g.driver().cuDeviceGet(nullptr, 0); });
  add("cuDeviceGetAttribute: unknown attribute", [](Gpu& g) {
    int value;
    return g.driver().cuDeviceGetAttribute(&value, CUdevice_attribute(10000), 0);
  });
  add("cuDeviceGetAttribute: attribute 0", [](Gpu& g) {
    int value;
    return g.driver().cuDeviceGetAttribute(&value, CUdevice_attribute(0), 0);
  });
  add("cuInit: flags 1", [](Gpu& g) { return g.driver().cuInit(1); });
  add("cuStreamCreate: unknown flags", [](Gpu& g) {
    CUstream s;
    return g.driver().cuStreamCreate(&s, 0x80);
  });
  add("cuStreamCreate: null result", [](Gpu& g) { return g.driver().cuStreamCreate(nullptr, 0); });
  add("cuEventCreate: unknown flags", [](Gpu& g) {
    CUevent e;
    return g.driver().cuEventCreate(&e, 0x80);
  });
  add("cuEventElapsedTime: events never recorded", [](Gpu& g) {
    CUevent a, b;
    g.driver().cuEventCreate(&a, 0);
    g.driver().cuEventCreate(&b, 0);
    float ms;
    const CUresult r = g.driver().cuEventElapsedTime(&ms, a, b);
    g.driver().cuEventDestroy(a);
    g.driver().cuEventDestroy(b);
    return r;
  });
  add("cuEventElapsedTime: timing disabled", [](Gpu& g) {
    CUevent a, b;
    g.driver().cuEventCreate(&a, CU_EVENT_DISABLE_TIMING);
    g.driver().cuEventCreate(&b, 0);
    g.driver().cuEventRecord(a, nullptr);
    g.driver().cuEventRecord(b, nullptr);
    g.driver().cuEventSynchronize(b);
    float ms;
    const CUresult r = g.driver().cuEventElapsedTime(&ms, a, b);
    g.driver().cuEventDestroy(a);
    g.driver().cuEventDestroy(b);
    return r;
  });
  add("cuGetErrorName: unknown code", [](Gpu& g) {
    const char* text;
    return g.driver().cuGetErrorName(CUresult(12345), &text);
  });

  // faults of kernels
  add(
      "kernel: store to null", [](Gpu& g) { return run(g, "mov.b64 %b, 0; st.global.u32 [%b], 1;"); }, true);
  add(
      "kernel: load far outside",
      [](Gpu& g) {
        return run(g, "mov.b64 %b, 0x7f0000000000; ld.global.u32 %r, [%b]; st.global.u32 [%a], %r;");
      },
      true);
  add(
      "kernel: misaligned store", [](Gpu& g) { return run(g, "st.global.u32 [%a+2], 1;"); }, true);
  add(
      "kernel: misaligned vector load",
      [](Gpu& g) {
        return run(g,
                   ".reg .b32 %x, %y, %z, %w; ld.global.v4.u32 {%x, %y, %z, %w}, [%a+8]; st.global.v4.u32 "
                   "[%a], {%w, %x, %y, %z};");
      },
      true);
  add(
      "kernel: shared store out of range",
      [](Gpu& g) {
        return run(
            g, ".shared .align 4 .b8 s[16]; mov.u32 %r, s; add.u32 %r, %r, 0x40000; st.shared.u32 [%r], 1;");
      },
      true);
  add(
      "kernel: misaligned shared store",
      [](Gpu& g) { return run(g, ".shared .align 4 .b8 s[16]; st.shared.u32 [s+2], 1;"); }, true);
  add(
      "kernel: trap", [](Gpu& g) { return run(g, "trap;"); }, true);
  add(
      "kernel: mbarrier at an odd address",
      [](Gpu& g) {
        return run(g,
                   ".shared .align 8 .b8 s[16]; mov.u32 %r, s; add.u32 %r, %r, 4; "
                   "mbarrier.init.shared::cta.b64 [%r], 1;");
      },
      true);
  add(
      "kernel: misaligned atomic", [](Gpu& g) { return run(g, "atom.global.add.u32 %r, [%a+1], 1;"); }, true);
  add(
      "kernel: use of the context after a fault",
      [](Gpu& g) {
        run(g, "trap;");
        CUdeviceptr p = 0;
        return g.driver().cuMemAlloc(&p, 16);
      },
      true);
  add(
      "kernel: launch after a fault",
      [](Gpu& g) {
        run(g, "st.global.u32 [%a+2], 1;");
        return g.driver().cuCtxSynchronize();
      },
      true);
  add_cluster_calls(rows);
  return rows;
}

}  // namespace

const std::vector<DriverRow>& driver_rows() {
  static const std::vector<DriverRow> rows = make();
  return rows;
}

namespace {

class DriverWorker : public Worker {
 public:
  explicit DriverWorker(const Source& source) : gpu_(source.library, source.ordinal) {}
  std::string work(size_t job, bool* broken) override {
    const DriverRow& row = driver_rows()[job];
    *broken = row.faults;
    return std::to_string(int(row.call(gpu_)));
  }

 private:
  Gpu gpu_;
};

}  // namespace

void run_driver_rows(const Source& source, const std::function<void(const DriverRow& row, int result)>& done) {
  constexpr int kSeconds = 60;
  run_isolated(
      driver_rows().size(), kSeconds,
      [&] {
        choose_gpu(source);
        return std::make_unique<DriverWorker>(source);
      },
      [&](size_t job, const JobEnd& end) {
        done(driver_rows()[job], end.ended_process ? kEndedProcess : std::stoi(end.result));
      });
}

}  // namespace fa4::conformance
