// SPDX-License-Identifier: Apache-2.0
// The simulated GPU as the driver layer sees it: load PTX into a Program, launch an entry of it on a Device.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../core/global_memory.h"
#include "../driver/fa4sim.h"

namespace fa4::sim {

// The kernel did something that the hardware would fault on or that no valid program may do. what() is the report.
struct Fault : std::runtime_error {
  enum class Kind {
    illegal_instruction, illegal_address, misaligned_address, poison, deadlock, budget, bad_launch, trap, assertion,
    no_cta,  // shared memory of a CTA that is not in the cluster or has exited
  };
  Fault(Kind k, const std::string& report) : std::runtime_error(report), kind(k) {}
  Kind kind;
};

struct DeviceConfig {
  uint32_t sm_count = 148;
  uint32_t host_threads = 0;              // 0: all cores
  uint64_t instruction_budget = 0;        // warp instructions per CTA; 0: the default (see fa4sim.h)
  uint64_t memory_bytes = 64ull << 30;    // capacity of device memory (reserved, not committed)
};

// What a program may rely on. isa: the PTX ISA, and that the MMAs of a CTA execute in the order of their issue. silicon: in
// addition what today's hardware does: a use of a register of tcgen05.ld completes the whole load; tcgen05.fence orders
// nothing that is not ordered without it; a thread's ordinary stores are seen in their order; a try_wait tells all lanes of a
// warp that ask together the same; and what docs/ordering.md calls deviations, of which the observer is told.
enum class Model : uint8_t { isa, silicon };

class Observer;

// A kernel parameter, as cuFuncGetParamInfo reports it.
struct ParamInfo {
  uint32_t offset, size;                  // bytes
};

struct EntryInfo {
  std::string name;
  std::vector<ParamInfo> params;
  uint32_t param_bytes = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t local_bytes = 0;
  uint32_t max_threads = 1024;            // from .maxntid / .reqntid
  std::array<uint32_t, 3> required_block{0, 0, 0};  // .reqntid; 0: not given
  std::array<uint32_t, 3> cluster{0, 0, 0};  // .reqnctapercluster; 0: not given
  uint32_t max_cluster_rank = 0;          // .maxclusterrank; 0: not given
  bool explicit_cluster = false;          // its clusters' size must be given, there or with the launch
  uint32_t registers = 0;                 // 32-bit registers a thread that the program builder allocated
};

struct GlobalInfo {
  std::string name;
  uint64_t size;                          // bytes
};

// A parsed module. Shared by all launches and threads.
class Program {
 public:
  virtual ~Program() = default;
  virtual const std::vector<std::string>& entries() const = 0;  // their names
  // Decodes an entry when it is first asked for. Throws ptx::Error with every instruction of the entry that the simulator does
  // not know, now and whenever the entry is asked for again.
  virtual const EntryInfo& take(size_t entry) const = 0;
  virtual const std::vector<GlobalInfo>& globals() const = 0;  // .global and .const variables of module scope
};

// How registers of a program come to rows of a warp. `own`, for tests: none ever takes the row of another.
enum class Rows : uint8_t { shared, own };

// Parses a module. Throws ptx::Error naming line and text for what is no PTX; of instructions that are PTX and that the
// simulator does not know, Program::take tells.
std::shared_ptr<const Program> build_program(std::string ptx_text, Rows rows = Rows::shared);

struct Launch {
  std::shared_ptr<const Program> program;
  std::string entry;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::array<uint32_t, 3> cluster{0, 0, 0};   // CTAs of a cluster; 0: as the entry says, without clusters if it says nothing
  uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> params;          // param_bytes of the entry
  std::span<const uint64_t> global_addresses; // device address of each of program->globals(), in order
};

class Device {
 public:
  explicit Device(const DeviceConfig& config);
  ~Device();
  GlobalMemory& memory();
  const DeviceConfig& config() const;
  void configure(uint32_t sm_count, uint32_t host_threads, uint64_t instruction_budget);

  // Runs the grid to its end on the host's cores. Throws Fault. Launches of several host threads are serialised.
  // progress, if set, is called now and then with finished and total CTAs, from one host thread at a time.
  void launch(const Launch& launch);

  void set_progress(std::function<void(uint64_t done, uint64_t total)> progress);
  // Bytes of globals are initialised by the driver layer through this: initial content of globals()[i].
  static std::vector<std::byte> initial_bytes(const Program& program, size_t global_index);

  fa4sim_counters counters() const;                     // of the last launch
  std::vector<uint64_t> cta_cycles() const;             // of the last launch, one a CTA
  std::vector<fa4sim_event> trace() const;              // of the last launch, CTA given by trace_cta
  void trace_cta(int64_t cta);                          // -1: none
  // From the next launch on, what the CTAs of a cluster (a CTA alone, without clusters) do is reported to an observer of
  // their own for as long as they run: observers(i), with i the host thread that runs them, or, where CTAs that may talk to
  // each other run interleaved, the cluster's place among them. Asked once for each i of a launch, from any host thread.
  // Null: nobody watches.
  void set_observers(std::function<Observer*(uint32_t)> observers);
  // From the next launch on, only the clusters that hold one of these CTAs are executed; empty: all. A launch whose CTAs talk
  // to each other cannot be executed in part: a Fault.
  void select_ctas(std::vector<uint64_t> ctas);
  // From the next launch on: what the kernel may rely on.
  void set_model(Model model);
  // From the next launch on: every delay and choice that the model leaves open is drawn from the seed. 0: nominal timing.
  // independent_lanes: nor do lanes that diverged come together again before a bar.warp.sync. The ISA leaves that open,
  // compilers do not, so that only a kernel that joins its warps itself passes.
  void set_adversarial(uint64_t seed, bool independent_lanes = false);
  // Executed thread instructions by source file of the .cu (suffix match), in the last launch.
  uint64_t instructions_in_source(const std::string& file_suffix) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fa4::sim
