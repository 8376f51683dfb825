// SPDX-License-Identifier: Apache-2.0
#include "probe.h"

#include <algorithm>
#include <cmath>
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
  bool blackwell = false;  // only there
  bool every_sm = false;   // a CTA on each
  uint32_t boxes = 0;      // room for them in shared memory
};
constexpr Kernel kKernels[] = {
    {"ffma", 128},
    {"imad", 128},
    {"alu", 128},
    {"ex2", 128},
    {"lg2", 128},
    {"ex2_chain", 32},
    {"branch", 32},
    {"special_register", 32},
    {"global", 32},
    {"constant", 32},
    {"lds_32", 32},
    {"lds_64", 32},
    {"lds_128", 32},
    {"wide_loads_8", 512},
    {"wide_loads_24", 512},
    {"shuffle", 32},
    {"fence_async", 32},
    {"fence_cta", 32},
    {"wait_complete", 32},
    {"hand_over", 64},
    {"wake_1", 64},
    {"wake_11", 384},
    {"bar_sync_4", 128},
    {"bar_sync_12", 384},
    {"products_shared_8", 128},
    {"products_shared_24", 128},
    {"products_issue_2", 128},
    {"products_issue_6", 128},
    {"products_issue_24", 128},
    {"products_other_8", 128},
    {"products_other_24", 128},
    {"boxes_issue_1", 32, false, false, 8},
    {"boxes_issue_8", 32, false, false, 8},
    {"box_for_all", 32, false, true, 8},
    {"boxes_4", 32, false, false, 8},
    {"boxes_8", 32, false, false, 8},
    {"ring_8", 32, false, true, 2},
    {"ring_40", 32, false, true, 2},
    {"boxes_out_1", 32, false, false, 1},
    {"boxes_out_8", 32, false, false, 1},
    {"boxes_out_24", 32, false, false, 1},
    {"chains_alone", 256},
    {"chains_beside_products", 256},
    {"ffma_pair", 128, true},
    {"tensor_load_1", 128, true},
    {"tensor_load_4", 128, true},
    {"tensor_store_1", 128, true},
    {"tensor_store_8", 128, true},
    {"tensor_store_24", 128, true},
};
constexpr uint32_t kWords = 64;  // that a CTA writes
// Behind them: from where boxes of 128 rows of 128 bytes come, and where they go.
constexpr uint32_t kBoxRows = 128, kBoxBytes = kBoxRows * 128, kBoxes = 24;

// What stands beside the thing measured in a step of a chain, on an H200, in cycles: the selection and the
// address behind a wait; in a hand-over the arrival and the branches; the comparison before a special
// register; the store before a fence.
constexpr double kBesideWait = 5, kBesideHandOver = 5, kBesideSpecialRegister = 13, kBesideFence = 4;
// In a loop of sixteen additions that wait for each other, four cycles each, the branch stands one cycle
// behind the last.
constexpr double kBesideBranch = 15 * 4 + 1;

class Prober {
 public:
  explicit Prober(support::Gpu& gpu)
      : gpu_(gpu),
        sms_(static_cast<uint32_t>(gpu.properties().sm_count)),
        cycles_(gpu, sms_ * kWords * 4 + kBoxes * kBoxBytes) {
    gpu_.check(gpu_.driver().cuModuleLoadData(&module_, probe_image()), "cuModuleLoadData");
    const cuuint64_t size[] = {64, kBoxes * kBoxRows, 1, 1, 1},
                     pitch[] = {128, kBoxes * kBoxBytes, kBoxes * kBoxBytes, kBoxes * kBoxBytes};
    const cuuint32_t box[] = {64, kBoxRows, 1, 1, 1}, step[] = {1, 1, 1, 1, 1};
    gpu_.check(gpu_.driver().cuTensorMapEncodeTiled(
                   &map_, CU_TENSOR_MAP_DATA_TYPE_UINT16, 5,
                   reinterpret_cast<void*>(cycles_.address() + sms_ * kWords * 4), size, pitch, box, step,
                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
               "cuTensorMapEncodeTiled");
  }
  ~Prober() {
    if (module_) gpu_.driver().cuModuleUnload(module_);
  }
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // Cycles of the slowest warp, in the mean of the CTAs, the least of some launches.
  double run(const Kernel& kernel) {
    constexpr int launches = 7;
    CUfunction function;
    gpu_.check(
        gpu_.driver().cuModuleGetFunction(&function, module_, ("probe_" + std::string(kernel.name)).c_str()),
        "cuModuleGetFunction");
    const uint32_t shared_bytes = kernel.boxes > 0 ? kernel.boxes * kBoxBytes + 1024 : 0;
    if (shared_bytes > 0)
      gpu_.check(gpu_.driver().cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                  static_cast<int>(shared_bytes)),
                 "cuFuncSetAttribute");
    const uint32_t ctas = kernel.every_sm ? sms_ : 1;
    double best = INFINITY;
    for (int i = 0; i < launches; ++i) {
      std::vector<uint32_t> cycles(ctas * kWords);
      gpu_.upload(cycles_.address(), cycles.data(), cycles.size() * 4);
      CUdeviceptr address = cycles_.address();
      void* parameters[] = {&address, &map_};  // which most kernels do not have
      const CUlaunchConfig config = {ctas, 1, 1, kernel.threads, 1, 1, shared_bytes, nullptr, nullptr, 0};
      gpu_.check(gpu_.driver().cuLaunchKernelEx(&config, function, parameters, nullptr), "cuLaunchKernelEx");
      gpu_.synchronize();
      gpu_.download(cycles.data(), cycles_.address(), cycles.size() * 4);
      double sum = 0;
      for (auto cta = cycles.begin(); cta != cycles.end(); cta += kWords)
        sum += *std::max_element(cta, cta + kernel.threads / 32);
      best = std::min(best, sum / ctas);
    }
    return best;
  }

