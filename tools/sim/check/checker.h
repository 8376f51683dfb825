// SPDX-License-Identifier: Apache-2.0
// The happens-before checker of one cluster, which is one CTA unless a launch has clusters. It follows the execution that it watches with vector clocks and reports every
// pair of accesses that nothing orders: threads (lane by lane), TMA copies and MMAs are agents of their own. Its
// verdicts rest on the PTX documents and one axiom: the MMAs of a CTA execute in the order of their issue.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../core/machine.h"
#include "../core/observer.h"
#include "clock.h"
#include "finding.h"
#include "grid.h"
#include "provenance.h"

namespace fa4::sim::check {

// Bytes of global memory that a CTA wrote.
struct GlobalWrite {
  uint64_t launch;
  uint64_t begin, end;
  uint64_t cta;
  uint32_t op;
  uint16_t warp;
  const std::string* writer;   // "store warp 14: write at ...", the checker's
  const GlobalMemory* memory;
};

class Checker final : public Observer {
 public:
  explicit Checker(Grid& grid) : grid_(grid) {}
  void begin(const Cta& cta) override;
  void ended(const Cta& cta) override;

  // Of all CTAs that this checker has watched.
  const std::vector<Finding>& findings() const { return findings_; }
  const std::vector<GlobalWrite>& global_writes() const { return global_writes_; }
  // FA4SIM_AXIOM_*, that a verdict rests on: the order of MMAs with different accumulators or from different threads; and
  // what Model::silicon lets through.
  uint32_t axioms() const { return axioms_; }

  // What orders accesses that conflict is kept from now on: for these pairs of lines of the PTX, or for all if there are none.
  void explain(const std::set<std::pair<uint32_t, uint32_t>>& pairs);
  const std::vector<Ordering>& orderings() const { return orderings_; }

  void shared_access(const Warp& w, const Op* op, int lane, const Cta& owner, uint32_t address, uint32_t bytes, bool write) override;
  void global_access(const Warp& w, const Op* op, int lane, uint64_t address, uint32_t bytes, bool write) override;
  void tmem_access(const Warp& w, const Op* op, uint32_t column, uint32_t columns, bool write) override;
  void tmem_waited(const Warp& w, bool stores) override;
  void tmem_delivered(const Warp& w, uint32_t column, uint32_t columns) override;
  void tmem_allocated(const Warp& w, const Op* op, uint32_t column, uint32_t columns, uint32_t shared_address) override;
  void tmem_released(const Warp& w, const Op* op, uint32_t column, uint32_t columns) override;
  void warp_barrier(const Warp& w, const Op* op, Mask members) override;
  void cta_barrier_arrived(const Warp& w, const Op* op, Mask lanes, uint32_t id) override;
  void cta_barrier_passed(const Warp& w, Mask lanes, uint32_t id) override;
  void cta_barrier_opened(const Cta& cta, uint32_t id) override;
  void cluster_barrier_arrived(const Warp& w, const Op* op, Mask lanes) override;
  void cluster_barrier_completed(const Cluster& cluster) override;
  void cluster_barrier_passed(const Warp& w, const Op* op, Mask lanes) override;
  void fence(const Warp& w, const Op* op, Mask lanes, FenceKind kind) override;
  void branched(const Warp&, const Op*, Mask, Mask, const Op*) override {}
  void register_counts_differ(const Warp& w, const Op* op, uint32_t registers) override;
  void warpgroup_differs(const Warp& w, const Op* op, const Op* other) override;
  void mbarrier_initialised(const Warp& w, const Op* op, int lane, uint32_t address) override;
  void mbarrier_invalidated(const Warp& w, const Op* op, int lane, uint32_t address) override;
  void mbarrier_arriving(const Warp& w, const Op* op, Mask lanes, const Cta& owner, uint32_t address) override;
  void mbarrier_completed(const Cta& owner, uint32_t address, uint32_t phase) override;
  void mbarrier_waited(const Warp& w, const Op* op, Mask lanes, uint32_t address) override;
  uint32_t copy_in_issued(const Warp& w, const Event& event) override;
  void copy_in_landed(const Event& event) override;
  void copy_out_issued(const Warp& w, const Event& event) override;
  void copy_group_waited(const Warp& w, Mask lanes, uint64_t first_pending_group, bool read_only) override;
  void thread_copy_issued(const Warp& w, const Op* op, int lane, uint32_t address, uint32_t bytes) override;
  void thread_copy_waited(const Warp& w, int lane, uint32_t address, uint32_t bytes) override;
  void thread_copy_arrival_issued(const Warp& w, const Event& event) override;
  void thread_copy_arrived(const Event& event, uint32_t address, uint32_t bytes) override;
  void thread_copy_arriving(const Event& event) override;
  void mma_issued(const Warp& w, const Op* op, int lane, const MmaAccess& access) override;
  void wgmma_issued(const Warp& w, const Op* op, const WgmmaAccess& access) override;
  void wgmma_waited(const Warp& w, uint64_t number) override;
  uint32_t commit_issued(const Warp& w, const Event& event) override;
  void commit_landed(const Event& event) override;

