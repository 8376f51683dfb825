// SPDX-License-Identifier: Apache-2.0
// Which GPU the simulated one is. A process has one, so this program is run for each: FA4SIM_GPU says which, or, before it,
// FA4_TEST_CONFIGURE, the number for fa4sim_configure.
#include <cstdlib>

#include "driver.h"
#include "images.h"

namespace {

struct Expected {
  int number, sm_count, clock_khz;
};
constexpr Expected kGpus[] = {{90, 132, 1980000}, {100, 148, 1965000}, {103, 148, 1920000}};

const Expected& expected() {
  const char *configured = std::getenv("FA4_TEST_CONFIGURE"), *named = std::getenv("FA4SIM_GPU");
  const int number = configured ? std::atoi(configured) : named ? std::atoi(named + 3) : 100;
  for (const Expected& e : kGpus)
    if (e.number == number) return e;
  FAIL("no such GPU: " << number);
  return kGpus[0];
}

fa4sim_config config_of(uint32_t gpu) {
  fa4sim_config config{};
  config.struct_size = sizeof config;
  config.gpu = gpu;
  return config;
}

// Once, before the library is initialised.
void configure() {
  static const bool done = [] {
    if (const char* number = std::getenv("FA4_TEST_CONFIGURE")) {
      fa4sim_config config = config_of(80);
      CHECK(CALL(fa4sim_configure, &config) == CUDA_ERROR_INVALID_VALUE);
      CHECK((says("fa4sim_config.gpu is 80") && says("sm_90, sm_100 or sm_103")));
      config = config_of(uint32_t(std::atoi(number)));
      SUCCEEDS(fa4sim_configure, &config);
    }
    return true;
  }();
  (void)done;
}

int attribute(CUdevice_attribute which) {
  int value = -1;
  SUCCEEDS(cuDeviceGetAttribute, &value, which, 0);
  return value;
}

CUresult load(const std::string& target) {
  CUmodule module;
  const CUresult result = CALL(cuModuleLoadData, &module, kernels_for(target).c_str());
  if (result == CUDA_SUCCESS) SUCCEEDS(cuModuleUnload, module);
  return result;
}

}  // namespace

TEST_CASE("a GPU says what it is") {
  configure();
  TestContext context;
  const Expected& e = expected();
  char name[64];
  SUCCEEDS(cuDeviceGetName, name, sizeof name, 0);
  CHECK(std::string(name) == "fa4 simulated GPU (sm_" + std::to_string(e.number) + ")");
  CHECK(10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) + attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) == e.number);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) == e.sm_count);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) == e.clock_khz);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) == 232448);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) == 233472);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 1);
  CUuuid uuid;
  SUCCEEDS(cuDeviceGetUuid, &uuid, 0);
  CHECK(std::string(uuid.bytes + 8) == "sm_" + std::to_string(e.number));
  fa4sim_config config = config_of(0);
  SUCCEEDS(fa4sim_get_config, &config);
  CHECK((config.gpu == uint32_t(e.number) && config.sm_count == uint32_t(e.sm_count)));
  CUmodule module;
  CUfunction function;
  SUCCEEDS(cuModuleLoadData, &module, kernels_for("sm_80").c_str());
  SUCCEEDS(cuModuleGetFunction, &function, module, "scale");
  int version = 0;
  SUCCEEDS(cuFuncGetAttribute, &version, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function);
  CHECK(version == e.number);
}

