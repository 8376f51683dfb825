// SPDX-License-Identifier: Apache-2.0
#include "target.h"

#include <memory>
#include <vector>

#include "tools/sim/check/collector.h"
#include "tools/sim/engine/device.h"
#include "tools/sim/ptx/module.h"

namespace fa4::sim::test {

std::string digest(const uint8_t* bytes, size_t size) {
  static Device device([] {
    DeviceConfig config;
    config.sm_count = 2;
    config.host_threads = 1;
    config.instruction_budget = 2000;
    config.memory_bytes = 1 << 24;
    return config;
  }());
  static const uint64_t buffer = device.memory().allocate(4096);
  std::shared_ptr<const Program> program;
  try {
    program = build_program(std::string(reinterpret_cast<const char*>(bytes), size));
  } catch (const ptx::Error& error) {
    return std::string("refused: ") + error.what();
  }
  std::vector<uint64_t> globals(program->globals().size(), buffer);
  std::string end = "ran";
  for (size_t i = 0; i < program->entries().size(); ++i) {
    const EntryInfo* taken = nullptr;
    try {
      taken = &program->take(i);
    } catch (const ptx::Error& error) {
      end = std::string("refused: ") + error.what();
      continue;
    }
    const EntryInfo& entry = *taken;
    std::vector<std::byte> params(entry.param_bytes);
    for (const ParamInfo& p : entry.params) {
      for (uint32_t i = 0; i < p.size; ++i) params[p.offset + i] = std::byte(buffer >> (8 * (i % 8)));
    }
    Launch launch;
    launch.program = program;
    launch.entry = entry.name;
    launch.block = {entry.max_threads < 32 ? entry.max_threads : 32, 1, 1};
    launch.dynamic_shared_bytes = 4096;
    launch.params = params;
    launch.global_addresses = globals;
    device.set_adversarial(size % 2 ? size : 0, true);  // every second length with adversarial timing
    Collector collector;
    device.set_observers([&](uint32_t slot) { return collector.observer(slot); });
    try {
      device.launch(launch);
    } catch (const Fault& fault) {
      end = std::string("fault: ") + fault.what();
    }
    for (const Finding& finding : collector.take()) (void)describe(finding);
    device.set_observers(nullptr);
  }
  return end;
}

}  // namespace fa4::sim::test