 private:
  // Who accessed: a lane; a warp as a whole (tcgen05.ld and st, or alloc and dealloc, which are synchronous); the tensor
  // core for tcgen05.mma, or for a warp's wgmma.mma_async; a lane's cp.async; a bulk copy into or out of shared memory.
  enum class Agent : uint8_t { nobody, lane, warp, owner, mma, wgmma, thread_copy, copy_in, copy_out };
  // Of tcgen05 operations: nothing but the order of threads counts; order by tcgen05 fences counts as well; that order is
  // asked for, and order of threads without it is a warning.
  enum class Tensor : uint8_t { no, either, fenced };
  struct Access {
    Agent agent = Agent::nobody;
    uint8_t order = 0;   // lane: MemoryOrder
    uint16_t index = 0;  // lane of the cluster (mma: that issued it), warp, barrier's, store or wgmma stream's component; thread_copy: lane
                         // until it is over, then the barrier's component
    Time time = 0;
    uint32_t op = 0;
    uint32_t lanes = 0;  // lane: kRemote in the memory of another CTA; warp: its lanes; mma: the accumulator; copies, wgmma: the warp that issued them
    bool operator==(const Access&) const = default;
  };
  static constexpr uint32_t kRemote = 1;
  // wgmma: that of all four warps of a warpgroup, the first of which is named beside it.
  static constexpr uint32_t kWarpgroup = 1u << 31;
  static bool is_remote(const Access& a) { return a.agent == Agent::lane && a.lanes == kRemote; }
  using Readers = std::unordered_map<uint64_t, std::vector<Access>>;
  struct Cell {  // of shared or tensor memory
    Access write, read;
    bool operator==(const Cell&) const = default;
  };
  // The cell that an access came to last, as it was: a cell that holds the same gets the same answer.
  struct Neighbour {
    Cell cell;
    bool in_order = false;
  };
  // Lanes of a warp that know the same of everybody else. A lane's own accesses it knows by program order.
  struct Group {
    Mask lanes = 0;
    Clock clock;
    std::vector<Time> tensor_seen;  // acquired, to be known in the tensor sense after fence::after
  };
  struct WarpState {
    Time now = 1;  // time of the next access; advances at every release
    std::vector<Group> groups;
    std::vector<std::pair<Time, uint32_t>> releases;  // (time, op), newest last
    std::vector<std::pair<uint32_t, uint32_t>> loads, stores;  // (column, columns) before their wait
    std::vector<Time> store_waits;                             // of the wait::st that had something to wait for
    struct ProxyFence {
      Time time;
      Mask lanes;
      FenceKind kind;
    };
    std::vector<ProxyFence> proxy_fences;  // oldest first
  };
  struct Barrier {
    uint32_t address = 0;
    Component component = 0;
    Access init;
    bool init_fenced = false;
    Clock gathering, completed;
    std::vector<Clock> far;  // of a cluster: the same for what arrivals of other CTAs release
    bool far_released[2] = {};
    Access newest_copy;     // that completes on it, with the time when it is known
    struct Use {
      Time time = 0;       // of the lane's newest arrival or wait
      uint32_t op = 0;
      uint32_t seen = 0;   // phases that the lane has seen complete
      uint32_t in_row = 0; // how many of them it waited for one after the other
    };
    std::vector<Use> uses;  // [lane of the cluster]
    Access newest_commit;   // that arrives on it, with the time when it is known
    Access newest_arrival;  // of any kind
    // Waits by parity for the newest completed phase, one a warp: what completes the next phase must come after them.
    std::vector<Access> waits;
    std::vector<Time> cause;  // what those knew that issued the commits of the phase under way
  };
  // A barrier of the CTA's threads.
  struct CtaUse {  // a warp arrives
    uint32_t warp;
    Mask lanes;
    Time time;
    uint32_t op;
  };
  struct CtaBarrierState {
    Clock clock;
    std::vector<CtaUse> gathering, last;  // of the use under way; of the one before, which is complete
  };
  // What a thread's newest memory fence makes visible with the strong writes that follow.
  struct Fenced {
    std::shared_ptr<const Clock> clock;
    Time time = 0;
    bool beyond_cta = false, beyond_cta_in_cluster = false;
  };
  // What strong reads have seen, to be known after the next fence.
  struct Seen {
    Clock clock;
    bool beyond_cta = false;
    std::vector<Clock> far;  // of other CTAs of the cluster
  };
  // What threads of one CTA released at an atomic location, for the whole cluster (far) or their own CTA.
  struct Released {
    uint32_t rank;
    bool far;
    Clock clock;
  };
  struct MmaStream {  // of one CTA
    Clock clock;               // what a commit passes on
    Time issued = 0;
    Access newest;
    std::vector<Time> issue;   // [MMA]: the issuing lane's time
  };
  // The newest access of a lane to the memory of another CTA.
  struct RemoteUse {
    Time time;
    uint32_t op, at;
  };
  // Rows of global memory that a lane's bulk stores write.
  struct StoredRow {
    uint64_t end;
    Access access;
  };
  struct StoreStream {  // of one lane
    uint32_t lane = 0;  // of the CTA
    std::vector<std::pair<uint64_t, Time>> groups;  // (bulk group, its newest store)
    Time issued = 0;
    Access newest;
  };
  struct Actor {  // whose clock decides
    WarpState* warp;
    Group* group;
    uint32_t lane;  // of the cluster
    uint32_t warp_index, rank;
  };

