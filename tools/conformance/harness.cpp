// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <unordered_map>

#include "isolated.h"

namespace fa4::conformance {
namespace {

constexpr unsigned char kUntouched = 0xA5;  // the output before the kernel runs

CUresult encode(const fa4::HostDriver& driver, const Map& m, CUdeviceptr input, CUdeviceptr output,
                CUtensorMap* map) {
  cuuint64_t extents[5], strides[4];
  cuuint32_t box[5], element_strides[5];
  std::copy(m.extents, m.extents + 5, extents);
  std::copy(m.strides, m.strides + 4, strides);
  std::copy(m.box, m.box + 5, box);
  std::copy(m.element_strides, m.element_strides + 5, element_strides);
  const CUdeviceptr base = (m.over_output ? output : input) + m.offset;
  return driver.cuTensorMapEncodeTiled(map, CUtensorMapDataType(m.type), m.rank,
                                       reinterpret_cast<void*>(base), extents, strides, box, element_strides,
                                       CUtensorMapInterleave(m.interleave), CUtensorMapSwizzle(m.swizzle),
                                       CU_TENSOR_MAP_L2_PROMOTION_NONE, CUtensorMapFloatOOBfill(m.fill));
}

std::string bits_text(const std::byte* at, uint32_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  char text[24];
  std::snprintf(text, sizeof text, "0x%0*llx", int(2 * bytes), static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

Runner::~Runner() {
  unload();
}

void Runner::unload() {
  if (module_) gpu_.driver().cuModuleUnload(module_);
  module_ = nullptr;
  loaded_.clear();
}

bool Runner::failed(CUresult result, const char* function, Answer& answer) {
  if (result == CUDA_SUCCESS) return false;
  answer.status = result;
  answer.output.clear();
  try {
    gpu_.check(result, function);
  } catch (const std::exception& error) {
    answer.failure = error.what();
  }
  if (gpu_.simulated()) answer.failure += std::string(": ") + gpu_.simulator().last_error();
  return true;
}

CUfunction Runner::load(const Row& row, Answer& answer) {
  const auto& properties = gpu_.properties();
  std::string text = module_for(row, properties.major, properties.minor);
  if (text != loaded_) {
    unload();
    if (failed(gpu_.driver().cuModuleLoadData(&module_, text.c_str()), "cuModuleLoadData", answer)) {
      module_ = nullptr;
      return nullptr;
    }
    loaded_ = std::move(text);
  }
  CUfunction function = nullptr;
  if (failed(gpu_.driver().cuModuleGetFunction(&function, module_, row.entry.c_str()), "cuModuleGetFunction",
             answer))
    return nullptr;
  return function;
}

Answer Runner::run(const Row& row) {
  Answer answer;
  const fa4::HostDriver& driver = gpu_.driver();
  const CUfunction function = load(row, answer);
  if (!function) return answer;
  const std::vector<std::byte> input = input_of(row);
  const std::vector<std::byte> untouched(row.output_bytes(), std::byte{kUntouched});
  support::DeviceBuffer in(gpu_, input.size()), out(gpu_, untouched.size());
  gpu_.upload(in.address(), input.data(), input.size());
  gpu_.upload(out.address(), untouched.data(), untouched.size());
  CUtensorMap map{}, output_map{};
  CUdeviceptr output_address = out.address(), input_address = in.address();
  uint32_t words[kWords];
  std::copy(row.words, row.words + kWords, words);
  void* params[] = {&output_address, &input_address, words, &map, &output_map};
  for (const auto& [description, encoded] :
       {std::pair(&row.map, &map), std::pair(&row.output_map, &output_map)}) {
    if (*description && failed(encode(driver, **description, in.address(), out.address(), encoded),
                               "cuTensorMapEncodeTiled", answer))
      return answer;
  }
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim = {row.cluster[0], row.cluster[1], row.cluster[2]};
  const CUlaunchConfig config = {row.grid,    row.grid_y,         row.grid_z, row.block, row.block_y,
                                 row.block_z, row.dynamic_shared, nullptr,    &cluster,  row.cluster[0] ? 1u : 0u};
  if (failed(driver.cuLaunchKernelEx(&config, function, params, nullptr), "cuLaunchKernelEx", answer) ||
      failed(driver.cuCtxSynchronize(), "cuCtxSynchronize", answer)) {
    answer.lost = true;
    return answer;
  }
  answer.output.resize(row.output_bytes());
  gpu_.download(answer.output.data(), out.address(), answer.output.size());
  return answer;
}

namespace {

class RowWorker : public Worker {
 public:
  RowWorker(const Source& source, const std::vector<const Row*>& rows)
      : gpu_(source.library, source.ordinal), runner_(gpu_), rows_(rows) {}
  std::string work(size_t job, bool* broken) override {
    const Answer answer = runner_.run(*rows_[job]);
    *broken = answer.lost;
    std::string text(sizeof(int), '\0');
    std::memcpy(text.data(), &answer.status, sizeof(int));
    text += answer.failure;
    text += '\0';
    return text.append(reinterpret_cast<const char*>(answer.output.data()), answer.output.size());
  }

 private:
  support::Gpu gpu_;
  Runner runner_;
  const std::vector<const Row*>& rows_;
};

Answer answer_of(const JobEnd& end) {
  Answer answer;
  if (end.ended_process) {
    answer.status = kEndedProcess;
    answer.failure = end.result;
    return answer;
  }
  std::memcpy(&answer.status, end.result.data(), sizeof(int));
  const size_t zero = end.result.find('\0', sizeof(int));
  answer.failure = end.result.substr(sizeof(int), zero - sizeof(int));
  const auto* bytes = reinterpret_cast<const std::byte*>(end.result.data());
  answer.output.assign(bytes + zero + 1, bytes + end.result.size());
  return answer;
}

class Ask : public Worker {
 public:
  explicit Ask(const Source& source) : library_(source.library), ordinal_(source.ordinal) {}
  std::string work(size_t, bool*) override {
    int version = 0;
    const auto devices = support::Gpu::list(library_, &version);
    if (size_t(ordinal_) >= devices.size())
      throw std::runtime_error(library_ + " offers " + std::to_string(devices.size()) + " devices");
    const auto& d = devices[size_t(ordinal_)];
    return d.name + "\n" + std::to_string(version) + " " + std::to_string(d.major) + " " +
           std::to_string(d.minor) + " " + std::to_string(devices.size());
  }

 private:
  std::string library_;
  int ordinal_;
};

}  // namespace

void choose_gpu(const Source& source) {
  if (!source.simulated.empty()) setenv("FA4SIM_GPU", source.simulated.c_str(), 1);
}

std::string gpu_of(const Row& row) {
  return row.needs == Needs::blackwell ? "sm_100" : "sm_90";
}

DeviceText ask_device(const Source& source) {
  DeviceText device;
  std::string failure;
  run_isolated(
      1, 60,
      [&] {
        choose_gpu(source);
        return std::make_unique<Ask>(source);
      },
      [&](size_t, const JobEnd& end) {
        int version = 0;
        const size_t line = end.result.find('\n');
        if (end.ended_process || line == std::string::npos) {
          failure = source.library + ": " + end.result;
          return;
        }
        device.name = end.result.substr(0, line);
        std::sscanf(end.result.c_str() + line + 1, "%d %d %d %d", &version, &device.major, &device.minor,
                    &device.count);
        device.driver = "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
      });
  if (!failure.empty()) throw std::runtime_error(failure);
  return device;
}

void run_rows(const Source& source, const std::vector<const Row*>& rows,
              const std::function<void(const Row& row, const Answer& answer)>& done) {
  constexpr int kSeconds = 60;
  run_isolated(
      rows.size(), kSeconds,
      [&] {
        choose_gpu(source);
        return std::make_unique<RowWorker>(source, rows);
      },
      [&](size_t job, const JobEnd& end) { done(*rows[job], answer_of(end)); });
}

void run_rows_simulated(const std::string& library, const std::vector<const Row*>& rows,
                        const std::function<void(const Row& row, const Answer& answer)>& done) {
  std::map<std::string, std::vector<const Row*>> of_gpu;
  for (const Row* row : rows) of_gpu[gpu_of(*row)].push_back(row);
  std::unordered_map<const Row*, Answer> answers;
  for (const auto& [gpu, list] : of_gpu)
    run_rows({library, 0, gpu}, list, [&](const Row& row, const Answer& answer) { answers[&row] = answer; });
  for (const Row* row : rows) done(*row, answers[row]);
}

std::string difference(const Row& row, const Answer& expected, const Answer& got, const char* expected_name,
                       const char* got_name) {
  if (expected.status != got.status) {
    const auto text = [](const Answer& a) {
      return a.status == 0 ? std::string("runs")
                           : "fails with " + std::to_string(a.status) + " (" + a.failure + ")";
    };
    return std::string(expected_name) + " " + text(expected) + ", " + got_name + " " + text(got);
  }
  if (expected.output == got.output) return {};
  const uint32_t bytes = row.output_element_bytes;
  uint32_t first = 0, count = 0;
  for (uint32_t e = 0; e < row.output_elements; ++e) {
    if (std::memcmp(expected.output.data() + size_t(e) * bytes, got.output.data() + size_t(e) * bytes,
                    bytes) == 0)
      continue;
    if (count++ == 0) first = e;
  }
  return std::to_string(count) + " of " + std::to_string(row.output_elements) +
         " elements differ, first element " + std::to_string(first) + " (" +
         describe_inputs(row, input_of(row), first) + "): " + expected_name + " " +
         bits_text(expected.output.data() + size_t(first) * bytes, bytes) + ", " + got_name + " " +
         bits_text(got.output.data() + size_t(first) * bytes, bytes);
}

}  // namespace fa4::conformance
