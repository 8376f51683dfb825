// SPDX-License-Identifier: Apache-2.0
// The C ABI of the shared library over a driver that records: creation and its failures, what a call
// launches, that a refused call launches nothing, that a call allocates nothing, and calls from several
// threads.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "call_counter.h"
#include "fake.h"
#include "problems.h"
#include "runtime/plan.h"
#include "support/catch.h"

using fa4::Problem;
using fa4::test::create_params;
using fa4::test::Fake;
using fa4::test::FakeDriver;
using fa4::test::FakeLaunch;
using fa4::test::kCurrent;
using fa4::test::same_launch;
using fa4::test::small_problem;

namespace {

// Expects fa4_create to fail and every part of the sentence.
void expect_refusal(const fa4_create_params& params, fa4_status status,
                    const std::vector<std::string>& says) {
  auto* context = reinterpret_cast<fa4_context*>(1);
  CHECK(fa4_create(&params, &context) == status);
  CHECK(context == nullptr);
  const std::string sentence = fa4_last_error();
  INFO(sentence);
  for (const std::string& part : says) {
    INFO("expected: " << part);
    CHECK(sentence.find(part) != std::string::npos);
  }
}

// The entry of the kernel that a call launches, one and as planned.
std::string launched(const Fake& fake, const fa4::Context& context, const Problem& problem) {
  const uint32_t before = fake.driver->launch_count;
  context.forward(problem);
  REQUIRE(fake.driver->launch_count == before + 1);
  const FakeLaunch& launch = fake.driver->launches[before];
  CHECK(same_launch(launch, problem, *fake.driver));
  return fake.driver->kernel_names[reinterpret_cast<uintptr_t>(launch.function) - 1];
}

}  // namespace

TEST_CASE("creation loads the image once and grants each kernel its shared memory", "[runtime]") {
  Fake fake;
  {
    fa4::Context context(FA4_FAKE_DRIVER);
    CHECK(fake.driver->loads == 1);
    const fa4::KernelList &own = *fa4::kernels_for(100), &other = *own.other_exp2;
    CHECK(fake.driver->kernel_count == own.count + other.count);
    for (uint32_t i = 0; i < own.count; ++i) {
      CHECK(fake.driver->shared_bytes[i] == own.first[i].shared_bytes);
      CHECK(fake.driver->shared_bytes[own.count + i] == other.first[i].shared_bytes);
    }
    CHECK(fake.driver->unloads == 0);
    CHECK(fake.driver->launch_count == 0);
    fa4::Context moved(std::move(context));
    CHECK(moved.get() != nullptr);
    CHECK(context.get() == nullptr);
  }
  CHECK(fake.driver->unloads == 1);
  fa4_destroy(nullptr);
}

TEST_CASE("creation takes an image of the caller's", "[runtime]") {
  Fake fake;
  const char ptx[] = ".version 9.0\n.target sm_100f\n";
  fa4::Context context(FA4_FAKE_DRIVER, ptx);
  CHECK(fake.driver->image == ptx);
  expect_refusal(
      [&] {
        auto p = create_params();
        p.image = "oops";
        return p;
      }(),
      FA4_ERROR_INVALID_ARGUMENT, {"image starts with 0x73706f6f", "fatbinary"});
}