  Actor actor(const Warp& w, int lane);
  template <class F>
  void each_group(WarpState& s, Mask lanes, F f) {
    split(s, lanes);
    for (Group& g : s.groups) {
      if (g.lanes & lanes) f(g);
    }
  }
  void split(WarpState& s, Mask lanes);
  void join_tensor(const Warp& w, const Group& from, Mask lanes, std::vector<Time>& into) const;
  void release(const Warp& w, const Op* op, Mask lanes, Clock& into);
  void acquire(const Warp& w, Mask lanes, const Clock& from);
  void merge_groups(const Warp& w);
  bool knows(const std::vector<Time>& clock, const Actor& who, const Access& access) const;

  enum class Sense : uint8_t { thread, async, async_global };  // proxy by which memory is accessed
  static bool knows_proxy(const Actor& who, const Access& access, Sense sense);
  bool fenced_by_writer(const Actor& who, const Access& write, Sense sense) const;
  // Every `step`th cell. `more`: readers beside Cell::read, by first + i. Accesses in several parts hand a neighbour along.
  // `remembered`: a later write is held against it.
  void read_cells(Cell* cells, size_t count, size_t step, Readers& more, uint64_t first, const Actor& who, const Access& access,
                  Sense sense, Tensor tensor, Neighbour& neighbour, bool remembered = true);
  void write_cells(Cell* cells, size_t count, size_t step, Readers& more, uint64_t first, const Actor& who, const Access& access,
                   Sense sense, Tensor tensor);
  static void remember(std::vector<Access>& readers, const Access& access);
  void shared_cells(const Actor& who, const Access& access, uint32_t address, uint32_t bytes, bool write, Sense sense);
  void shared_cells(const Actor& who, const Access& access, uint32_t address, uint32_t bytes, bool write, Sense sense, Neighbour& neighbour,
                    bool remembered = true);
  void global_cells(const Actor& who, const Access& access, uint64_t address, uint32_t bytes, bool write, Sense sense);
  void against_stored_rows(const Actor& who, const Access& access, uint64_t begin, uint64_t end, bool write);
  void between_ctas(const Warp& w, const Op* op, const Actor& who, uint64_t address, uint32_t bytes, bool write);
  void order_access(const Warp& w, const Op* op, int lane, uint64_t location, bool write, bool global);
  void publish_fenced(uint32_t lane, Clock& into);
  // far: from one CTA of the cluster to another.
  void publish_relaxed(const Warp& w, int lane, Clock& into, bool far);
  Seen& seen_of(uint32_t lane);
  Clock& clock_at(uint64_t location, uint32_t rank, bool far);
  void learn_relaxed(const Warp& w, int lane, const Clock& from, bool far);
  void memory_fence(const Warp& w, const Op* op, Mask lanes);
  void used(const Warp& w, const Op* op, Mask lanes, Barrier& barrier);
  void note_phase(const Warp& w, const Op* op, Mask lanes, Barrier& barrier);
  void require_waits_seen(const Barrier& barrier);
  void require_last_use_over(const Warp& w, const Op* op, Mask lanes, uint32_t id);
  void require_unused(const Actor& who, const Access& now, Barrier& barrier);
  void learn_published(const ForeignClocks& published, Clock& into) const;
  ForeignClocks everything_known(const Clock& clock) const;
  void log_box(const Event& event, const Actor& who, const Access& access);
  void read_box(const Event& event, const Actor& who, const Access& access);
  template <class F>
  void each_box_row(const Event& event, F f) const;
  void settle_tmem(const Warp& w, uint32_t column, uint32_t columns, bool stores);
  void tmem_owned(const Warp& w, const Op* op, uint32_t column, uint32_t columns);
  // Whether `before` and `now` are in order; reports what is wrong.
  bool check(const Actor& who, const Access& before, const Access& now, const Cell* cell, bool before_wrote, bool now_writes,
             Sense sense, Tensor tensor);
  void explain_order(const Actor& who, const Access& before, const Access& now, const Cell* cell, bool before_wrote, bool now_writes,
                     bool tensor);
  void report(FindingKind kind, bool warning, const Actor& who, const Access& before, const Access& now, const Cell* cell,
              bool before_wrote, bool now_writes);
  // A finding of this pair that is there already, counted once more; or nullptr.
  Finding* again(FindingKind kind, uint32_t first_op, uint32_t second_op);
  Finding new_finding(FindingKind kind, uint32_t first_op, uint32_t second_op) const;
  void fill(Finding& f, const Actor& who, const Access& before, const Access& now, const Cell* cell, bool before_wrote, bool now_writes) const;
  std::string describe_access(const Access& access, bool wrote) const;
  std::string memory_name(const Cell* cell) const;
  std::string last_sync(const Actor& who, const Access& before) const;
  Barrier* find_barrier(uint32_t address);
  void require_visible_init(const Actor& who, Barrier& barrier, const Op* op, bool by_copy);
  // Warps, lanes, shared memory and tensor memory of all CTAs of the cluster lie one behind the other, by rank.
  uint32_t warp_of(const Warp& w) const { return w.cta->rank * cta_warps_ + w.index; }
  uint32_t warp_of(const Event& e) const { return e.cta->rank * cta_warps_ + e.warp; }
  uint32_t rank_of(uint32_t lane) const { return size_ == 1 ? 0 : lane / (cta_warps_ * kLanes); }
  uint32_t flat(const Cta& cta, uint32_t address) const { return cta.rank * shared_bytes_ + address; }
  uint32_t barrier_of(const Event& e) const { return flat(e.target ? *e.target : *e.cta, e.address); }
  const Cta& cta_of(uint32_t at) const { return *cta_->cluster->ctas[at / shared_bytes_]; }
  const MBarrier* live_barrier(uint32_t at) const;
  std::string shared_text(uint32_t at) const;
  std::string barrier_text(uint32_t at) const;
  std::string role(uint32_t warp) const;
  uint64_t time_of(uint32_t warp) const { return cta_->cluster->ctas[warp / cta_warps_]->warps[warp % cta_warps_].time; }
  // Threads touch memory of another CTA: it has begun, and has not ended until they have said so. Of what asynchronous agents
  // do there its mbarriers tell.
  void note_remote(const Warp& w, const Op* op, Mask lanes, const Cta& owner, uint32_t at);
  void require_begun(const Warp& w, const Op* op, Mask lanes, const Cta& owner, uint32_t at);
  void require_nobody_here(const Cta& cta, const std::vector<Time>& known);
  void publish_inits(const Warp& w, Mask lanes);
  uint32_t op_index(const Op* op) const { return uint32_t(op - cta_->launch->code->ops.data()); }
  template <class F>
  void each_written(uint32_t address, uint32_t bytes, F f);
  StoreStream& stream(uint32_t lane, Component* component);
  uint32_t snapshot();
  void unobserved(const Access& access, const std::string& what, const std::string& chain, bool warning = false);
  // Model::silicon.
  Component wgmma_stream(uint32_t warp) const { return kFirstLane + lanes_ + warp; }
  uint32_t first_of_warpgroup(uint32_t warp) const { return warp - warp % cta_warps_ % 4; }
  void note_wgmma_cause(const Warp& w, Time number);
  void learn_wgmma_cause(const Warp& w, Time number);
  // Model::silicon: a warning about what a warp does (`then`) where another warp of its warpgroup does something else.
  void warpgroup_deviates(FindingKind kind, const Warp& w, const Op* first, const Op* then, const std::string& others,
                          const std::string& own, const char* chain);
  bool warpgroup_knows(const Actor& who, const Access& before) const;
  bool store_is_waited_for(const Actor& who, const Access& store) const;
  // A warning, once for each place in the source at which `before` is.
  void deviate(FindingKind kind, const Actor& who, const Access& before, const Access& now, const Cell* cell, bool before_wrote,
               bool now_writes);
  uint32_t first_of_place(uint32_t op);