TEST_CASE("a GPU takes its own code, its family's, and what is older") {
  configure();
  TestContext context;
  const int gpu = expected().number;
  struct Row {
    const char* target;
    bool on_90, on_100, on_103;
  };
  for (const Row& row : {Row{"sm_80", true, true, true}, Row{"sm_90", true, true, true}, Row{"sm_90a", true, false, false},
                         Row{"sm_86", true, true, true}, Row{"sm_80a", false, false, false}, Row{"sm_100", false, true, true},
                         Row{"sm_100a", false, true, false}, Row{"sm_100f", false, true, true}, Row{"sm_103", false, false, true},
                         Row{"sm_103a", false, false, true}, Row{"sm_103f", false, false, true}, Row{"sm_120", false, false, false},
                         Row{"sm_101f", false, false, false}, Row{"sm_90f", false, false, false}, Row{"sm_110f", false, false, false}, Row{"sm_1000", false, false, false}, Row{"sm_90b", false, false, false}}) {
    INFO(row.target << " on sm_" << gpu);
    const bool runs = gpu == 90 ? row.on_90 : gpu == 100 ? row.on_100 : row.on_103;
    CHECK(load(row.target) == (runs ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX));
    if (!runs) CHECK((says(row.target) && says(("the simulated GPU, sm_" + std::to_string(gpu) + ", runs PTX for").c_str())));
  }
  CUmodule module;
  CUjit_option option = CU_JIT_TARGET;
  for (const Expected& e : kGpus) {
    void* value = reinterpret_cast<void*>(uintptr_t(e.number));
    const CUresult result = CALL(cuModuleLoadDataEx, &module, kernels_for("sm_80").c_str(), 1, &option, &value);
    CHECK(result == (e.number == gpu ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
  }
}

TEST_CASE("the instructions of a target are those that it has") {
  configure();
  TestContext context;
  const int gpu = expected().number;
  // What a kernel of this line for this target comes to where the target runs; "": it is taken.
  struct Row {
    const char *target, *line, *says;
  };
  for (const Row& row :
       {Row{"sm_90a", "wgmma.fence.sync.aligned;", ""}, Row{"sm_90", "wgmma.fence.sync.aligned;", "sm_90a"},
        Row{"sm_100a", "wgmma.fence.sync.aligned;", "sm_90a"}, Row{"sm_100f", "tcgen05.wait::ld.sync.aligned;", ""},
        Row{"sm_103a", "tcgen05.wait::ld.sync.aligned;", ""}, Row{"sm_100", "tcgen05.wait::ld.sync.aligned;", "sm_100a, sm_100f"},
        Row{"sm_90a", "tcgen05.wait::ld.sync.aligned;", "sm_100a, sm_100f"}, Row{"sm_90a", "setmaxnreg.dec.sync.aligned.u32 24;", ""},
        Row{"sm_90", "setmaxnreg.dec.sync.aligned.u32 24;", "with an a or f"}, Row{"sm_90a", "add.rn.f32x2 %d, %d, %d;", "sm_100 or newer"},
        Row{"sm_100", "add.rn.f32x2 %d, %d, %d;", ""}, Row{"sm_90a", "max.f32 %r, %r, %r, %r;", "sm_100 or newer"},
        Row{"sm_90a", "max.f32 %r, %r, %r;", ""}, Row{"sm_103", "max.f32 %r, %r, %r, %r;", ""},
        Row{"sm_90a", "ld.global.v4.b64 {%d, %d, %d, %d}, [%d];", "sm_100 or newer"}, Row{"sm_90a", "ld.global.v4.b32 {%r, %r, %r, %r}, [%d];", ""},
        Row{"sm_80", "elect.sync _|%p, -1;", "sm_90 or newer"}, Row{"sm_90", "elect.sync _|%p, -1;", ""},
        Row{"sm_80", "barrier.cluster.arrive;", "sm_90 or newer"}}) {
    const std::string text = std::string(".version 8.8\n.target ") + row.target +
                             "\n.address_size 64\n.visible .entry k()\n{\n  .reg .pred %p;\n  .reg .b32 %r;\n  .reg .b64 %d;\n  " + row.line +
                             "\n  ret;\n}\n";
    INFO(text << "on sm_" << gpu);
    CUmodule module;
    if (load(row.target) != CUDA_SUCCESS) {
      CHECK(CALL(cuModuleLoadData, &module, text.c_str()) == CUDA_ERROR_INVALID_PTX);
      continue;
    }
    SUCCEEDS(cuModuleLoadData, &module, text.c_str());
    CUfunction function;
    const CUresult result = CALL(cuModuleGetFunction, &function, module, "k");
    CHECK(result == (*row.says ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS));
    if (*row.says) CHECK((says(row.says) && says(("this module's is " + std::string(row.target)).c_str()) && says("line 9")));
  }
}

TEST_CASE("a process keeps its GPU") {
  configure();
  TestContext context;
  for (const Expected& e : kGpus) {
    fa4sim_config config = config_of(uint32_t(e.number));
    const int result = CALL(fa4sim_configure, &config);
    if (e.number == expected().number) {
      CHECK(result == CUDA_SUCCESS);
    } else {
      CHECK(result == CUDA_ERROR_INVALID_VALUE);
      CHECK((says("since cuInit") && says(("sm_" + std::to_string(expected().number)).c_str())));
    }
  }
  fa4sim_config config = config_of(0);
  SUCCEEDS(fa4sim_configure, &config);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) == expected().sm_count);
}