TEST_CASE("creation is refused with a reason", "[runtime]") {
  Fake fake;
  fa4_create_params params = create_params();
  SECTION("no library") {
    params.driver_library = "/nowhere/libcuda.so.1";
    expect_refusal(
        params, FA4_ERROR_NO_DRIVER,
        {"\"/nowhere/libcuda.so.1\"", "No such file", "install the NVIDIA driver", "driver_library"});
    CHECK(fake.driver->calls == 0);
  }
  SECTION("a library that is no driver") {
    params.driver_library = "libm.so.6";
    expect_refusal(params, FA4_ERROR_NO_DRIVER, {"\"libm.so.6\" has no function cuInit", "12.0 or newer"});
  }
  SECTION("a driver that lacks a function") {
    params.driver_library = FA4_FAKE_DRIVER_WITHOUT_LAUNCH;
    expect_refusal(params, FA4_ERROR_NO_DRIVER, {"has no function cuLaunchKernel"});
  }
  SECTION("no device") {
    fake.driver->failing_function = "cuInit";
    fake.driver->failure = CUDA_ERROR_NO_DEVICE;
    expect_refusal(params, FA4_ERROR_NO_DEVICE,
                   {"cuInit failed with error 100, CUDA_ERROR_NO_DEVICE: no CUDA device",
                    "CUDA_VISIBLE_DEVICES", FA4_FAKE_DRIVER});
  }
  SECTION("the toolkit's stub") {
    params.driver_library = FA4_STUB_DRIVER;
    expect_refusal(params, FA4_ERROR_NO_DRIVER,
                   {"cuInit failed with error 34, CUDA_ERROR_STUB_LIBRARY", "stub library, not a driver",
                    "lib64/stubs out of LD_LIBRARY_PATH", FA4_STUB_DRIVER});
  }
  SECTION("codes that the driver does not know have name, meaning and remedy") {
    fake.driver->failing_function = "cuInit";
    for (const auto& [code, says] : {std::pair(3, "CUDA_ERROR_NOT_INITIALIZED: "),
                                     {34, "lib64/stubs"},
                                     {46, "exclusive"},
                                     {200, "CUDA_ERROR_INVALID_IMAGE: "},
                                     {201, "cuDevicePrimaryCtxRetain"},
                                     {209, "no code for this device"},
                                     {218, "CUDA_ERROR_INVALID_PTX: "},
                                     {221, "libnvidia-ptxjitcompiler"},
                                     {222, "newer than the driver"},
                                     {223, "CUDA_DISABLE_PTX_JIT"},
                                     {304, "/dev/nvidia*"},
                                     {700, "compute-sanitizer"},
                                     {719, "CUDA_ERROR_LAUNCH_FAILED: "},
                                     {802, "nvidia-fabricmanager"},
                                     {803, "reboot"},
                                     {804, "cuda-compat"},
                                     {999, "CUDA_ERROR_UNKNOWN: "}}) {
      fake.driver->failure = static_cast<CUresult>(code);
      expect_refusal(
          params, code == 34 ? FA4_ERROR_NO_DRIVER : FA4_ERROR_DRIVER,
          {"cuInit failed with error " + std::to_string(code) + ", CUDA_ERROR_", says, FA4_FAKE_DRIVER});
      CHECK(std::string(fa4_last_error()).find("no text") == std::string::npos);
    }
  }
  SECTION("no current context") {
    fake.set_current(nullptr);
    expect_refusal(params, FA4_ERROR_NO_DEVICE,
                   {"no current CUDA context", "cuDevicePrimaryCtxRetain and cuCtxSetCurrent",
                    "cudaSetDevice", "cudaFree(0)"});
  }
  SECTION("PTX that the driver's compiler does not take") {
    fake.driver->failing_function = "cuModuleLoadDataEx";
    fake.driver->failure = CUDA_ERROR_INVALID_PTX;
    expect_refusal(params, FA4_ERROR_DRIVER,
                   {"cuModuleLoadDataEx failed with error 218, CUDA_ERROR_INVALID_PTX"});
    CHECK(std::string(fa4_last_error()).find("log") == std::string::npos);  // an empty one is not announced
    fake.driver->jit_log =
        "ptxas application ptx input, line 7; error   : Unknown modifier '.wayt'\nptxas fatal   : "
        "aborted\n\n";
    expect_refusal(params, FA4_ERROR_DRIVER,
                   {"error 218",
                    "; its log:\nptxas application ptx input, line 7; error   : Unknown modifier "
                    "'.wayt'\nptxas fatal   : aborted"});
    CHECK(std::string(fa4_last_error()).back() == 'd');
    const std::string long_log = "line 1 is wrong\n" + std::string(100000, 'x');
    fake.driver->jit_log = long_log.c_str();
    expect_refusal(params, FA4_ERROR_DRIVER, {"error 218", "line 1 is wrong\nxxx"});
    const std::string sentence = fa4_last_error();
    CHECK(sentence.size() < fa4::Message::kBytes);
    CHECK(sentence.substr(sentence.size() - 4) == "x...");
    fake.driver->failing_function = "";  // a load that succeeds says nothing of its log
    fa4::Context context(FA4_FAKE_DRIVER);
    CHECK(std::string(fa4_last_error()) == sentence);
  }
  SECTION("another architecture") {
    fake.driver->major = 8;
    expect_refusal(params, FA4_ERROR_ARCHITECTURE,
                   {"Fake GPU, is sm_80 (compute capability 8.0)",
                    "the image holds sm_90a cubin and PTX, sm_100f cubin and PTX, for compute capability "
                    "9.0, 10.0 and 10.3"});
    fake.driver->major = 12;
    expect_refusal(params, FA4_ERROR_ARCHITECTURE, {"sm_120 (compute capability 12.0)"});
    CHECK(fake.driver->loads == 0);
  }
  SECTION("a driver that is too old") {
    const auto age = [](const char* cuda, int version) {
      return std::string("; the driver is of CUDA ") + cuda + " (cuDriverGetVersion " +
             std::to_string(version) + "); this image needs one of CUDA 13.0 or newer on sm_100";
    };
    fake.driver->version = 12040;
    {
      fa4::Context context(FA4_FAKE_DRIVER);  // its age is nothing against a driver that loads the image
    }
    fake.driver->failing_function = "cuModuleLoadDataEx";
    for (CUresult code : {CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_NO_BINARY_FOR_GPU,
                          CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_NOT_SUPPORTED}) {
      fake.driver->failure = code;
      expect_refusal(params, FA4_ERROR_DRIVER, {"error " + std::to_string(code), age("12.4", 12040)});
    }
    fake.driver->jit_log = "of the compiler";
    expect_refusal(params, FA4_ERROR_DRIVER, {age("12.4", 12040) + "; its log:\nof the compiler"});
    const auto without = [&] {
      expect_refusal(params, FA4_ERROR_DRIVER, {"cuModuleLoadDataEx failed"});
      CHECK(std::string(fa4_last_error()).find("cuDriverGetVersion") == std::string::npos);
    };
    fake.driver->version = 13000;
    without();
    fake.driver->version = 12040;
    fake.driver->failure = CUDA_ERROR_OUT_OF_MEMORY;
    without();
  }
  SECTION("10.3 is taken") {
    fake.driver->minor = 3;
    fa4::Context context(FA4_FAKE_DRIVER);
  }
  SECTION("driver errors") {
    for (const char* function :
         {"cuInit", "cuCtxGetCurrent", "cuCtxGetDevice", "cuDeviceGetAttribute", "cuDeviceGetName",
          "cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncSetAttribute"}) {
      fake.driver->failing_function = function;
      fake.driver->failure = CUDA_ERROR_OUT_OF_MEMORY;
      expect_refusal(params, FA4_ERROR_DRIVER,
                     {function, "failed with error 2, CUDA_ERROR_OUT_OF_MEMORY: out of memory"});
    }
    CHECK(fake.driver->loads == fake.driver->unloads);
    fake.driver->failure = static_cast<CUresult>(998);
    expect_refusal(params, FA4_ERROR_DRIVER, {"error 998, a code unknown to the driver: no text"});
  }
  SECTION("a kernel that the image lacks") {
    fake.driver->missing_kernel = "fa4_forward_bf16_d128_causal";
    expect_refusal(params, FA4_ERROR_DRIVER,
                   {"cuModuleGetFunction of fa4_forward_bf16_d128_causal failed with error 500"});
    CHECK(fake.driver->unloads == 1);
  }
  SECTION("params of another version") {
    params.version = 9;
    expect_refusal(params, FA4_ERROR_VERSION, {"version 9", "version 1"});
    params = create_params();
    params.reserved[2] = 1;
    expect_refusal(params, FA4_ERROR_INVALID_ARGUMENT, {"reserved[2] is 1", "must be 0"});
    CHECK(fake.driver->calls == 0);
  }
  SECTION("null arguments") {
    fa4_context* context = nullptr;
    CHECK(fa4_create(nullptr, &context) == FA4_ERROR_INVALID_ARGUMENT);
    CHECK(std::string(fa4_last_error()) == "params is null; a fa4_create_params is needed");
    CHECK(fa4_create(&params, nullptr) == FA4_ERROR_INVALID_ARGUMENT);
    CHECK(std::string(fa4_last_error()) == "context is null; the address of an fa4_context* is needed");
  }
}

