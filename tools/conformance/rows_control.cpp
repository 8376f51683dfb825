// SPDX-License-Identifier: Apache-2.0
// Control flow, calls, memory as compiled code uses it, and barriers: kernels of kernels/control.cu and
// barrier.cu.
#include "row.h"

namespace fa4::conformance {
namespace {

struct Entry {
  const char* entry;
  const char* name;
  const char* belief;
};

void add_all(Table& t, std::string_view file, std::initializer_list<Entry> entries) {
  for (const Entry& e : entries) t.kernel(file, e.entry, e.name, e.belief);
}

}  // namespace

void add_control_rows(Table& t) {
  t.family({"divergence", "9.7.12", ""});
  add_all(t, "control",
          {{"nested_branches", "nested branches and a loop", "lanes that part meet again before the shuffle"},
           {"uneven_loops", "loops of uneven length", "every lane runs its own number of turns"},
           {"early_return", "lanes that return early", "the other lanes go on"},
           {"switch_table", "a switch of many cases", "each lane takes its own case"},
           {"lanes_in_turn", "lanes that wait for each other",
            "a lane that spins does not block the lane that it waits for"},
           {"spin_lock", "a lock among the lanes of a warp", "every lane gets the lock in the end"},
           {"block_reduction", "a reduction over a block",
            "shuffles and a barrier add up in the order of the program"}});
  t.family({"calls", "9.7.12.5", ""});
  add_all(t, "control",
          {{"call_scalar", "call with scalars", "parameters and results are carried as bits"},
           {"call_divergent", "call by some lanes", "the lanes that call return to where they called from"},
           {"call_vector", "call with a vector result", "a structure is returned by value"},
           {"call_struct", "call with structures", "structures are passed by value"}});
  t.kernel("recursion", "call_recursive", "call of itself",
           "each activation has its own registers and local memory");
  t.family({"local, constant and module memory", "5.1", ""});
  add_all(t, "control",
          {{"local_array", "local array, dynamic index", "local memory belongs to a thread"},
           {"local_bytes", "local bytes, dynamic index", "local memory belongs to a thread"},
           {"constant_memory", "constant memory, dynamic index",
            "initial values as written; parameters can be indexed"},
           {"module_variables", "module variables with initial values", "initial values as written"}});
  t.kernel("control", "dynamic_shared", "dynamic and static shared memory",
           "dynamic shared memory lies behind the static one")
      .dynamic_shared = 512;
  t.family({"atomics", "9.7.13", ""});
  t.kernel("control", "contended_atomics", "atomics of many threads on one address", "no update is lost");
  Row& last = t.kernel("control", "last_block", "the last block adds up",
                       "a fence orders the stores before the counter");
  last.grid = 8;
  t.family({"launch", "5", ""});
  t.kernel("control", "grid_dependency", "griddepcontrol", "a kernel launched alone depends on nothing");
  t.kernel("control", "three_dimensions", "thread indices",
           "x runs fastest, then y, then z; lanes follow the linear index");
  Row& shape = t.last();
  shape.grid = 2, shape.grid_y = 3, shape.grid_z = 1, shape.block = 4, shape.block_y = 8, shape.block_z = 4;
}

void add_barrier_rows(Table& t) {
  t.family({"barriers of threads", "9.7.13", ""});
  add_all(t, "barrier",
          {{"named_barriers", "bar.sync with partial counts", "a named barrier counts its own threads"},
           {"arrive_and_sync", "bar.arrive", "an arrival does not wait"},
           {"nonaligned_barrier", "barrier.cta.sync in divergent code",
            "lanes of one warp may come from different places"}});
  Row& reductions = t.kernel("barrier", "barrier_reductions", "bar.red",
                             "popc counts threads, .and and .or combine predicates");
  reductions.words[0] = 1;
  Row& by_register = t.kernel("barrier", "barrier_by_register", "bar.sync by registers",
                              "the barrier's number and count may be registers");
  by_register.words[1] = 3;
  by_register.words[2] = 64;
  t.family({"mbarrier", "9.7.13.15", ""});
  add_all(
      t, "barrier",
      {{"mbarrier_phases", "mbarrier init, arrive, try_wait.parity",
        "a fresh barrier's previous phase is complete; phases alternate in parity"},
       {"mbarrier_state", "mbarrier arrive with state and count, pending_count, inval",
        "the state names the phase of the arrival; pending_count is that before it"},
       {"mbarrier_transactions", "mbarrier expect_tx, complete_tx",
        "a phase completes when arrivals and bytes are both at zero; bytes may come before they are "
        "expected"},
       {"mbarrier_drop", "mbarrier arrive_drop",
        "the arrival counts now and is not expected in later phases"},
       {"mbarrier_no_complete", "mbarrier arrive.noComplete",
        "as an arrival that does not complete the phase"},
       {"mbarrier_ring", "mbarrier ring of a producer and a consumer", "parities of a ring follow the lap"},
       {"mbarrier_wait_forms", "mbarrier waits with orders, scopes, a time limit and a generic address",
        "orders and limits change no result"}});
  t.family({"registers of warpgroups", "9.7.17", ""});
  t.kernel("registers", "register_budget", "setmaxnreg",
           "registers given away can be taken by another warpgroup")
      .block = 256;
}

}  // namespace fa4::conformance
