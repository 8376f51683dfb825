// SPDX-License-Identifier: Apache-2.0
// The functions of fa4sim.h: parameters of the simulated GPU, and what its last launch did.
#include <algorithm>
#include <cstring>

#include "../per_thread.h"
#include "environment.h"
#include "state.h"

using namespace fa4::sim;
using namespace fa4::sim::driver;

namespace {

// body(device) for questions about the last launch; waits for a running one.
template <typename Body>
int of_device(Body body) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    State& s = state();
    std::lock_guard guard(s.device_lock);
    body(*s.device);
    return CUDA_SUCCESS;
  });
}

// Remembers a setting, for cuInit if there is no device yet, and else hands it to the device.
template <typename Remember, typename Apply>
int change(Remember remember, Apply apply) {
  return api([&]() -> CUresult {
    State& s = state();
    {
      std::lock_guard guard(s.lock);
      remember(s);
      if (!s.initialised) return CUDA_SUCCESS;
    }
    std::lock_guard guard(s.device_lock);
    apply(*s.device);
    return CUDA_SUCCESS;
  });
}

template <typename T>
uint64_t hand_out(const std::vector<T>& items, T* to, uint64_t capacity) {
  if (to != nullptr) std::copy_n(items.begin(), std::min<uint64_t>(items.size(), capacity), to);
  return items.size();
}

template <size_t size>
void copy_text(char (&to)[size], const std::string& from) {
  const size_t n = std::min(from.size(), size - 1);
  std::copy_n(from.data(), n, to);
  to[n] = 0;
}

fa4sim_finding flat(const Finding& from) {
  fa4sim_finding to{};
  to.warning = from.warning;
  to.count = from.count;
  to.cta = from.cta;
  to.cycle = from.cycle;
  copy_text(to.kind, kind_name(from.kind));
  copy_text(to.memory, from.memory);
  copy_text(to.first, from.first);
  copy_text(to.second, from.second);
  copy_text(to.last_sync, from.last_sync);
  copy_text(to.chain, from.chain);
  copy_text(to.kernel, from.kernel);
  return to;
}