TEST_CASE("a context runs the kernels of its device", "[runtime]") {
  Fake fake;
  fake.driver->major = 9;
  fake.driver->sm_count = 132;
  fa4::Context context(FA4_FAKE_DRIVER);
  const fa4::KernelList& kernels = fa4::hopper::kKernels;
  CHECK(fake.driver->kernel_count == kernels.count);
  for (uint32_t i = 0; i < kernels.count; ++i) {
    CHECK(std::string(fake.driver->kernel_names[i]) == kernels.first[i].entry);
    CHECK(fake.driver->shared_bytes[i] == kernels.first[i].shared_bytes);
  }
  for (const bool causal : {false, true}) {
    Problem problem = small_problem();
    problem.set_causal(causal);
    const uint32_t before = fake.driver->launch_count;
    context.forward(problem);
    REQUIRE(fake.driver->launch_count == before + 1);
    CHECK(same_launch(fake.driver->launches[before], problem, *fake.driver));
    CHECK(fake.driver->launches[before].block[0] == 384);
  }
}

TEST_CASE("without a context, what any device takes is supported", "[runtime]") {
  Problem problem = small_problem();
  CHECK(fa4_supported(nullptr, &problem) == FA4_OK);
  problem.head_dim = 264;
  CHECK(fa4_supported(nullptr, &problem) == FA4_ERROR_UNSUPPORTED);
  CHECK(std::string(fa4_last_error()) == "head_dim is 264; multiples of 8 from 8 to 256 are supported");
}

