// SPDX-License-Identifier: Apache-2.0
// What can be loaded and what each refusal answers: PTX, fatbinaries whole, cut short and damaged, cubins,
// garbage.
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "driver.h"
#include "images.h"

namespace {

CUresult load(const std::string& image) {
  CUmodule module;
  const CUresult result = CALL(cuModuleLoadData, &module, image.c_str());
  if (result == CUDA_SUCCESS) SUCCEEDS(cuModuleUnload, module);
  return result;
}

CUresult load_file(const std::string& image) {
  char path[] = "/tmp/fa4sim-image-XXXXXX";
  const int file = mkstemp(path);
  REQUIRE(file >= 0);
  REQUIRE(write(file, image.data(), image.size()) == static_cast<ssize_t>(image.size()));
  close(file);
  CUmodule module;
  const CUresult result = CALL(cuModuleLoad, &module, path);
  if (result == CUDA_SUCCESS) SUCCEEDS(cuModuleUnload, module);
  unlink(path);
  return result;
}

// A fatbinary put together here, entry by entry, from the layout alone.
class Fatbinary {
 public:
  void add(uint16_t kind, uint32_t architecture, std::string payload, uint64_t flags = 0x11,
           uint32_t compressed = 0, uint64_t unpacked = 0) {
    while (payload.size() % 8 != 0) payload += '\0';
    std::string header(64, '\0');
    put(&header, 0, kind);
    put(&header, 2, uint16_t{0x101});
    put(&header, 4, uint32_t{64});
    put(&header, 8, uint64_t{payload.size()});
    put(&header, 16, compressed);
    put(&header, 28, architecture);
    put(&header, 40, flags);
    put(&header, 56, unpacked);
    entries_ += header + payload;
  }
  std::string bytes() const {
    std::string header(16, '\0');
    put(&header, 0, uint32_t{0xba55ed50});
    put(&header, 4, uint16_t{1});
    put(&header, 6, uint16_t{16});
    put(&header, 8, uint64_t{entries_.size()});
    return header + entries_;
  }
  template <typename T>
  static void put(std::string* bytes, size_t at, T value) {
    std::memcpy(bytes->data() + at, &value, sizeof value);
  }

 private:
  std::string entries_;
};

}  // namespace

TEST_CASE("PTX loads if its target runs on 10.0") {
  TestContext context;
  struct Row {
    const char* target;
    CUresult expected;
  };
  for (const Row& row :
       {Row{"sm_100f", CUDA_SUCCESS}, Row{"sm_100a", CUDA_SUCCESS}, Row{"sm_100", CUDA_SUCCESS},
        Row{"sm_90", CUDA_SUCCESS}, Row{"sm_80", CUDA_SUCCESS}, Row{"sm_90a", CUDA_ERROR_INVALID_PTX},
        Row{"sm_103", CUDA_ERROR_INVALID_PTX}, Row{"sm_103a", CUDA_ERROR_INVALID_PTX},
        Row{"sm_120a", CUDA_ERROR_INVALID_PTX}, Row{"sm_101f", CUDA_ERROR_INVALID_PTX}}) {
    INFO(row.target);
    CHECK(load(kernels_for(row.target)) == row.expected);
    if (row.expected != CUDA_SUCCESS) says(row.target);
  }
  CHECK(load(replaced(kernels_ptx(), ".version 9.0", ".version 9.1")) == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  says("9.1");
  CHECK(load(replaced(kernels_ptx(), ".version 9.0", ".version nine")) == CUDA_ERROR_INVALID_PTX);
  CHECK(load(replaced(kernels_ptx(), "mul.f32", "frobnicate.f32")) == CUDA_ERROR_INVALID_PTX);
  says("line ");
  says("frobnicate");
}

TEST_CASE("what is no image is refused") {
  TestContext context;
  CUmodule module;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData, &module, nullptr);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData, nullptr, "");
  CHECK(load("") == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load("hello") == CUDA_ERROR_INVALID_IMAGE);
  says("not PTX");
  CHECK(load("/* unfinished") == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load("//") == CUDA_ERROR_INVALID_IMAGE);
  FAILS(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad, &module, "/nonexistent/kernels.ptx");
  says("/nonexistent/kernels.ptx");
  FAILS(CUDA_ERROR_INVALID_VALUE, cuModuleLoad, &module, nullptr);
  CHECK(load_file("") == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load_file(kernels_ptx()) == CUDA_SUCCESS);
  CHECK(load_file(std::string("a\0b", 3)) == CUDA_ERROR_INVALID_IMAGE);
  std::mt19937 rng(6);
  for (int n = 0; n < 300; ++n) {
    std::string garbage(1 + rng() % 200, '\0');
    for (char& c : garbage) c = static_cast<char>(rng());
    CHECK(load(garbage) != CUDA_SUCCESS);
    CHECK(load_file(garbage) != CUDA_SUCCESS);
  }
}