CUresult check_struct(const fa4sim_config* config) {
  if (config == nullptr) return fail(CUDA_ERROR_INVALID_VALUE, "the fa4sim_config pointer is null");
  if (config->struct_size != sizeof(fa4sim_config))
    return fail(CUDA_ERROR_INVALID_VALUE, "fa4sim_config.struct_size is " +
                                              std::to_string(config->struct_size) + ", not " +
                                              std::to_string(sizeof(fa4sim_config)));
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

int fa4sim_configure(const fa4sim_config* config) {
  return api([&]() -> CUresult {
    if (CUresult r = check_struct(config)) return r;
    const GpuKind* const gpu = config->gpu == 0 ? nullptr : find_gpu(config->gpu);
    if (config->gpu != 0 && gpu == nullptr)
      return fail(CUDA_ERROR_INVALID_VALUE, "fa4sim_config.gpu is " + std::to_string(config->gpu) + "; 90, 100 or 103 is expected, for " + kGpuNames);
    if (config->sm_count > 65535)
      return fail(CUDA_ERROR_INVALID_VALUE,
                  text("fa4sim_config.sm_count must be at most 65535, not ", config->sm_count));
    if (config->host_threads > 1024)
      return fail(CUDA_ERROR_INVALID_VALUE,
                  text("fa4sim_config.host_threads must be at most 1024, not ", config->host_threads));
    State& s = state();
    DeviceConfig applied;
    {
      std::lock_guard guard(s.lock);
      if (s.initialised && gpu != nullptr && gpu != s.gpu)
        return fail(CUDA_ERROR_INVALID_VALUE, "fa4sim_config.gpu is " + std::to_string(gpu->number) + ", but the process has had a simulated GPU " +
                                                  s.gpu->target() + " since cuInit");
      if (!s.initialised) s.gpu = gpu != nullptr ? gpu : find_gpu(kDefaultGpu);
      s.config.sm_count = config->sm_count == 0 ? s.gpu->sm_count : config->sm_count;
      s.config.host_threads = config->host_threads;
      s.config.instruction_budget = config->instruction_budget;
      s.configured = true;
      applied = s.config;
      if (!s.initialised) return CUDA_SUCCESS;
    }
    std::lock_guard guard(s.device_lock);
    s.device->configure(applied.sm_count, applied.host_threads, applied.instruction_budget);
    return CUDA_SUCCESS;
  });
}

int fa4sim_get_config(fa4sim_config* config) {
  return api([&]() -> CUresult {
    if (CUresult r = check_struct(config)) return r;
    State& s = state();
    std::lock_guard guard(s.lock);
    config->sm_count = s.config.sm_count;
    config->host_threads = s.config.host_threads;
    config->gpu = s.gpu->number;
    config->instruction_budget = s.config.instruction_budget;
    return CUDA_SUCCESS;
  });
}

int fa4sim_get_counters(fa4sim_counters* counters) {
  return api([&]() -> CUresult {
    if (counters == nullptr) return fail(CUDA_ERROR_INVALID_VALUE, "the fa4sim_counters pointer is null");
    return static_cast<CUresult>(of_device([&](Device& device) { *counters = device.counters(); }));
  });
}

uint64_t fa4sim_get_cta_cycles(uint64_t* cycles, uint64_t capacity) {
  uint64_t count = 0;
  of_device([&](Device& device) { count = hand_out(device.cta_cycles(), cycles, capacity); });
  return count;
}

int fa4sim_trace_cta(int64_t cta) {
  return change([&](State& s) { s.traced_cta = cta; }, [&](Device& device) { device.trace_cta(cta); });
}

uint64_t fa4sim_get_trace(fa4sim_event* events, uint64_t capacity) {
  uint64_t count = 0;
  of_device([&](Device& device) { count = hand_out(device.trace(), events, capacity); });
  return count;
}

uint64_t fa4sim_get_source_instructions(const char* file_suffix) {
  uint64_t count = 0;
  if (file_suffix == nullptr) return 0;
  of_device([&](Device& device) { count = device.instructions_in_source(file_suffix); });
  return count;
}

void fa4sim_set_progress(void (*progress)(void* user, uint64_t done, uint64_t total), void* user) {
  std::function<void(uint64_t, uint64_t)> call;
  if (progress != nullptr) call = [=](uint64_t done, uint64_t total) { progress(user, done, total); };
  change([&](State& s) { s.progress = call; }, [&](Device& device) { device.set_progress(call); });
}

int fa4sim_check(int on) {
  return api([&]() -> CUresult {
    return static_cast<CUresult>(of_device([&](Device&) {
      State& s = state();
      gather_findings(s);
      s.axioms = 0;
      set_checking(s, on != 0);
    }));
  });
}

uint64_t fa4sim_count_findings(void) {
  uint64_t count = 0;
  of_device([&](Device&) {
    gather_findings(state());
    count = state().findings.size();
  });
  return count;
}

uint64_t fa4sim_take_findings(fa4sim_finding* findings, uint64_t capacity) {
  uint64_t count = 0;
  if (findings == nullptr) return 0;
  of_device([&](Device&) {
    State& s = state();
    gather_findings(s);
    count = std::min<uint64_t>(capacity, s.findings.size());
    for (uint64_t i = 0; i < count; ++i) findings[i] = flat(s.findings[i]);
    s.findings.erase(s.findings.begin(), s.findings.begin() + static_cast<std::ptrdiff_t>(count));
  });
  return count;
}

uint32_t fa4sim_axioms(void) {
  uint32_t axioms = 0;
  of_device([&](Device&) {
    gather_findings(state());
    axioms = state().axioms;
  });
  return axioms;
}

int fa4sim_set_model(uint32_t model) {
  return api([&]() -> CUresult {
    if (model > FA4SIM_MODEL_SILICON)
      return fail(CUDA_ERROR_INVALID_VALUE,
                  "model " + std::to_string(model) +
                      " is neither FA4SIM_MODEL_ISA (0) nor FA4SIM_MODEL_SILICON (1)");
    return static_cast<CUresult>(of_device([&](Device& device) { device.set_model(Model(model)); }));
  });
}

int fa4sim_set_adversarial(uint64_t seed, uint32_t options) {
  return api([&]() -> CUresult {
    if (options & ~FA4SIM_INDEPENDENT_LANES)
      return fail(CUDA_ERROR_INVALID_VALUE,
                  "options " + std::to_string(options) +
                      " of adversarial timing; FA4SIM_INDEPENDENT_LANES (1) is known");
    return static_cast<CUresult>(
        of_device([&](Device& device) { device.set_adversarial(seed, options & FA4SIM_INDEPENDENT_LANES); }));
  });
}

const char* fa4sim_last_error(void) {
  static auto* const texts = new PerThread<std::string>;
  return (texts->get() = last_error()).c_str();
}

}  // extern "C"