TEST_CASE("every pair of head dimensions is launched, by the kernel that is named for it", "[runtime]") {
  struct Pair {
    int64_t head_dim, head_dim_v;
    const char* kernel;
  };
  constexpr Pair pairs[] = {{8, 8, "d64_full"},       {64, 0, "d64_full"},       {96, 0, "d96_full"},     {40, 96, "d96_full"},
                            {64, 128, "d128_full"},   {128, 64, "d128_full"},    {192, 128, "d192_128_full"}, {136, 8, "d192_128_full"},
                            {192, 0, "d256_full"},    {256, 128, "d256_full"},   {8, 256, "d256_full"},   {256, 0, "d256_full"}};
  Fake fake;
  for (const int major : {9, 10}) {
    fake.driver->major = major;
    fa4::Context context(FA4_FAKE_DRIVER);
    for (const Pair& pair : pairs) {
      const Problem problem = small_problem(pair.head_dim, pair.head_dim_v);
      INFO(pair.head_dim << ", V " << pair.head_dim_v);
      CHECK(fa4_supported(nullptr, &problem) == FA4_OK);
      CHECK(fa4_supported(context.get(), &problem) == FA4_OK);
      CHECK(launched(fake, context, problem) == "fa4_forward_f16_" + std::string(pair.kernel) + (major == 9 ? "" : "_polynomial"));
    }
  }
}