TEST_CASE("a cubin is no code for this GPU: modules say so at once, libraries when a kernel is looked for") {
  TestContext context;
  const std::string cubin = read_whole(KERNELS_CUBIN);
  CHECK(load(cubin) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  says("runs PTX");
  CHECK(load(cubin.substr(0, 40)) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(load_file(cubin) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CUlibrary library;
  CUkernel kernel;
  CUmodule module;
  SUCCEEDS(cuLibraryLoadData, &library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  FAILS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuLibraryGetKernel, &kernel, library, "scale");
  says("runs PTX");
  FAILS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuLibraryGetModule, &module, library);
  SUCCEEDS(cuLibraryUnload, library);
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetKernel, &kernel, library, "scale");
}

TEST_CASE("fatbinaries of the toolkit") {
  TestContext context;
  CHECK(load(read_whole(KERNELS_FATBINARY)) == CUDA_SUCCESS);
  CHECK(load_file(read_whole(KERNELS_FATBINARY)) == CUDA_SUCCESS);
  for (const char* path : {KERNELS_ZSTD, KERNELS_LZ4}) {
    INFO(path);
    CHECK(load(read_whole(path)) == CUDA_SUCCESS);
    CHECK(load_file(read_whole(path)) == CUDA_SUCCESS);
    const std::string whole = read_whole(path);
    // The last bytes are padding: one before them.
    for (size_t at = whole.size() - 300; at < whole.size() - 20; at += 7) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(~damaged[at]);
      const CUresult result = load(damaged);
      CHECK(
          (result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_INVALID_PTX));
    }
  }
  const std::string ptx = kernels_ptx();
  Fatbinary unknown;
  unknown.add(2, 100,
              "\x7f"
              "ELF");
  unknown.add(1, 100, ptx, 0x201011, static_cast<uint32_t>(ptx.size()), ptx.size());
  CHECK(load(unknown.bytes()) == CUDA_ERROR_NOT_SUPPORTED);
  says(
      "the compression of the entry at offset 88 is not known: its flags are 0x201011; zstd (0x8000) and LZ4 "
      "(0x2000) are read");
  unknown.add(1, 80, kernels_for("sm_80"));
  CHECK(load(unknown.bytes()) == CUDA_SUCCESS);
  Fatbinary lying;
  lying.add(1, 100, ptx, 0x208011, static_cast<uint32_t>(ptx.size()), uint64_t{1} << 40);
  CHECK(load(lying.bytes()) == CUDA_ERROR_INVALID_IMAGE);
  says("is said to be code of 1099511627776 bytes");
  Fatbinary other;  // of another GPU's PTX nothing is unpacked
  other.add(1, 90, ptx, 0x108011, static_cast<uint32_t>(ptx.size()), uint64_t{1} << 40);
  CHECK(load(other.bytes()) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  says("PTX for sm_90a");
}

TEST_CASE("the best PTX of a fatbinary is taken") {
  TestContext context;
  Fatbinary several;
  several.add(1, 120, kernels_for("sm_120"));
  several.add(1, 80, "\n\n" + replaced(kernels_for("sm_80"), "scale(", "old("));
  several.add(2, 100,
              "\x7f"
              "ELF");
  several.add(1, 100, kernels_ptx());
  several.add(1, 90, replaced(kernels_for("sm_90"), "scale(", "older("));
  CUmodule module;
  CUfunction function;
  SUCCEEDS(cuModuleLoadFatBinary, &module, several.bytes().data());
  SUCCEEDS(cuModuleGetFunction, &function, module, "scale");
  SUCCEEDS(cuModuleUnload, module);

  Fatbinary none;
  none.add(1, 120, kernels_for("sm_120a"), 0x100011);
  none.add(2, 90,
           "\x7f"
           "ELF");
  CHECK(load(none.bytes()) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  says("PTX for sm_120a, a cubin for sm_90");
  CHECK(load(Fatbinary().bytes()) == CUDA_ERROR_NO_BINARY_FOR_GPU);

  SUCCEEDS(cuModuleLoadData, &module, several.bytes().data());
  SUCCEEDS(cuModuleUnload, module);
  const std::string bytes = several.bytes();
  const struct {
    int magic, version;
    const void* data;
    void* unused;
  } wrapper = {0x466243b1, 1, bytes.data(), nullptr};
  SUCCEEDS(cuModuleLoadData, &module, &wrapper);
  SUCCEEDS(cuModuleUnload, module);
}

TEST_CASE("a fatbinary cut short or damaged is refused, never followed") {
  TestContext context;
  const std::string whole = read_whole(KERNELS_FATBINARY);
  size_t refused = 0, tried = 0;
  for (size_t length = 4; length < whole.size(); length += length < 400 ? 1 : 97) {
    const std::string cut = whole.substr(0, length);
    CHECK(load_file(cut) == CUDA_ERROR_INVALID_IMAGE);
    // In memory its length is not known; what follows reads as zeros here.
    std::string padded = cut;
    padded.resize(whole.size() + 4096, '\0');
    const CUresult result = load(padded);
    ++tried;
    refused += result != CUDA_SUCCESS;
  }
  CHECK(refused == tried);
  std::mt19937 rng(7);
  for (int n = 0; n < 2000; ++n) {
    std::string damaged = whole;
    // Headers of the file and of its first entry, where sizes stand.
    damaged[4 + rng() % 76] = static_cast<char>(rng());
    if (n % 2 == 0) damaged[4 + rng() % 76] = static_cast<char>(rng());
    load_file(damaged);
  }
  auto with = [&](size_t at, auto value) {
    std::string changed = whole;
    Fatbinary::put(&changed, at, value);
    return load(changed);
  };
  CHECK(with(8, ~uint64_t{0}) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(with(8, uint64_t{1} << 40) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(with(6, uint16_t{0}) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(with(4, uint16_t{2}) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(with(16 + 8, ~uint64_t{0}) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(with(16 + 8, ~uint64_t{0} - 100) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(with(16 + 4, uint32_t{0}) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(with(16 + 4, ~uint32_t{0}) == CUDA_ERROR_INVALID_IMAGE);
}

TEST_CASE("a kernel with instructions that are not simulated is refused when it is taken") {
  TestContext context;
  const std::string ptx =
      kernels_ptx() +
      ".visible .entry lacking(.param .u32 n)\n{\n  pmevent 3;\n  discard.global.L2 [0], 128;\n  ret;\n}\n";
  CUmodule module;
  CUfunction function = nullptr;
  SUCCEEDS(cuModuleLoadData, &module, ptx.c_str());
  SUCCEEDS(cuModuleGetFunction, &function, module, "scale");
  for (int i = 0; i < 2; ++i) {
    FAILS(CUDA_ERROR_INVALID_PTX, cuModuleGetFunction, &function, module, "lacking");
    CHECK((says("kernel lacking: 2 instructions") && says("'pmevent 3;'") &&
           says("'discard.global.L2 [0], 128;'")));
  }
  // A handle that is given without a question.
  unsigned count = 0;
  SUCCEEDS(cuModuleGetFunctionCount, &count, module);
  std::vector<CUfunction> all(count);
  SUCCEEDS(cuModuleEnumerateFunctions, all.data(), count, module);
  size_t lacking = 0;
  for (CUfunction f : all) {
    const char* name = nullptr;
    SUCCEEDS(cuFuncGetName, &name, f);
    if (std::string(name) != "lacking") continue;
    ++lacking;
    int value;
    FAILS(CUDA_ERROR_INVALID_PTX, cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_NUM_REGS, f);
    FAILS(CUDA_ERROR_INVALID_PTX, cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  }
  CHECK(lacking == 1);
  SUCCEEDS(cuModuleUnload, module);
  CUlibrary library;
  CUkernel kernel;
  SUCCEEDS(cuLibraryLoadData, &library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  FAILS(CUDA_ERROR_INVALID_PTX, cuLibraryGetKernel, &kernel, library, "lacking");
  SUCCEEDS(cuLibraryGetKernel, &kernel, library, "scale");
  SUCCEEDS(cuLibraryUnload, library);
}

TEST_CASE("the log of a failed load is handed over") {
  TestContext context;
  char log[256] = "untouched", info[16] = "untouched";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_OPTIMIZATION_LEVEL};
  auto number = [](uintptr_t n) { return reinterpret_cast<void*>(n); };
  void* values[] = {log, number(sizeof log), info, number(sizeof info), number(4)};
  const std::string wrong = replaced(kernels_ptx(), "mul.f32", "frobnicate.f32");
  CUmodule module;
  FAILS(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx, &module, wrong.c_str(), 5, options, values);
  CHECK(std::string(log).find("frobnicate") != std::string::npos);
  CHECK(reinterpret_cast<uintptr_t>(values[1]) == std::strlen(log));
  CHECK(std::string(info).empty());
  values[1] = number(8);
  FAILS(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx, &module, wrong.c_str(), 2, options, values);
  CHECK(std::strlen(log) == 7);
  CUlibrary library;
  values[1] = number(sizeof log);
  FAILS(CUDA_ERROR_INVALID_PTX, cuLibraryLoadData, &library, wrong.c_str(), options, values, 2, nullptr,
        nullptr, 0);
  CHECK(std::string(log).find("frobnicate") != std::string::npos);
  CUjit_option unknown[] = {static_cast<CUjit_option>(77)};
  FAILS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadDataEx, &module, kernels_ptx().c_str(), 1, unknown, values);
}
