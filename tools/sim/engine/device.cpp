// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "group.h"
#include "program.h"

namespace fa4::sim {

struct Device::State {
  explicit State(const DeviceConfig& c) : config(c), memory(c.memory_bytes) {}
  DeviceConfig config;
  GlobalMemory memory;
  std::mutex launch_mutex;  // one launch at a time
  mutable std::mutex result_mutex;
  fa4sim_counters counters{};
  std::vector<uint64_t> cta_cycles;
  std::vector<fa4sim_event> trace;
  std::vector<uint64_t> executed;  // [op] of the last launch
  std::shared_ptr<const Program> program;
  const Code* code = nullptr;
  int64_t trace_cta = -1;
  std::function<void(uint64_t, uint64_t)> progress;
  std::function<Observer*(uint32_t)> observers;
  std::vector<uint64_t> selected;  // CTAs; empty: all
  uint64_t adversarial_seed = 0;
  bool independent_lanes = false;
  Model model = Model::isa;
  uint64_t launches = 0;
};

namespace {

void add(fa4sim_warp_counters& sum, const fa4sim_warp_counters& x) {
  static_assert(sizeof(fa4sim_warp_counters) % sizeof(uint64_t) == 0);
  uint64_t to[sizeof(fa4sim_warp_counters) / sizeof(uint64_t)], from[sizeof(fa4sim_warp_counters) / sizeof(uint64_t)];
  std::memcpy(to, &sum, sizeof sum);
  std::memcpy(from, &x, sizeof x);
  for (size_t i = 0; i < std::size(to); ++i) to[i] += from[i];
  std::memcpy(&sum, to, sizeof sum);
}

// What one host thread adds up, to be merged at the end: sums do not depend on who did what.
struct Tally {
  fa4sim_counters counters{};
  std::vector<uint64_t> executed;
};

// The clusters that hold the CTAs, in order, each once. CTAs beyond the grid are left out.
std::vector<uint64_t> clusters_of(const std::vector<uint64_t>& ctas, const std::array<uint32_t, 3>& grid, const std::array<uint32_t, 3>& cluster) {
  std::vector<uint64_t> found;
  for (uint64_t cta : ctas) {
    uint64_t index = 0, stride = 1;
    for (int d = 0; d < 3; ++d) {
      index += cta % grid[d] / cluster[d] * stride;
      stride *= grid[d] / cluster[d];
      cta /= grid[d];
    }
    if (cta == 0) found.push_back(index);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

void count(const Cta& cta, Tally& tally, uint64_t* cycles) {
  fa4sim_counters& c = tally.counters;
  ++c.ctas;
  c.mma_flop += cta.mma_flop;
  *cycles = 0;
  for (const Warp& w : cta.warps) {
    c.warp_instructions += w.counters.warp_instructions;
    c.thread_instructions += w.counters.thread_instructions;
    if (w.index < FA4SIM_MAX_WARPS) add(c.warp[w.index], w.counters);
    *cycles = std::max(*cycles, w.time);
  }
  for (size_t i = 0; i < cta.executed.size(); ++i) tally.executed[i] += cta.executed[i];
}

}  // namespace

Device::Device(const DeviceConfig& config) : state_(std::make_unique<State>(config)) {}
Device::~Device() = default;
GlobalMemory& Device::memory() { return state_->memory; }
const DeviceConfig& Device::config() const { return state_->config; }

void Device::configure(uint32_t sm_count, uint32_t host_threads, uint64_t instruction_budget) {
  const std::lock_guard lock(state_->launch_mutex);
  state_->config.sm_count = sm_count;
  state_->config.host_threads = host_threads;
  state_->config.instruction_budget = instruction_budget;
}

void Device::set_progress(std::function<void(uint64_t, uint64_t)> progress) {
  const std::lock_guard lock(state_->launch_mutex);
  state_->progress = std::move(progress);
}

std::vector<std::byte> Device::initial_bytes(const Program& program, size_t global_index) {
  const ptx::Variable& v = static_cast<const LoadedProgram&>(program).global_variable(global_index);
  std::vector<std::byte> bytes(v.size);
  if (!v.initializer.empty()) std::memcpy(bytes.data(), v.initializer.data(), std::min<size_t>(v.initializer.size(), v.size));
  return bytes;
}

void Device::launch(const Launch& launch) {
  const std::lock_guard lock(state_->launch_mutex);
  const auto begin = std::chrono::steady_clock::now();
  const auto& program = static_cast<const LoadedProgram&>(*launch.program);
  const Code* code = program.code(launch.entry);
  if (!code) throw Fault(Fault::Kind::bad_launch, "the module has no entry '" + launch.entry + "'");
  const uint64_t threads = uint64_t(launch.block[0]) * launch.block[1] * launch.block[2];
  const uint64_t ctas = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  if (threads == 0 || threads > code->max_threads || ctas == 0) {
    throw Fault(Fault::Kind::bad_launch, "a launch of " + std::to_string(ctas) + " CTAs of " + std::to_string(threads) +
                " threads; the entry takes 1 to " + std::to_string(code->max_threads) + " threads");
  }
  // Without clusters each CTA is one of its own.
  std::array<uint32_t, 3> cluster{1, 1, 1};
  uint32_t cluster_size = 1;
  for (int d = 0; d < 3; ++d) {
    if (launch.cluster[0]) cluster[d] = launch.cluster[d];
    else if (code->cluster[0]) cluster[d] = std::max(1u, code->cluster[d]);
    const bool as_required = !code->cluster[0] || cluster[d] == std::max(1u, code->cluster[d]);
    if (!as_required || cluster[d] == 0 || cluster[d] > kMaxClusterSize || launch.grid[d] % cluster[d] != 0) {
      throw Fault(Fault::Kind::bad_launch, "clusters of " + std::to_string(cluster[d]) + " CTAs along dimension " + std::to_string(d) +
                  " in a grid of " + std::to_string(launch.grid[d]) + (as_required ? ": it must be a multiple of them, and 16 are the most" : ": the entry requires " + std::to_string(code->cluster[d])));
    }
    cluster_size *= cluster[d];
  }
  if (cluster_size > kMaxClusterSize || (code->max_cluster_rank && cluster_size > code->max_cluster_rank)) {
    throw Fault(Fault::Kind::bad_launch, "clusters of " + std::to_string(cluster_size) + " CTAs; the most are " + std::to_string(code->max_cluster_rank ? code->max_cluster_rank : kMaxClusterSize));
  }
  const uint64_t clusters = ctas / cluster_size;
  if (launch.params.size() < code->param_bytes) throw Fault(Fault::Kind::bad_launch, "too few bytes of parameters");
  const DeviceConfig config = state_->config;
  uint32_t host_threads = config.host_threads ? config.host_threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<fa4sim_event> trace;
  LaunchState common;
  common.code = code;
  common.launch = &launch;
  common.memory = &state_->memory;
  common.budget = config.instruction_budget ? config.instruction_budget : 1ull << 32;
  common.trace_cta = state_->trace_cta;
  common.trace = &trace;
  common.names = &program.names().of(code->name);
  common.sm_count = config.sm_count;
  common.adversarial_seed = state_->adversarial_seed;
  common.independent_lanes = state_->independent_lanes;
  common.model = state_->model;
  common.serial = state_->launches++;
  common.dynamic_shared = code->dynamic_shared;
  std::copy(cluster.begin(), cluster.end(), common.cluster);
  common.explicit_cluster = launch.cluster[0] != 0 || code->cluster[0] != 0;
  if (common.dynamic_shared + launch.dynamic_shared_bytes > kSharedBase + kSharedLimit) {
    throw Fault(Fault::Kind::bad_launch, std::to_string(launch.dynamic_shared_bytes) + " bytes of dynamic shared memory do not fit beside the static ones; 232448 bytes is the limit of a CTA");
  }

  if (!state_->selected.empty() && code->communicates) {
    throw Fault(Fault::Kind::bad_launch, "the CTAs of " + launch.entry + " talk to each other: the launch cannot be executed in part");
  }
  const std::vector<uint64_t> some_clusters = clusters_of(state_->selected, launch.grid, cluster);
  const uint64_t executed_clusters = state_->selected.empty() ? clusters : some_clusters.size();

  std::vector<uint64_t> cycles(ctas);
  std::atomic<uint64_t> next{0}, finished{0};
  std::atomic<bool> stop{false};
  std::mutex failure_mutex;
  std::exception_ptr failure;
  uint64_t failed_cluster = ~0ull;
  if (code->communicates) host_threads = 1;
  host_threads = uint32_t(std::min<uint64_t>(host_threads, std::max<uint64_t>(1, executed_clusters)));
  std::vector<Tally> tallies(host_threads);
  const auto work = [&](uint32_t thread) {
    Tally& tally = tallies[thread];
    tally.executed.assign(code->ops.size(), 0);
    uint64_t current = 0;
    try {
      // Clusters that may talk to each other are resident together, as many as the SMs hold; others run alone.
      const uint32_t resident = code->communicates ? uint32_t(std::min<uint64_t>(clusters, std::max(1u, config.sm_count / cluster_size))) : 1;
      std::function<Observer*(uint32_t)> observers;
      if (state_->observers) observers = [&](uint32_t slot) { return state_->observers(thread + slot); };
      Group group(common, observers, resident);
      group.run(
          [&]() -> int64_t {
            if (stop) return -1;
            const uint64_t n = next++;
            if (n >= executed_clusters) return -1;
            current = some_clusters.empty() ? n : some_clusters[n];
            return int64_t(current);
          },
          [&](const Cta& cta) {
            count(cta, tally, &cycles[cta.id]);
            const uint64_t n = ++finished;
            if (thread == 0 && state_->progress) state_->progress(n, executed_clusters * cluster_size);
          });
    } catch (...) {
      const std::lock_guard guard(failure_mutex);
      stop = true;
      if (current < failed_cluster) {
        failed_cluster = current;
        failure = std::current_exception();
      }
    }
  };
  std::vector<std::thread> workers;
  for (uint32_t i = 1; i < host_threads; ++i) workers.emplace_back(work, i);
  work(0);
  for (std::thread& t : workers) t.join();

  const std::lock_guard result(state_->result_mutex);
  state_->counters = {};
  state_->executed.assign(code->ops.size(), 0);
  fa4sim_counters& c = state_->counters;
  for (const Tally& t : tallies) {
    c.ctas += t.counters.ctas;
    c.thread_instructions += t.counters.thread_instructions;
    c.warp_instructions += t.counters.warp_instructions;
    c.mma_flop += t.counters.mma_flop;
    for (int i = 0; i < FA4SIM_MAX_WARPS; ++i) add(c.warp[i], t.counters.warp[i]);
    for (size_t i = 0; i < t.executed.size(); ++i) state_->executed[i] += t.executed[i];
  }
  for (uint64_t n : cycles) {
    c.longest_cta_cycles = std::max(c.longest_cta_cycles, n);
    c.total_cta_cycles += n;
  }
  c.host_threads = host_threads;
  c.warps = uint32_t((threads + kLanes - 1) / kLanes);
  c.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  state_->cta_cycles = std::move(cycles);
  state_->trace = std::move(trace);
  state_->program = launch.program;
  state_->code = code;
  if (failure) std::rethrow_exception(failure);
}

fa4sim_counters Device::counters() const {
  const std::lock_guard lock(state_->result_mutex);
  return state_->counters;
}
std::vector<uint64_t> Device::cta_cycles() const {
  const std::lock_guard lock(state_->result_mutex);
  return state_->cta_cycles;
}
std::vector<fa4sim_event> Device::trace() const {
  const std::lock_guard lock(state_->result_mutex);
  return state_->trace;
}
void Device::trace_cta(int64_t cta) {
  const std::lock_guard lock(state_->launch_mutex);
  state_->trace_cta = cta;
}

void Device::set_observers(std::function<Observer*(uint32_t)> observers) {
  const std::lock_guard lock(state_->launch_mutex);
  state_->observers = std::move(observers);
}
void Device::select_ctas(std::vector<uint64_t> ctas) {
  const std::lock_guard lock(state_->launch_mutex);
  state_->selected = std::move(ctas);
}
void Device::set_model(Model model) {
  const std::lock_guard lock(state_->launch_mutex);
  state_->model = model;
}
void Device::set_adversarial(uint64_t seed, bool independent_lanes) {
  const std::lock_guard lock(state_->launch_mutex);
  state_->adversarial_seed = seed;
  state_->independent_lanes = independent_lanes;
}

uint64_t Device::instructions_in_source(const std::string& file_suffix) const {
  const std::lock_guard lock(state_->result_mutex);
  if (!state_->code) return 0;
  const ptx::Module& module = static_cast<const LoadedProgram&>(*state_->program).module();
  uint64_t sum = 0;
  for (size_t i = 0; i < state_->executed.size(); ++i) {
    const uint32_t file = state_->code->locations[i].source_file;
    if (file != 0 && file < module.files.size() && module.files[file].ends_with(file_suffix)) sum += state_->executed[i];
  }
  return sum;
}

}  // namespace fa4::sim