TEST_CASE("head dimensions that no kernel has are refused, and nothing is launched", "[runtime]") {
  Fake fake;
  fa4::Context context(FA4_FAKE_DRIVER);
  fake.driver->calls = 0;
  const std::string of_qk = "; multiples of 8 from 8 to 256 are supported",
                    of_v = "; 0 (that of Q and K) and multiples of 8 from 8 to 256 are supported";
  const auto refused = [&](int64_t head_dim, int64_t head_dim_v, fa4_status status, const std::string& sentence) {
    Problem problem = small_problem();
    problem.head_dim = head_dim, problem.head_dim_v = head_dim_v;
    for (const fa4_context* asked : {static_cast<const fa4_context*>(nullptr), static_cast<const fa4_context*>(context.get())}) {
      CHECK(fa4_supported(asked, &problem) == status);
      CHECK(fa4_last_error() == sentence);
      uint64_t size = 1;
      CHECK(fa4_workspace_size(asked, &problem, &size) == status);
      CHECK(size == 0);
    }
    CHECK(fa4_forward(context.get(), &problem) == status);
    CHECK(fa4_last_error() == sentence);
    CHECK(fake.driver->calls == 0);
  };
  for (const int64_t dim : {0, -8, -128}) refused(dim, 64, FA4_ERROR_INVALID_ARGUMENT, "head_dim is " + std::to_string(dim) + of_qk);
  for (const int64_t dim : {4, 100, 260, 264, 512}) refused(dim, 64, FA4_ERROR_UNSUPPORTED, "head_dim is " + std::to_string(dim) + of_qk);
  for (const int64_t dim : {-8, -128}) refused(192, dim, FA4_ERROR_INVALID_ARGUMENT, "head_dim_v is " + std::to_string(dim) + of_v);
  for (const int64_t dim : {4, 100, 260, 264, 512}) refused(192, dim, FA4_ERROR_UNSUPPORTED, "head_dim_v is " + std::to_string(dim) + of_v);
}

TEST_CASE("a call launches its plan", "[runtime]") {
  Fake fake;
  fa4::Context context(FA4_FAKE_DRIVER);
  for (fa4_dtype dtype : {FA4_FP16, FA4_BF16}) {
    for (bool causal : {false, true}) {
      Problem problem = small_problem();
      problem.dtype = dtype;
      problem.set_causal(causal).set_stream(reinterpret_cast<void*>(0x500));
      const uint32_t before = fake.driver->launch_count;
      context.forward(problem);
      REQUIRE(fake.driver->launch_count == before + 1);
      CHECK(same_launch(fake.driver->launches[before], problem, *fake.driver));
    }
  }
  CHECK(fake.driver->encodes == 16);
  CHECK(fake.driver->loads == 1);
  CHECK(context.workspace_size(small_problem()) == 0);
}

TEST_CASE("a call launches the kernel with the exponentials that it asks for", "[runtime]") {
  Fake fake;
  fa4::Context context(FA4_FAKE_DRIVER);
  Problem problem = small_problem();
  for (const int32_t exp2 : {FA4_EXP2_AUTO, FA4_EXP2_MUFU, FA4_EXP2_POLYNOMIAL}) {
    problem.exp2 = exp2;
    const uint32_t before = fake.driver->launch_count;
    context.forward(problem);
    REQUIRE(fake.driver->launch_count == before + 1);
    CHECK(same_launch(fake.driver->launches[before], problem, *fake.driver));
  }
}

TEST_CASE("masks, a cap, sinks and slopes launch the general kernel", "[runtime]") {
  Fake fake;
  for (const int major : {9, 10}) {
    fake.driver->major = major;
    fa4::Context context(FA4_FAKE_DRIVER);
    const Problem plain = small_problem();
    const uint64_t array = fa4::test::kArrayAddress;
    for (const Problem& problem : {Problem(plain).set_window(10, 0), Problem(plain).set_window(-1, 10),
                                   Problem(plain).set_causal().set_diagonal_alignment(FA4_DIAGONAL_TOP_LEFT), Problem(plain).set_softcap(20),
                                   Problem(plain).set_sinks(array).set_causal(), Problem(plain).set_alibi_slopes(array, 8)}) {
      CHECK(fa4_supported(context.get(), &problem) == FA4_OK);
      CHECK(context.workspace_size(problem) == 0);
      CHECK(launched(fake, context, problem) == (major == 9 ? "fa4_forward_f16_d128_general" : "fa4_forward_f16_d128_general_polynomial"));
    }
  }
}

