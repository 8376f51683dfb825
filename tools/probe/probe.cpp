// SPDX-License-Identifier: Apache-2.0
#include "probe.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

namespace fa4 {
const void* probe_image();
}

namespace fa4::probe {

namespace {

struct Kernel {
  const char* name;
  uint32_t threads;
  bool blackwell;  // only there
};
constexpr Kernel kKernels[] = {
    {"ffma", 128, false},
    {"imad", 128, false},
    {"alu", 128, false},
    {"ex2", 128, false},
    {"lg2", 128, false},
    {"ex2_chain", 32, false},
    {"lds_32", 32, false},
    {"lds_64", 32, false},
    {"lds_128", 32, false},
    {"shuffle", 32, false},
    {"wait_complete", 32, false},
    {"hand_over", 64, false},
    {"bar_sync_4", 128, false},
    {"bar_sync_12", 384, false},
    {"products_shared_8", 128, false},
    {"products_shared_24", 128, false},
    {"products_other_8", 128, false},
    {"products_other_24", 128, false},
    {"copies_out_8", 32, false},
    {"copies_out_24", 32, false},
    {"chains_alone", 256, false},
    {"chains_beside_products", 256, false},
    {"ffma_pair", 128, true},
    {"tensor_load_1", 128, true},
    {"tensor_load_4", 128, true},
    {"tensor_store_1", 128, true},
    {"tensor_store_8", 128, true},
    {"tensor_store_24", 128, true},
};
constexpr uint32_t kWords = 64;  // of what a kernel writes
// Behind them: where three runs of 24 copies go.
constexpr uint32_t kCopyBytes = 16384, kCopiedBytes = 3 * 24 * kCopyBytes;

// What stands beside the thing measured in a step of a chain, on an H200, in cycles: the selection and the
// address behind a wait; in a hand-over the arrival and the branches.
constexpr double kBesideWait = 5, kBesideHandOver = 5;

class Prober {
 public:
  explicit Prober(support::Gpu& gpu) : gpu_(gpu), cycles_(gpu, kWords * 4 + kCopiedBytes) {
    gpu_.check(gpu_.driver().cuModuleLoadData(&module_, probe_image()), "cuModuleLoadData");
  }
  ~Prober() {
    if (module_) gpu_.driver().cuModuleUnload(module_);
  }
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // Cycles of the slowest warp, the least of some launches.
  double run(const Kernel& kernel) {
    constexpr int launches = 7;
    CUfunction function;
    gpu_.check(
        gpu_.driver().cuModuleGetFunction(&function, module_, ("probe_" + std::string(kernel.name)).c_str()),
        "cuModuleGetFunction");
    uint32_t best = ~0u;
    for (int i = 0; i < launches; ++i) {
      uint32_t cycles[kWords] = {};
      gpu_.upload(cycles_.address(), cycles, sizeof cycles);
      CUdeviceptr address = cycles_.address();
      void* parameters[] = {&address};
      const CUlaunchConfig config = {1, 1, 1, kernel.threads, 1, 1, 0, nullptr, nullptr, 0};
      gpu_.check(gpu_.driver().cuLaunchKernelEx(&config, function, parameters, nullptr), "cuLaunchKernelEx");
      gpu_.synchronize();
      gpu_.download(cycles, cycles_.address(), sizeof cycles);
      best = std::min(best, *std::max_element(cycles, cycles + kernel.threads / 32));
    }
    return best;
  }

 private:
  support::Gpu& gpu_;
  support::DeviceBuffer cycles_;
  CUmodule module_ = nullptr;
};

}  // namespace

std::vector<Measured> measure(support::Gpu& gpu) {
  const uint32_t arch = gpu.properties().arch();
  const bool blackwell = arch == 100 || arch == 103;
  if (arch != 90 && !blackwell)
    throw std::runtime_error("nothing measures a GPU of compute capability " +
                             std::to_string(gpu.properties().major) + "." +
                             std::to_string(gpu.properties().minor) + "; 9.0, 10.0 and 10.3 are accepted");
  Prober prober(gpu);
  std::map<std::string_view, double> cycles;
  for (const Kernel& kernel : kKernels)
    if (blackwell || !kernel.blackwell) cycles[kernel.name] = prober.run(kernel);

  const double rows = blackwell ? 128 : 64;  // of a product with 128 columns and 16 of K
  const double shared = (cycles["products_shared_24"] - cycles["products_shared_8"]) / 16,
               other = (cycles["products_other_24"] - cycles["products_other_8"]) / 16;
  const double wait = cycles["wait_complete"] / 64 - kBesideWait,
               wake = cycles["hand_over"] / 128 - kBesideHandOver;
  const double each_warp = (cycles["bar_sync_12"] - cycles["bar_sync_4"]) / 32 / 8,
               load = cycles["lds_32"] / 32;
  std::vector<Measured> all = {
      {"FFMA, FADD, FMUL", cycles["ffma"] / 512},
      {"IMAD", cycles["imad"] / 512},
      {"ALU", cycles["alu"] / 512},
      {"EX2", cycles["ex2"] / 256},
      {"MUFU, other", cycles["lg2"] / 256},
      {"MUFU latency", cycles["ex2_chain"] / 128},
      {"LDS to use, 32 bit", load},
      {"LDS to use, 64 bit", cycles["lds_64"] / 32},
      {"LDS to use, 128 bit", cycles["lds_128"] / 32},
      {"SHFL, VOTE, REDUX to use", cycles["shuffle"] / 128},
      {"try_wait of a complete phase, to use", wait},
      {"arrive to the waiter's use", wake},
      {"bar.sync", cycles["bar_sync_4"] / 32 - load - 4 * each_warp},
      {"bar.sync, each warp", 10 * each_warp},
      {"MMA, 16 bit", 2 * rows * 128 * 16 / shared},
  };
  // On a Blackwell the end of the last product is seen through a commit and a wait.
  const double seen = blackwell ? wake : 0;
  all.push_back({"MMA end to arrival, A in shared memory", cycles["products_shared_8"] - 8 * shared - seen});
  all.push_back({"MMA end to arrival, A elsewhere", cycles["products_other_8"] - 8 * other - seen});
  all.push_back({"TMA store", kCopyBytes / ((cycles["copies_out_24"] - cycles["copies_out_8"]) / 16)});
  const double alone = cycles["chains_alone"] / 512, beside = cycles["chains_beside_products"] / 512;
  all.push_back({"beside MMAs, arithmetic once every", beside < 1.2 * alone ? 1 : beside});
  if (blackwell) {
    // A warp's bytes: 32 lanes with 32 or 16 registers of 4.
    const double tensor_load = (cycles["tensor_load_4"] - cycles["tensor_load_1"]) / 3,
                 store = (cycles["tensor_store_24"] - cycles["tensor_store_8"]) / 16;
    all.push_back({"FFMA2, FADD2, FMUL2", cycles["ffma_pair"] / 512});
    all.push_back({"TMEM load", 32 * 32 * 4 / tensor_load});
    all.push_back({"TMEM load latency", cycles["tensor_load_1"] - tensor_load});
    all.push_back({"TMEM store", 32 * 16 * 4 / store});
    all.push_back({"TMEM store latency", cycles["tensor_store_1"] - store});
  }
  // A difference that is lost among what stands beside it.
  std::erase_if(all, [](const Measured& m) { return !(m.value >= 0.5 && m.value < 1e6); });
  return all;
}

}  // namespace fa4::probe
