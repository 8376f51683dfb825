// SPDX-License-Identifier: Apache-2.0
// Clusters of two CTAs: their barrier, scopes, lives, mbarriers of each other, and what copies between them.
#include "tiles.h"

namespace fa4::sim::test {

namespace {

// %r40: the rank, %r41: the other's; %r42: the address of smem, %r43: the same in the other CTA.
const std::string kPlace = line("mov.u32 %r40, %cluster_ctarank") + line("xor.b32 %r41, %r40, 1") +
                           line("mov.u32 %r42, smem") + line("mapa.shared::cluster.u32 %r43, %r42, %r41");
const std::string kSyncCluster = "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n";
const std::string kRelaxedSync = "  barrier.cluster.arrive.relaxed;\n  barrier.cluster.wait;\n";
const std::string kLater = "  nanosleep.u32 20000;\n";

std::string by_rank(uint32_t rank, const std::string& text) {
  return only("%r40, " + std::to_string(rank), text);
}
// Thread 0 of a CTA.
std::string leader(uint32_t rank, const std::string& text) {
  return by_rank(rank, by_thread(0, text));
}
// Both have begun, thread 0 has written %r42+64; `body`; both are there to the end.
std::string together(const std::string& body) {
  return kPlace + by_thread(0, line("st.shared.u32 [smem+64], 1")) + kSyncCluster + body + kSyncCluster;
}
const std::string kStoreOwn = line("st.shared.u32 [smem+64], 2"),
                  kLoadOther = line("ld.shared::cluster.u32 %r1, [%r43+64]"),
                  kStoreOther = line("st.shared::cluster.u32 [%r43+64], 3"),
                  kLoadOwn = line("ld.shared.u32 %r1, [smem+64]");
// Rank 0 writes in its own memory, then `between`, then rank 1 reads there.
std::string handed_over(const std::string& between) {
  return together(leader(0, kStoreOwn) + between + leader(1, kLoadOther));
}
// Rank 0 writes in its memory and says so in rank 1's, at byte 128.
std::string flagged(const std::string& fence, const std::string& set, const std::string& look) {
  return kPlace + by_thread(0, line("st.shared.u32 [smem+64], 1") + line("st.shared.u32 [smem+128], 0")) +
         kSyncCluster +
         leader(0, kStoreOwn + fence + line("st." + set + ".shared::cluster.u32 [%r43+128], 1")) +
         leader(1, spin("ld." + look + ".shared::cta.u32 %r9, [smem+128]") + fence + kLoadOther) +
         kSyncCluster;
}
const std::string kInitFence = "  fence.mbarrier_init.release.cluster;\n";
// The barrier at byte 0 of each CTA, for `count` arrivals, known in the cluster.
std::string barriers(uint32_t count, const std::string& fence = kInitFence,
                     const std::string& sync = kSyncCluster) {
  return init_barrier(0, count) + fence + sync;
}
std::string arrive_there(const std::string& semantics = ".release.cluster") {
  return line("mbarrier.arrive" + semantics + ".shared::cluster.b64 _, [%r43]");
}
// Rank 1 writes in its memory and arrives at rank 0's barrier, where rank 0 waits and reads rank 1's memory.
std::string remote_arrival(const std::string& arrive, const std::string& wait) {
  return kPlace + by_thread(0, line("st.shared.u32 [smem+64], 1")) + barriers(1) +
         leader(1, kStoreOwn + arrive_there(arrive)) + leader(0, wait_as(wait, 0, 0) + kLoadOther) +
         kSyncCluster;
}
std::string used_at_once(const std::string& fence) {
  return kPlace + barriers(2, fence, kRelaxedSync) +
         by_thread(0, arrive_there() + arrive(0) + wait_as(".acquire.cluster", 0, 0)) + kSyncCluster;
}
// Rank 0 sends a word to byte 64 of rank 1, which `wait`s for it.
std::string sent(const std::string& opcode, const std::string& wait) {
  return kPlace + by_thread(0, line("st.shared.u32 [smem+64], 1")) + barriers(1) +
         leader(1, line("mbarrier.arrive.expect_tx.shared::cta.b64 _, [smem], 4")) + kSyncCluster +
         leader(0, line(opcode + " [%r43+64], %r41, [%r43]")) + leader(1, wait + kLoadOwn) + kSyncCluster;
}
const std::string kStoreAsync = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32",
                  kReduceAsync =
                      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32";
const std::string kFence = "  fence.proxy.async.shared::cta;\n";
// Rank 0 copies 16 bytes of its memory, `ready` after they were written, to byte 1024 of rank 1's.
std::string copied(const std::string& ready, const std::string& after) {
  return kPlace +
         by_thread(0, line("mov.b32 %v0, 0") + line("st.shared.v4.b32 [smem+256], {%v0, %v0, %v0, %v0}")) +
         ready + barriers(1) + leader(1, line("mbarrier.arrive.expect_tx.shared::cta.b64 _, [smem], 16")) +
         leader(0, line("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r43+1024], "
                        "[%r42+256], 16, [%r43]")) +
         after;
}
const std::string kLoadBox = line("ld.shared.u32 %r1, [smem+1024]"),
                  kStoreSource = line("st.shared.u32 [smem+256], 1");
std::string announce() {
  return by_thread(0, line("mbarrier.arrive.expect_tx.shared::cta.b64 _, [smem], 64"));
}
std::string load_for_both() {
  return leader(
      0, line("mov.u16 %h0, 3") +
             line("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                  "[%r42+1024], [%d1], 64, [%r42], %h0"));
}
// Rank 0 loads 64 bytes to byte 1024 of both.
std::string multicast(const std::string& after) {
  return kPlace + barriers(1) + announce() + load_for_both() + after;
}
// Rank 0 writes 16 bytes of rank 1's memory, from where rank 1 has them stored.
std::string stored_there(const std::string& fence) {
  return kPlace + kSyncCluster +
         leader(0, line("mov.b32 %v0, 0") +
                       line("st.shared::cluster.v4.b32 [%r43+256], {%v0, %v0, %v0, %v0}") + fence) +
         kSyncCluster +
         leader(1, line("cp.async.bulk.global.shared::cta.bulk_group [%out], [smem+256], 16") +
                       line("cp.async.bulk.commit_group") + line("cp.async.bulk.wait_group 0"));
}

// Barriers at bytes 0 and 8 of each CTA, the second for `commits`; both CTAs' operands by multicast from rank
// 0.
std::string multicast_tiles(uint32_t commits) {
  return kPlace + init_barrier(0, 1) + init_barrier(8, commits) + kInitFence + kSyncCluster +
         allocate_tmem(16, 32) + mma_registers();
}
std::string fill_tiles() {
  const std::string load =
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster ";
  return expect_bytes(0, 4096 + 512) +
         leader(0, line("mov.u16 %h0, 3") + line(load + "[%r42+1024], [%d1], 4096, [%r42], %h0") +
                       line(load + "[%r42+8192], [%d1], 512, [%r42], %h0"));
}
std::string commit_to(uint32_t mask) {
  return line("mov.u16 %h1, " + std::to_string(mask)) +
         line(
             "@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
             "[%r42+8], %h1");
}
// Each CTA's MMA reads its tiles, then, after `told` in rank 0, both are filled again.
std::string filled_again(uint32_t commits, const std::string& commit, const std::string& told) {
  return multicast_tiles(commits) + fill_tiles() + wait_barrier(0, 0) + cta_sync() + mma() + commit +
         leader(0, told) + fill_tiles() + wait_barrier(0, 1) + wait_barrier(8, 0) + free_tmem(32) +
         kSyncCluster;
}
// Rank 0's MMA, whose operands rank 1 overwrites after `told`;
std::string overwritten_there(const std::string& commit, const std::string& told) {
  return multicast_tiles(1) + fill_tiles() + wait_barrier(0, 0) + by_rank(0, mma() + commit) +
         leader(1, told + line("st.shared::cluster.u32 [%r43+1024], 0")) + wait_barrier(8, 0) +
         free_tmem(32) + kSyncCluster;
}

Litmus in_cluster(const std::string& name, const std::string& body, const std::string& verdict) {
  return {name, "  .reg .b16 %h<4>;\n" + body, verdict, 2, 64, "sm_100a", 2};
}

}  // namespace

std::vector<Litmus> cluster_litmus() {
  const std::string wait = wait_as("", 0, 0), wait_again = wait_as("", 0, 1),
                    cluster_wait = wait_as(".acquire.cluster", 0, 0);
  const std::string life = "shared memory of a CTA that may not be there",
                    unobserved = "asynchronous work that nobody waited for";
  const auto atomics = [](const std::string& scope) {
    return together(by_rank(0, line("atom.relaxed." + scope + ".shared::cluster.add.u32 %r1, [%r42+64], 1")) +
                    by_rank(1, line("atom.relaxed." + scope + ".shared::cluster.add.u32 %r1, [%r43+64], 1")));
  };
  const auto global = [](const std::string& between) {
    return kPlace + kSyncCluster + leader(0, line("st.global.u32 [%d1], 7")) + between +
           leader(1, line("st.global.u32 [%d1], 8"));
  };
  return {
      in_cluster("cluster barrier: between", handed_over(kSyncCluster), "clean"),
      in_cluster("cluster barrier: missing", handed_over(""), "race"),
      in_cluster("cluster barrier: a barrier of the CTA instead", handed_over(cta_sync()), "race"),
      in_cluster("cluster barrier: write after read",
                 together(leader(1, kLoadOther) + kSyncCluster + leader(0, kStoreOwn)), "clean"),
      in_cluster("cluster barrier: relaxed arrival", handed_over(kRelaxedSync), "race"),
      in_cluster("cluster barrier: relaxed arrival after a fence",
                 handed_over("  fence.acq_rel.cluster;\n" + kRelaxedSync), "clean"),
      in_cluster("cluster barrier: relaxed arrival after a fence of the CTA",
                 handed_over("  fence.acq_rel.cta;\n" + kRelaxedSync), "race"),
      in_cluster("cluster barrier: global memory", global(kSyncCluster), "clean"),
      in_cluster("cluster barrier: global memory, missing", global(""), "race"),

      in_cluster("scopes in a cluster: release and acquire",
                 flagged("", "release.cluster", "acquire.cluster"), "clean"),
      in_cluster("scopes in a cluster: release of the CTA's", flagged("", "release.cta", "acquire.cluster"),
                 "race"),
      in_cluster("scopes in a cluster: acquire of the CTA's", flagged("", "release.cluster", "acquire.cta"),
                 "race"),
      in_cluster("scopes in a cluster: relaxed with fences",
                 flagged("  fence.acq_rel.cluster;\n", "relaxed.cluster", "relaxed.cluster"), "clean"),
      in_cluster("scopes in a cluster: relaxed with fences of the CTA's",
                 flagged("  fence.acq_rel.cta;\n", "relaxed.cluster", "relaxed.cluster"), "race"),
      in_cluster("scopes in a cluster: atomics", atomics("cluster"), "clean"),
      in_cluster("scopes in a cluster: atomics of the CTA's", atomics("cta"), "race"),

      in_cluster("lives: a store before the other CTA has begun",
                 kPlace + leader(0, kStoreOther) + kSyncCluster, life),
      in_cluster("lives: a relaxed barrier says that it has begun",
                 kPlace + kRelaxedSync + leader(0, kStoreOther) + kSyncCluster, "clean"),
      in_cluster("lives: an end without a barrier",
                 kPlace + kSyncCluster + leader(0, kStoreOther) + leader(1, kLater), life),
      in_cluster("lives: a store after the end", kPlace + kSyncCluster + leader(0, kLater + kStoreOther),
                 "no such CTA"),
      in_cluster("lives: an arrival that is waited for",
                 kPlace + barriers(1) + leader(0, arrive_there()) + leader(1, cluster_wait), "clean"),
      in_cluster("lives: an arrival that nobody waits for",
                 kPlace + barriers(2) + leader(0, arrive_there()) + leader(1, kLater), life),

      in_cluster("remote arrival: cluster scope", remote_arrival(".release.cluster", ".acquire.cluster"),
                 "clean"),
      in_cluster("remote arrival: no scope named", remote_arrival("", ""), "clean"),
      in_cluster("remote arrival: arrival of the CTA's scope",
                 remote_arrival(".release.cta", ".acquire.cluster"), "race"),
      in_cluster("remote arrival: wait of the CTA's scope",
                 remote_arrival(".release.cluster", ".acquire.cta"), "race"),
      in_cluster("remote arrival: relaxed", remote_arrival(".relaxed.cluster", ".acquire.cluster"), "race"),
      in_cluster("remote arrival: relaxed wait", remote_arrival(".release.cluster", ".relaxed.cluster"),
                 "race"),
      in_cluster("remote arrival: init, fence, relaxed barrier", used_at_once(kInitFence), "clean"),
      in_cluster("remote arrival: init, relaxed barrier", used_at_once(""),
                 "barrier used before its init is visible"),

      in_cluster("store across: st.async and wait", sent(kStoreAsync, wait), "clean"),
      in_cluster("store across: st.async, no wait", sent(kStoreAsync, ""), "race + poison"),
      in_cluster("store across: red.async and wait", sent(kReduceAsync, wait), "clean"),
      in_cluster("store across: red.async, no wait", sent(kReduceAsync, ""), unobserved + " + race + poison"),

      in_cluster("copy across: fence and wait", copied(kFence, leader(1, wait + kLoadBox) + kSyncCluster),
                 "clean"),
      in_cluster("copy across: no proxy fence", copied("", leader(1, wait + kLoadBox) + kSyncCluster),
                 "missing proxy fence"),
      in_cluster("copy across: no wait", copied(kFence, leader(1, kLoadBox) + kSyncCluster), "race + poison"),
      in_cluster("copy across: source written again, told by the other",
                 copied(kFence, leader(1, wait) + kSyncCluster + leader(0, kStoreSource)), "clean"),
      in_cluster("copy across: source written again",
                 copied(kFence, leader(0, kStoreSource) + leader(1, wait) + kSyncCluster), "race"),
      in_cluster("copy across: the source's CTA ends", copied(kFence, leader(0, kLater) + leader(1, wait)),
                 unobserved),
      in_cluster("copy across: stores to the other CTA, then its own copy: fence of the cluster",
                 stored_there("  fence.proxy.async.shared::cluster;\n"), "clean"),
      in_cluster("copy across: stores to the other CTA, then its own copy: fence of the CTA",
                 stored_there(kFence), "missing proxy fence"),

      in_cluster("multicast: all wait", multicast(by_thread(0, wait + kLoadBox) + kSyncCluster), "clean"),
      in_cluster("multicast: all wait, and end", multicast(by_thread(0, wait + kLoadBox)), "clean"),
      in_cluster("multicast: one does not wait",
                 multicast(leader(0, wait + kLoadBox) + leader(1, kLater) + kSyncCluster), unobserved),
      in_cluster("multicast: filled again when all have said so",
                 multicast(by_thread(0, wait + kLoadBox) + kSyncCluster + announce() + load_for_both() +
                           by_thread(0, wait_again) + kSyncCluster),
                 "clean"),
      in_cluster("multicast: filled again at once",
                 multicast(by_thread(0, wait + kLoadBox) + announce() + load_for_both() +
                           by_thread(0, wait_again) + kSyncCluster),
                 "race"),

      in_cluster("commit to both: filled again after both commits",
                 filled_again(2, commit_to(3), wait_barrier(8, 0)), "clean"),
      in_cluster("commit to both: filled again at once", filled_again(2, commit_to(3), ""), "race + poison"),
      in_cluster("commit to both: filled again after the own commit",
                 filled_again(1, commit(8), wait_barrier(8, 0)), "race"),
      in_cluster("commit to both: the other overwrites the operands after its wait",
                 overwritten_there(commit_to(3), wait_barrier(8, 0)), "clean"),
      in_cluster("commit to both: the other overwrites the operands at once",
                 overwritten_there(commit_to(3), ""), "race"),
      in_cluster("commit to both: the other is not in the mask",
                 overwritten_there(commit_to(1), wait_barrier(8, 0)), "deadlock"),
  };
}

}  // namespace fa4::sim::test