TEST_CASE("where entries have lengths of their own a call needs a workspace, and is refused without", "[runtime]") {
  Fake fake;
  fa4::Context context(FA4_FAKE_DRIVER);
  const uint64_t array = fa4::test::kArrayAddress;
  alignas(4) static char memory[8];  // an address; nobody writes there
  const Problem plain = small_problem();
  for (Problem problem : {Problem(plain).set_packed_q(array, 150).set_lse(fa4::test::kLseAddress), Problem(plain).set_packed_k(array, 350),
                          Problem(plain).set_seqused_q(array), Problem(plain).set_seqused_k(array)}) {
    fake.driver->calls = 0;
    fake.driver->launch_count = 0;
    CHECK(fa4_supported(context.get(), &problem) == FA4_OK);
    CHECK(fa4_supported(nullptr, &problem) == FA4_OK);
    CHECK(fa4::why_unsupported(problem).empty());
    CHECK(context.workspace_size(problem) == 4);
    uint64_t size = 1;
    CHECK(fa4_workspace_size(nullptr, &problem, &size) == FA4_OK);
    CHECK(size == 4);
    const auto refused = [&](void* workspace, uint64_t bytes) {
      problem.set_workspace(workspace, bytes);
      CHECK(fa4_forward(context.get(), &problem) == FA4_ERROR_INVALID_ARGUMENT);
      CHECK(fake.driver->calls == 0);
      CHECK(fa4_supported(context.get(), &problem) == FA4_OK);
      CHECK(context.workspace_size(problem) == 4);
      return std::string(fa4_last_error());
    };
    CHECK(refused(nullptr, 0) == "workspace_size is 0 bytes; 4 are needed");
    CHECK(refused(memory, 3) == "workspace_size is 3 bytes; 4 are needed");
    CHECK(refused(nullptr, 4).find("; the address of 4 bytes, a multiple of 4, is needed") != std::string::npos);
    for (int off = 1; off < 4; ++off) {
      char address[32];
      std::snprintf(address, sizeof address, "workspace is %p;", static_cast<void*>(memory + off));
      CHECK(refused(memory + off, 4) == address + std::string(" the address of 4 bytes, a multiple of 4, is needed"));
    }
    for (const uint64_t bytes : {uint64_t{4}, uint64_t{5}, ~uint64_t{0}}) {
      problem.set_workspace(memory + 4, bytes);
      fake.driver->launch_count = 0;
      context.forward(problem);
      REQUIRE(fake.driver->launch_count == 1);
      CHECK(same_launch(fake.driver->launches[0], problem, *fake.driver));
      CHECK(fake.driver->launches[0].params.general.task_counter == reinterpret_cast<uint32_t*>(memory + 4));
    }
    // Nothing to compute needs none.
    problem.batch = 0;
    problem.set_workspace(nullptr, 0);
    fake.driver->calls = 0;
    CHECK(context.workspace_size(problem) == 0);
    context.forward(problem);
    CHECK(fake.driver->calls == 0);
  }
  // What needs none does not look at it.
  Problem window = Problem(plain).set_window(10, 10);
  context.forward(window.set_workspace(memory + 1, 1));
  CHECK(fake.driver->launches[fake.driver->launch_count - 1].params.general.task_counter == nullptr);
}