  void note_global_write(uint64_t begin, uint64_t end, uint32_t op, uint32_t warp);

  static constexpr uint32_t kTmemCells = TensorMemory::columns * TensorMemory::partitions;  // of a CTA

  const Cta* cta_ = nullptr;     // the first of the cluster
  uint32_t size_ = 1;            // CTAs of the cluster
  uint32_t cta_warps_ = 0, shared_bytes_ = 0;  // of a CTA
  uint32_t lanes_ = 0;           // of the cluster
  std::vector<WarpState> warps_;
  std::vector<Cell> shared_;  // by 4 bytes
  std::vector<Cell> tmem_;    // [column * 4 + partition]
  std::unordered_map<uint32_t, std::array<Cell, 4>> bytes_of_word_;
  std::unordered_map<uint64_t, std::array<Cell, 4>> global_parts_;
  Readers shared_readers_, byte_readers_, tmem_readers_, global_readers_, global_byte_readers_;
  std::unordered_map<uint64_t, Cell> global_;  // by 4 bytes
  std::vector<Barrier> barriers_;
  std::unordered_map<uint32_t, uint32_t> barrier_at_;
  std::vector<CtaBarrierState> cta_barriers_;  // [16 * rank + number]
  Clock cluster_gathering_, cluster_completed_;
  std::vector<MmaStream> mmas_;      // [rank]
  std::map<std::pair<uint32_t, uint32_t>, RemoteUse> remote_uses_;  // by rank of the owner and lane
  std::vector<std::vector<Access>> remote_reads_;  // [rank]: copies to other CTAs that read its memory
  std::vector<Access> newest_wgmma_;          // [warp]
  std::vector<Time> newest_warpgroup_wgmma_;  // [first warp of a warpgroup]: the newest number that one of its warps has issued
  // Model::silicon: what the warps knew that issued a wgmma for which not all of them have waited.
  struct WgmmaCause {
    Time number;
    uint32_t waited;  // mask of warps of the warpgroup
    std::vector<Time> known;
  };
  std::vector<std::vector<WgmmaCause>> wgmma_causes_;  // [first warp of a warpgroup]
  const Code* places_of_ = nullptr;
  std::unordered_map<uint32_t, uint32_t> places_;      // of its ops: first_of_place
  std::unordered_map<uint32_t, std::pair<uint32_t, Access>> copies_;  // by lane of the CTA: cp.async not over, the newest
  std::vector<Time> newest_mma_;  // [lane of the CTA]
  std::unordered_map<uint64_t, std::vector<Released>> locations_;       // what a reader of an atomic location comes to know
  std::unordered_map<uint32_t, Fenced> fenced_;         // by lane of the CTA
  std::unordered_map<uint32_t, Seen> seen_;             // by lane of the CTA
  std::map<uint64_t, StoredRow> stored_rows_;           // by first byte
  uint64_t stored_begin_ = ~0ull, stored_end_ = 0;      // all of stored_rows_
  uint64_t generic_begin_ = ~0ull, generic_end_ = 0;    // all that threads wrote to global memory
  uint64_t memory_at_ = 0;                              // global address that a report is about
  std::pair<uint32_t, uint32_t> phases_;                // that a report is about: waited for, current
  uint32_t axioms_ = 0;
  Grid& grid_;
  std::vector<StoreStream> streams_;
  std::vector<Clock> snapshots_;  // by Event::token
  std::vector<std::vector<Time>> causes_;  // by Event::token: what the lane knew when it issued the commit
  std::vector<uint32_t> free_snapshots_;
  bool relaxed_ = false;  // there were hand-overs without acquire or release: they cause, and leave no trace in clocks
  std::vector<Finding> findings_;
  std::vector<GlobalWrite> global_writes_;
  std::map<std::tuple<uint64_t, uint32_t, uint32_t>, std::string> writers_;  // by launch, op and warp
  std::optional<Provenance> provenance_;                    // only where orders are explained
  std::set<std::pair<uint32_t, uint32_t>> explained_pairs_;  // empty: all
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> explained_;  // times, in this CTA
  std::vector<Ordering> orderings_;
};

}  // namespace fa4::sim::check
