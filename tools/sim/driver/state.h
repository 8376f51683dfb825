// SPDX-License-Identifier: Apache-2.0
// What the driver remembers: one device, contexts, and the objects that live in them behind never reused
// handles.
//
// Two locks. `State::lock` guards the tables and is held for short. `State::device_lock` guards device memory
// and runs one launch at a time, so that only calls that touch them wait for a kernel. Neither is taken while
// the other is held.
#pragma once

#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "../check/collector.h"
#include "../engine/device.h"
#include "../record/recorder.h"
#include "fa4sim.h"
#include "gpu.h"

#define FA4SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace fa4::sim::driver {

// What the simulated GPU says about itself, whichever it is (gpu.h).
constexpr uint32_t warp_size = 32;
constexpr uint32_t max_threads_per_block = 1024;
constexpr uint32_t max_block_dim[3] = {1024, 1024, 64};
constexpr uint32_t max_grid_dim[3] = {0x7fff'ffff, 65535, 65535};
constexpr uint32_t max_threads_per_sm = 2048;
constexpr uint32_t max_blocks_per_sm = 32;
constexpr uint32_t shared_default = 48 * 1024;        // bytes a block may use without asking
constexpr uint32_t shared_opt_in = 232448;            // bytes a block may use if it asked
constexpr uint32_t shared_per_sm = 228 * 1024;        // bytes
constexpr uint32_t shared_reserved_per_block = 1024;  // bytes
constexpr uint32_t registers_per_sm = 65536;

// Objects of one kind behind opaque handles. A handle is a number that is never given out twice, so that a
// stale or foreign handle is recognised without touching memory.
class HandleNumbers {
 public:
  static uintptr_t next();
};

template <typename Handle, typename Object>
class Table {
 public:
  Handle add(std::shared_ptr<Object> object) {
    const uintptr_t number = HandleNumbers::next();
    objects_.emplace(number, std::move(object));
    return reinterpret_cast<Handle>(number);
  }
  std::shared_ptr<Object> find(Handle handle) const {
    auto it = objects_.find(reinterpret_cast<uintptr_t>(handle));
    return it == objects_.end() ? nullptr : it->second;
  }
  bool remove(Handle handle) { return objects_.erase(reinterpret_cast<uintptr_t>(handle)) != 0; }
  template <typename Predicate>
  void remove_if(Predicate predicate) {
    std::erase_if(objects_, [&](const auto& item) { return predicate(*item.second); });
  }

 private:
  std::unordered_map<uintptr_t, std::shared_ptr<Object>> objects_;
};

struct Context {
  bool primary = false;
  bool alive = true;  // the primary context dies and comes back
  unsigned flags = 0;
  uint64_t id = 0;
  CUresult fault = CUDA_SUCCESS;  // what every later call answers after a kernel has faulted
};

struct Stream {
  CUcontext context;
  unsigned flags;
  int priority;
  uint64_t id;
};

struct Event {
  CUcontext context;
  unsigned flags;
  std::optional<std::chrono::steady_clock::time_point> recorded;
};

// A loaded program with its variables in device memory.
struct Code {
  std::shared_ptr<const Program> program;
  std::vector<uint64_t> global_addresses;  // of program->globals(), in order
  int ptx_version = 0;                     // 10 * major + minor
};

struct Module {
  CUcontext context = nullptr;  // none for the module of a library, which any context may use
  CUlibrary library = nullptr;
  std::shared_ptr<Code> code;
  std::map<std::string, CUfunction> functions;
};

struct Library {
  std::shared_ptr<Code> code;  // none when the image has no code for this GPU
  std::string refusal;         // then: why
  CUmodule module = nullptr;
};

// A kernel of a module or library; CUkernel and CUfunction are the same thing.
struct Function {
  CUcontext context = nullptr;  // as of the module
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  std::shared_ptr<Code> code;
  size_t number = 0;                 // among the entries of code->program
  // Set, with what follows from it below, when the function is taken: looked up by name, or first used. Owned by code->program.
  const EntryInfo* entry = nullptr;
  uint32_t max_dynamic_shared = 0;   // bytes
  int carveout = -1;                 // preferred percentage of shared memory, a hint
  std::array<int, 3> cluster{};      // blocks of a cluster: as the entry requires or the host has set; 0: free
  bool large_clusters = false;       // of more than 8 blocks
  int cluster_scheduling = 0;        // CUclusterSchedulingPolicy, a hint
};

struct State {
  std::mutex lock, device_lock;
  bool initialised = false;
  DeviceConfig config;
  const GpuKind* gpu = find_gpu(kDefaultGpu);  // as of cuInit, for good
  bool configured = false;  // by fa4sim_configure, which then goes before the environment
  std::unique_ptr<Device> device;
  // Guarded by device_lock.
  std::unique_ptr<Collector> collector;  // null: launches are not checked
  std::unique_ptr<Recorder> recorder;    // null: launches are not recorded
  std::string record_path;               // FA4SIM_RECORD: where the records of recorded_cta go; "": nowhere
  uint64_t recorded_cta = 0;
  std::vector<Finding> findings;         // gathered, oldest first
  uint32_t axioms = 0;  // FA4SIM_AXIOM_*, that what was watched rests on
  std::function<void(uint64_t done, uint64_t total)> progress;  // asked for, perhaps before there is a device
  int64_t traced_cta = -1;

  Table<CUcontext, Context> contexts;
  CUcontext primary = nullptr;
  uint32_t primary_users = 0;
  Table<CUstream, Stream> streams;
  Table<CUevent, Event> events;
  Table<CUmodule, Module> modules;
  Table<CUlibrary, Library> libraries;
  Table<CUfunction, Function> functions;
  std::map<uint64_t, CUcontext> allocations;     // device address -> owner
  std::map<uintptr_t, size_t> host_allocations;  // host address -> bytes
  uint64_t next_id = 1;                          // of contexts and streams
};

State& state();
std::vector<CUcontext>& context_stack();  // of the calling thread; the back is current

// Keeps the sentence for fa4sim_last_error() and returns the code.
CUresult fail(CUresult code, std::string sentence);
// The same, and the sentence goes to stderr whether or not failures are logged: for what a program's user would see
// nothing of otherwise.
CUresult fail_aloud(CUresult code, std::string sentence);
std::string last_error();
void log_failures(bool on);  // every sentence also goes to stderr

// Frees what belongs to the context. Called without either lock.
void destroy_contents(CUcontext context);
void free_globals(const Code& code);

// The current context, checked: 3 before cuInit, 201 without a context, 709 after its end, or the fault of a
// kernel that ran in it. Takes the lock.
CUresult check_current(CUcontext* current);
CUresult check_initialised();
// The stream, if not one of the implicit ones, must be live and belong to the context. Takes the lock.
CUresult check_stream(CUstream stream, CUcontext current);
bool is_implicit(CUstream stream);
// Blocks of a function that an SM holds at a time.
uint32_t blocks_per_sm(const Function& function, uint64_t threads, uint64_t dynamic_shared);
// What an attribute of a launch says; of clusters it is their size, all 0 when the launch names none.
CUresult take_attribute(const CUlaunchAttribute& attribute, std::array<uint32_t, 3>* cluster);
// The clusters of a launch, from what it asks for, the function requires and the grid admits; all 0: none. A large one is
// refused unless `any_size`.
CUresult resolve_cluster(const Function& function, const std::array<uint32_t, 3>& grid, bool any_size, std::array<uint32_t, 3>* cluster);
std::string triple(const std::array<uint32_t, 3>& v);  // "(1, 2, 3)"
// The live function, taken: 400 for another handle, 218 for a kernel with instructions that are not simulated.
CUresult find_function(CUfunction handle, std::shared_ptr<Function>* function);
// Makes a handle of each entry of code. Call with the lock held.
void add_functions(const std::shared_ptr<Code>& code, CUcontext context, CUmodule module, CUlibrary library,
                   std::map<std::string, CUfunction>* functions);

// Runs the body of an exported function; no exception passes the C boundary.
template <typename Body>
CUresult api(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    return fail(CUDA_ERROR_UNKNOWN, error.what());
  }
}

// The same for functions that need a current context: body(current).
template <typename Body>
CUresult in_context(Body body) noexcept {
  return api([&]() -> CUresult {
    CUcontext current;
    if (CUresult r = check_current(&current); r != CUDA_SUCCESS) return r;
    return body(current);
  });
}

inline std::string text(const char* what, uint64_t value) {
  return std::string(what) + std::to_string(value);
}
std::string hex(uint64_t value);

}  // namespace fa4::sim::driver