TEST_CASE("an empty problem succeeds and launches nothing", "[runtime]") {
  Fake fake;
  fa4::Context context(FA4_FAKE_DRIVER);
  fake.driver->calls = 0;
  Problem problem = small_problem();
  problem.batch = 0;
  context.forward(problem);
  problem = small_problem();
  problem.seq_q = 0;
  context.forward(problem);
  problem = small_problem();
  problem.set_packed_q(fa4::test::kArrayAddress, 0);
  CHECK(context.workspace_size(problem) == 0);
  context.forward(problem);
  CHECK(fake.driver->calls == 0);
  problem.head_dim = 84;
  CHECK(fa4_forward(context.get(), &problem) == FA4_ERROR_UNSUPPORTED);
}

TEST_CASE("a refused call launches nothing", "[runtime]") {
  Fake fake;
  fa4::Context context(FA4_FAKE_DRIVER);
  fake.driver->calls = 0;
  Problem problem = small_problem();
  problem.q.data += 8;
  CHECK(fa4_forward(context.get(), &problem) == FA4_ERROR_INVALID_ARGUMENT);
  const std::string sentence = fa4_last_error();
  CHECK(sentence == "q.data is 0x7f0000000008; a multiple of 16 bytes is needed");
  CHECK(fa4_supported(context.get(), &problem) == FA4_ERROR_INVALID_ARGUMENT);
  CHECK(fa4_last_error() == sentence);
  CHECK(fa4_supported(nullptr, &problem) == FA4_ERROR_INVALID_ARGUMENT);
  CHECK(fa4::why_unsupported(problem) == sentence);
  CHECK(fa4::why_unsupported(small_problem()).empty());
  uint64_t size = 1;
  CHECK(fa4_workspace_size(nullptr, &problem, &size) == FA4_ERROR_INVALID_ARGUMENT);
  CHECK(size == 0);
  CHECK(fake.driver->calls == 0);
  try {
    context.forward(problem);
    FAIL("no exception");
  } catch (const fa4::Error& error) {
    CHECK(error.status() == FA4_ERROR_INVALID_ARGUMENT);
    CHECK(error.what() == sentence);
  }

  problem = small_problem();
  CHECK(fa4_forward(nullptr, &problem) == FA4_ERROR_INVALID_ARGUMENT);
  CHECK(fa4_forward(context.get(), nullptr) == FA4_ERROR_INVALID_ARGUMENT);
  CHECK(fa4_supported(context.get(), nullptr) == FA4_ERROR_INVALID_ARGUMENT);
  CHECK(fa4_workspace_size(context.get(), &problem, nullptr) == FA4_ERROR_INVALID_ARGUMENT);
  CHECK(fake.driver->calls == 0);

  fake.set_current(nullptr);
  CHECK(fa4_forward(context.get(), &problem) == FA4_ERROR_NO_DEVICE);
  CHECK(std::string(fa4_last_error())
            .find("no current CUDA context; make the one of fa4_create current, 0xc0de") !=
        std::string::npos);
  fake.set_current(reinterpret_cast<CUcontext>(0xbad));
  CHECK(fa4_forward(context.get(), &problem) == FA4_ERROR_NO_DEVICE);
  CHECK(std::string(fa4_last_error())
            .find("current CUDA context is 0xbad; the fa4_context was created in 0xc0de") !=
        std::string::npos);
  fake.set_current(kCurrent);
  for (const char* function : {"cuCtxGetCurrent", "cuTensorMapEncodeTiled"}) {
    fake.driver->failing_function = function;
    fake.driver->failure = CUDA_ERROR_OUT_OF_MEMORY;
    CHECK(fa4_forward(context.get(), &problem) == FA4_ERROR_DRIVER);
    CHECK(std::string(fa4_last_error())
              .find(std::string(function) +
                    " failed with error 2, CUDA_ERROR_OUT_OF_MEMORY: out of memory") == 0);
  }
  CHECK(fake.driver->launch_count == 0);
  fake.driver->failing_function = "cuLaunchKernel";
  CHECK(fa4_forward(context.get(), &problem) == FA4_ERROR_DRIVER);
}

