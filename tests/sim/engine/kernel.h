// SPDX-License-Identifier: Apache-2.0
// A kernel on a simulated GPU of its own, for tests: PTX text in, buffers in device memory, launch, read
// back. Nothing of the driver lies between the test and the engine.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "tools/sim/engine/device.h"

namespace fa4::sim::test {

struct Shape {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{32, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  std::array<uint32_t, 3> cluster{0, 0, 0};
};

class Kernel {
 public:
  explicit Kernel(const std::string& ptx, uint32_t host_threads = 1, uint32_t sm_count = 4,
                  uint64_t budget = 1 << 22, Rows rows = Rows::shared)
      : program_(build_program(ptx, rows)),
        device_(std::make_unique<Device>(config(host_threads, sm_count, budget))) {
    for (size_t i = 0; i < program_->globals().size(); ++i) {
      const std::vector<std::byte> bytes = Device::initial_bytes(*program_, i);
      globals_.push_back(device_->memory().allocate(bytes.size()));
      std::memcpy(device_->memory().at(globals_.back(), bytes.size()), bytes.data(), bytes.size());
    }
  }

  Device& device() { return *device_; }
  const Program& program() const { return *program_; }

  // A buffer of `count` elements, all bytes zero.
  template <class T>
  uint64_t buffer(size_t count) {
    const uint64_t address = device_->memory().allocate(count * sizeof(T));
    if (address == 0) throw std::runtime_error("no device memory");
    std::memset(device_->memory().at(address, count * sizeof(T)), 0, count * sizeof(T));
    return address;
  }
  template <class T>
  uint64_t upload(const std::vector<T>& values) {
    const uint64_t address = buffer<T>(values.size());
    std::memcpy(device_->memory().at(address, values.size() * sizeof(T)), values.data(),
                values.size() * sizeof(T));
    return address;
  }
  template <class T>
  std::vector<T> read(uint64_t address, size_t count) {
    std::vector<T> values(count);
    const std::byte* from = device_->memory().at(address, count * sizeof(T));
    if (!from) throw std::runtime_error("the test reads outside an allocation");
    std::memcpy(values.data(), from, count * sizeof(T));
    return values;
  }
  // Device address of a module variable.
  uint64_t global(const std::string& name) const {
    for (size_t i = 0; i < globals_.size(); ++i) {
      if (program_->globals()[i].name == name) return globals_[i];
    }
    throw std::runtime_error("no module variable " + name);
  }

  // Arguments are copied byte by byte to the entry's parameters; sizes must agree.
  template <class... Args>
  void run(const std::string& entry, const Shape& shape, const Args&... args) {
    const std::vector<std::string>& entries = program_->entries();
    const auto named = std::find(entries.begin(), entries.end(), entry);
    if (named == entries.end()) throw std::runtime_error("no entry " + entry);
    const EntryInfo* info = &program_->take(size_t(named - entries.begin()));
    if (info->params.size() != sizeof...(Args))
      throw std::runtime_error(entry + ": wrong number of arguments");
    std::vector<std::byte> params(info->param_bytes);
    size_t index = 0;
    const auto put = [&](const auto& value) {
      static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(value)>>);
      const ParamInfo at = info->params[index++];
      if (at.size != sizeof value) throw std::runtime_error(entry + ": argument of another size");
      std::memcpy(params.data() + at.offset, &value, sizeof value);
    };
    (put(args), ...);
    Launch launch;
    launch.program = program_;
    launch.entry = entry;
    launch.grid = shape.grid;
    launch.block = shape.block;
    launch.cluster = shape.cluster;
    launch.dynamic_shared_bytes = shape.dynamic_shared_bytes;
    launch.params = params;
    launch.global_addresses = globals_;
    device_->launch(launch);
  }

 private:
  static DeviceConfig config(uint32_t host_threads, uint32_t sm_count, uint64_t budget) {
    DeviceConfig c;
    c.sm_count = sm_count;
    c.host_threads = host_threads;
    c.instruction_budget = budget;
    c.memory_bytes = 1ull << 30;
    return c;
  }

  std::shared_ptr<const Program> program_;
  std::unique_ptr<Device> device_;
  std::vector<uint64_t> globals_;
};

// A module around the text of its functions and variables.
inline std::string module_of(const std::string& text) {
  return ".version 9.0\n.target sm_100a\n.address_size 64\n" + text;
}

// A module with one entry `kernel` that has `params` (".param .u64 out") and dynamic shared memory `smem`,
// the first byte of which has the shared address kSmem.
constexpr uint32_t kSmem = 0x400;
inline std::string entry_of(const std::string& params, const std::string& body, uint32_t max_threads = 1024) {
  return module_of(".extern .shared .align 1024 .b8 smem[];\n.visible .entry kernel(" + params +
                   ")\n.maxntid " + std::to_string(max_threads) + ", 1, 1\n{\n" + body + "\n}\n");
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A small reproducible source of random bits (SplitMix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
  }

 private:
  uint64_t state_;
};

}  // namespace fa4::sim::test