 private:
  support::Gpu& gpu_;
  const uint32_t sms_;
  support::DeviceBuffer cycles_;
  CUmodule module_ = nullptr;
  CUtensorMap map_;
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
      {"taken branch", cycles["branch"] / 512 - kBesideBranch},
      {"S2R to use", cycles["special_register"] / 32 - kBesideSpecialRegister},
      {"constant to use", cycles["constant"] / 32},
      {"LDG from L2 to use", cycles["global"] / 16},
      {"shared memory", 16 * 16 * 512 / (cycles["wide_loads_24"] - cycles["wide_loads_8"])},
      {"fence.proxy.async", (cycles["fence_async"] - cycles["fence_cta"]) / 32},
      {"fence, CTA", cycles["fence_cta"] / 32 - kBesideFence},
      {"arrive to the use of each further waiter", (cycles["wake_11"] - cycles["wake_1"]) / 10},
  };
  // On a Blackwell the end of the last product is seen through a commit and a wait.
  const double seen = blackwell ? wake : 0;
  all.push_back({"MMA end to arrival, A in shared memory", cycles["products_shared_8"] - 8 * shared - seen});
  all.push_back({"MMA end to arrival, A elsewhere", cycles["products_other_8"] - 8 * other - seen});
  const double issue = (cycles["products_issue_6"] - cycles["products_issue_2"]) / 4;
  all.push_back({"MMA issue", issue});
  // Of 24 the last one is issued when the tensor core is that far behind, less what comes before the first;
  // where none waits there is no queue.
  if (cycles["products_issue_24"] > 24 * shared / 2)
    all.push_back({"MMA queue of a warpgroup", std::ceil(24 - cycles["products_issue_24"] / shared)});
  const double store = (cycles["boxes_out_24"] - cycles["boxes_out_8"]) / 16;
  all.push_back({"TMA store", kBoxBytes / store});
  all.push_back({"TMA store, source free", cycles["boxes_out_1"] - store});
  all.push_back({"TMA issue", (cycles["boxes_issue_8"] - cycles["boxes_issue_1"]) / 7});
  all.push_back({"TMA load", 32 * kBoxBytes / (cycles["ring_40"] - cycles["ring_8"])});
  all.push_back(
      {"TMA load, first byte", cycles["box_for_all"] - (cycles["boxes_8"] - cycles["boxes_4"]) / 4});
  const double alone = cycles["chains_alone"] / 512, beside = cycles["chains_beside_products"] / 512;
  all.push_back({"beside MMAs, arithmetic once every", beside < 1.2 * alone ? 1 : beside});
  if (blackwell) {
    // A warp's bytes: 32 lanes with 32 or 16 registers of 4.
    const double tensor_load = (cycles["tensor_load_4"] - cycles["tensor_load_1"]) / 3,
                 tensor_store = (cycles["tensor_store_24"] - cycles["tensor_store_8"]) / 16;
    all.push_back({"FFMA2, FADD2, FMUL2", cycles["ffma_pair"] / 512});
    all.push_back({"TMEM load", 32 * 32 * 4 / tensor_load});
    all.push_back({"TMEM load latency", cycles["tensor_load_1"] - tensor_load});
    all.push_back({"TMEM store", 32 * 16 * 4 / tensor_store});
    all.push_back({"TMEM store latency", cycles["tensor_store_1"] - tensor_store});
  }
  // A difference that is lost among what stands beside it.
  std::erase_if(all, [](const Measured& m) { return !(m.value >= 0.5 && m.value < 1e6); });
  return all;
}

}  // namespace fa4::probe