TEST_CASE("a call neither allocates nor reads the environment", "[runtime]") {
  // The counter itself is seen to count first.
  {
    fa4::test::CallCounter counter;
    auto* volatile integer = new int(std::getenv("PATH") != nullptr);
    delete integer;
    CHECK(counter.allocations() == (fa4::test::CallCounter::counts_allocations() ? 1 : 0));
    CHECK(counter.environment_reads() == 1);
  }
  Fake fake;
  fa4::Context context(FA4_FAKE_DRIVER);
  const Problem good = small_problem();
  Problem bad = good;
  bad.o.batch_stride = 0;
  uint32_t workspace = 0;
  Problem general = good;
  general.set_seqused_k(fa4::test::kArrayAddress).set_sinks(fa4::test::kArrayAddress).set_window(5, 5).set_workspace(&workspace, 4);
  uint64_t allocations, reads;
  fa4_status status[4];
  {
    fa4::test::CallCounter counter;
    status[0] = fa4_forward(context.get(), &good);
    status[1] = fa4_forward(context.get(), &bad);
    status[2] = fa4_supported(context.get(), &good);
    status[3] = fa4_forward(context.get(), &general);
    allocations = counter.allocations();
    reads = counter.environment_reads();
  }
  CHECK(status[0] == FA4_OK);
  CHECK(status[1] == FA4_ERROR_INVALID_ARGUMENT);
  CHECK(status[2] == FA4_OK);
  CHECK(status[3] == FA4_OK);
  CHECK(allocations == 0);
  CHECK(reads == 0);
}

TEST_CASE("threads share a context, and each has its own last error", "[runtime]") {
  Fake fake;
  const fa4::Context context(FA4_FAKE_DRIVER);
  constexpr int kThreadCount = 4, kRounds = 200;
  const auto problem_of = [](int thread) {
    Problem problem = small_problem();
    problem.dtype = thread % 2;
    problem.batch = 1 + thread;
    problem.q.data += static_cast<uint64_t>(thread) << 20;
    return Problem(
        problem.set_causal(thread / 2 != 0).set_stream(reinterpret_cast<void*>(uintptr_t(thread + 1))));
  };
  int failures[kThreadCount] = {};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreadCount; ++thread) {
    threads.emplace_back([&, thread] {
      const Problem problem = problem_of(thread);
      Problem bad = problem;
      bad.batch = -1 - thread;
      const std::string sentence = "batch is " + std::to_string(bad.batch) + ";";
      failures[thread] += std::string(fa4_last_error()) != "";
      fake.set_current(kCurrent);
      for (int round = 0; round < kRounds; ++round) {
        failures[thread] += fa4_forward(context.get(), &problem) != FA4_OK;
        failures[thread] += fa4_forward(context.get(), &bad) != FA4_ERROR_INVALID_ARGUMENT;
        failures[thread] += std::string(fa4_last_error()).find(sentence) != 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int failed : failures) CHECK(failed == 0);
  REQUIRE(fake.driver->launch_count == kThreadCount * kRounds);
  int wrong = 0;
  for (uint32_t i = 0; i < fake.driver->launch_count; ++i) {
    const FakeLaunch& launch = fake.driver->launches[i];
    const int thread = static_cast<int>(reinterpret_cast<uintptr_t>(launch.stream)) - 1;
    wrong += !same_launch(launch, problem_of(thread), *fake.driver);
  }
  CHECK(wrong == 0);
}

TEST_CASE("names and versions", "[runtime]") {
  CHECK(fa4_version() == FA4_VERSION);
  CHECK(std::string(fa4_status_name(FA4_OK)) == "FA4_OK");
  CHECK(std::string(fa4_status_name(FA4_ERROR_OUT_OF_MEMORY)) == "FA4_ERROR_OUT_OF_MEMORY");
  CHECK(std::string(fa4_status_name(static_cast<fa4_status>(-9))) == "an unknown fa4_status");
}
