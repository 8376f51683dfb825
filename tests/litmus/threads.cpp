// SPDX-License-Identifier: Apache-2.0
#include "litmus.h"

namespace fa4::sim::test {
namespace {

const std::string kStore = "  st.shared.u32 [smem+64], 7;\n", kLoad = "  ld.shared.u32 %r1, [smem+64];\n";
const std::string kSyncWarp = "  bar.warp.sync 0xffffffff;\n", kSyncCta = "  bar.sync 0;\n";
const std::string kFence = "  fence.acq_rel.cta;\n";

// Every lane of warp 0 stores a word, which warp 1 reads when barrier 0 has opened.
std::string hand_over(uint32_t arrivals, const std::string& signal, const std::string& wait) {
  return init_barrier(0, arrivals) + kSyncCta + line("and.b32 %r3, %tid32, 31") +
         line("shl.b32 %r3, %r3, 2") +
         by_warp(0, line("mov.u32 %r4, smem") + line("add.s32 %r4, %r4, %r3") +
                        line("st.shared.u32 [%r4+64], %r3") + signal) +
         by_warp(1, wait + line("mov.u32 %r4, smem") + line("sub.s32 %r4, %r4, %r3") +
                        line("ld.shared.u32 %r1, [%r4+188]"));
}

// A message in a word and a flag in another, both zero at first: warp 0 sends, warp 1 receives.
std::string message(const std::string& space, const std::string& data, const std::string& flag,
                    const std::string& send, const std::string& receive) {
  return by_thread(0, line("st." + space + ".u32 [" + data + "], 0") +
                          line("st." + space + ".u32 [" + flag + "], 0")) +
         kSyncCta + by_thread(0, line("st." + space + ".u32 [" + data + "], 7") + send) +
         by_thread(32, receive + line("ld." + space + ".u32 %r1, [" + data + "]"));
}
std::string shared_message(const std::string& send, const std::string& receive) {
  return message("shared", "smem+64", "smem+128", send, receive);
}
std::string global_message(const std::string& send, const std::string& receive) {
  return message("global", "%d1", "%d1+128", send, receive);
}

// Warps 0 and 1, or 2 and 3.
std::string first_group(const std::string& text) {
  return line("shr.u32 %r2, %warp, 1") + only("%r2, 0", text);
}
std::string second_group(const std::string& text) {
  return line("shr.u32 %r2, %warp, 1") + only("%r2, 1", text);
}
std::string turns(const std::string& text) {
  return text + text + text;
}

// The same between CTA 0 and CTA 1, in memory that the host has set to zero.
std::string between_ctas(const std::string& send, const std::string& receive) {
  return line("mov.u32 %r5, %ctaid.x") + only("%r5, 0", by_thread(0, line("st.global.u32 [%d1], 7") + send)) +
         only("%r5, 1", by_thread(0, receive + line("ld.global.u32 %r1, [%d1]")));
}

}  // namespace

std::vector<Litmus> thread_litmus() {
  const std::string flag_shared = "[smem+128]", flag = "[%d1+128]";
  // A word that nobody has written in %r1, %p5 true; a thread's own words at [%r4+1024] and of %out, which takes %r2.
  const std::string unwritten = line("shl.b32 %r4, %tid32, 2") + line("mov.u32 %r5, smem") + line("add.u32 %r4, %r4, %r5") +
                                line("mul.wide.u32 %d9, %tid32, 4") + line("add.u64 %d9, %d9, %out") +
                                line("setp.lt.u32 %p5, %tid32, 4096") + line("ld.shared.u32 %r1, [smem+64]"),
                    give = line("st.global.u32 [%d9], %r2");
  return {
      {"cta barrier: between", by_thread(0, kStore) + kSyncCta + by_thread(32, kLoad), "clean"},
      {"cta barrier: missing", by_thread(0, kStore) + by_thread(32, kLoad), "race"},
      {"cta barrier: another one",
       by_thread(0, kStore) + by_warp(0, "  bar.sync 1, 32;\n") + by_warp(1, "  bar.sync 2, 32;\n" + kLoad),
       "race"},
      {"cta barrier: write after read",
       by_thread(0, kStore) + kSyncCta + by_thread(32, kLoad) + kSyncCta + by_thread(0, kStore), "clean"},
      {"cta barrier: write after read, missing",
       by_thread(0, kStore) + kSyncCta + by_thread(32, kLoad) + by_thread(64, kStore), "race"},
      {"cta barrier: arrive releases",
       by_warp(0, by_thread(0, kStore) + "  bar.arrive 1, 64;\n") + by_warp(1, "  bar.sync 1, 64;\n" + kLoad),
       "clean"},
      {"cta barrier: arrive does not acquire",
       by_warp(0, "  bar.arrive 1, 64;\n  nanosleep.u32 10000;\n" + kLoad) +
           by_warp(1, by_thread(32, kStore) + "  bar.sync 1, 64;\n"),
       "race"},
      {"warp barrier: between lanes", by_thread(0, kStore) + kSyncWarp + by_thread(5, kLoad), "clean"},
      {"warp barrier: reconvergence is none", by_thread(0, kStore) + by_thread(5, kLoad), "race"},
      {"warp barrier: converged lanes",
       line("and.b32 %r3, %tid32, 31") + line("shl.b32 %r3, %r3, 2") +
           by_warp(0, line("mov.u32 %r4, smem") + line("add.s32 %r4, %r4, %r3") +
                          line("st.shared.u32 [%r4+64], %r3") + line("sub.s32 %r4, %r4, %r3") +
                          line("sub.s32 %r4, %r4, %r3") + line("ld.shared.u32 %r1, [%r4+188]")),
       "race"},
      {"warp barrier: shfl.sync is none",
       by_thread(0, kStore) + line("shfl.sync.idx.b32 %r2, %tid32, 0, 31, 0xffffffff") + by_thread(5, kLoad),
       "race"},
      {"warp barrier: vote.sync is none",
       by_thread(0, kStore) + line("vote.sync.all.pred %p2, %p0, 0xffffffff") + by_thread(5, kLoad), "race"},
      {"warp barrier: elect.sync is none",
       by_thread(0, kStore) + line("elect.sync _|%p2, 0xffffffff") + by_thread(5, kLoad), "race"},
      {"warp barrier: a mask without the writer",
       by_thread(0, kStore) +
           by_warp(0, only("%tid32, 0", "") + "  @%p0 bra OUT;\n  bar.warp.sync 0xfffffffe;\nOUT:\n") +
           by_thread(5, kLoad),
       "race"},

      {"arrive: each lane", hand_over(32, arrive(0), wait_barrier(0, 0)), "clean"},
      {"arrive: one lane for the warp", hand_over(1, kSyncWarp + by_thread(0, arrive(0)), wait_barrier(0, 0)),
       "clean"},
      {"arrive: one lane, no warp barrier", hand_over(1, by_thread(0, arrive(0)), wait_barrier(0, 0)),
       "race"},
      {"arrive: before the store",
       init_barrier(0, 1) + kSyncCta + by_thread(0, arrive(0) + kStore) +
           by_warp(1, wait_barrier(0, 0) + kLoad),
       "race"},
      {"arrive: wait by one lane for its warp",
       hand_over(32, arrive(0), by_thread(32, wait_barrier(0, 0)) + kSyncWarp), "clean"},
      {"arrive: wait by one lane, no warp barrier",
       hand_over(32, arrive(0), by_thread(32, wait_barrier(0, 0))), "race"},
      {"arrive: relaxed", hand_over(32, arrive(0, ".relaxed.cta"), wait_barrier(0, 0)), "race"},
      {"arrive: relaxed after a fence", hand_over(32, kFence + arrive(0, ".relaxed.cta"), wait_barrier(0, 0)),
       "clean"},
      {"arrive: relaxed wait", hand_over(32, arrive(0), wait_as(".relaxed.cta", 0, 0)), "race"},
      {"arrive: relaxed wait before a fence",
       hand_over(32, arrive(0), wait_as(".relaxed.cta", 0, 0) + kFence), "clean"},

      {"exited: barrier among those that stay",
       by_thread(0, kStore) + line("setp.ge.u32 %p2, %tid32, 36") + "  @%p2 bra GONE;\n" + kSyncCta +
           by_thread(32, kLoad) + "GONE:\n",
       "clean"},
      {"exited: what a lane wrote before",
       by_thread(5, kStore + "  ret;\n") + kSyncCta + by_thread(32, kLoad), "race"},
      {"exited: what a lane wrote and released before",
       init_barrier(0, 1) + kSyncCta + by_thread(5, kStore + arrive(0) + "  ret;\n") + kSyncCta +
           by_thread(32, wait_barrier(0, 0) + kLoad),
       "clean"},
      {"exited: what a lane had learned",
       init_barrier(0, 1) + kSyncCta + by_thread(32, kStore + arrive(0)) +
           by_warp(0, by_thread(5, wait_barrier(0, 0) + "  ret;\n") + kSyncWarp + by_thread(0, kLoad)),
       "race"},
      {"exited: what a lane had learned and passed on",
       init_barrier(0, 1) + kSyncCta + by_thread(32, kStore + arrive(0)) +
           by_warp(0, by_thread(5, wait_barrier(0, 0)) + kSyncWarp + by_thread(5, "  ret;\n") +
                          by_thread(0, kLoad)),
       "clean"},

      {"one barrier: two groups", "  bar.sync 1, 64;\n", "uses of a barrier that nothing keeps apart"},
      {"one barrier: two groups, each with its own",
       line("shr.u32 %r1, %warp, 1") + line("add.u32 %r1, %r1, 1") + "  bar.sync %r1, 64;\n" +
           "  bar.sync %r1, 64;\n",
       "clean"},
      {"one barrier: two groups, one after the other",
       first_group("  bar.sync 1, 64;\n") + kSyncCta + second_group("  bar.sync 1, 64;\n"), "clean"},
      {"one barrier: two groups of different size, one after the other",
       by_warp(0, "  bar.sync 1, 32;\n") + kSyncCta + "  bar.sync 1, 128;\n", "clean"},
      {"one barrier: two groups, told by an mbarrier",
       init_barrier(0, 64) + kSyncCta + first_group("  bar.sync 1, 64;\n" + arrive(0)) +
           second_group(wait_barrier(0, 0) + "  bar.sync 1, 64;\n"),
       "clean"},
      {"one barrier: turns of producer and consumer",
       by_warp(0, turns("  bar.arrive 1, 64;\n  bar.sync 2, 64;\n")) +
           by_warp(1, turns("  bar.sync 1, 64;\n  bar.arrive 2, 64;\n")),
       "clean"},
      {"one barrier: a producer that does not wait",
       by_warp(0, turns("  bar.arrive 1, 64;\n  nanosleep.u32 20000;\n")) +
           by_warp(1, turns("  bar.sync 1, 64;\n")),
       "uses of a barrier that nothing keeps apart"},

      {"parts of words: neighbours",
       by_thread(0, "  st.shared.u8 [smem+64], 1;\n") + by_thread(32, "  st.shared.u8 [smem+65], 1;\n"),
       "clean"},
      {"parts of words: the same byte",
       by_thread(0, "  st.shared.u8 [smem+64], 1;\n") + by_thread(32, "  st.shared.u8 [smem+64], 1;\n"),
       "race"},
      {"parts of words: byte and word",
       by_thread(0, kStore) + kSyncCta + by_thread(32, "  st.shared.u8 [smem+66], 1;\n") +
           by_thread(64, kLoad),
       "race"},
      {"parts of words: word after byte, ordered",
       by_thread(32, kStore + "  st.shared.u8 [smem+66], 1;\n") + kSyncCta + by_thread(64, kLoad), "clean"},
      {"parts of words: halves of global words",
       by_thread(0, "  st.global.u16 [%d1], 1;\n") + by_thread(32, "  st.global.u16 [%d1+2], 1;\n"), "clean"},
      {"parts of words: one half of a global word",
       by_thread(0, "  st.global.u16 [%d1], 1;\n") + by_thread(32, "  st.global.u32 [%d1], 1;\n"), "race"},

      {"flag in shared memory: weak",
       shared_message(line("st.shared.u32 " + flag_shared + ", 1"),
                      line("ld.shared.u32 %r9, " + flag_shared)),
       "race"},
      {"flag in shared memory: volatile",
       shared_message(line("st.volatile.shared.u32 " + flag_shared + ", 1"),
                      spin("ld.volatile.shared.u32 %r9, " + flag_shared)),
       "race"},
      {"flag in shared memory: volatile with membar",
       shared_message("  membar.cta;\n" + line("st.volatile.shared.u32 " + flag_shared + ", 1"),
                      spin("ld.volatile.shared.u32 %r9, " + flag_shared) + "  membar.cta;\n"),
       "clean"},
      {"flag in shared memory: fence after the flag",
       shared_message(line("st.volatile.shared.u32 " + flag_shared + ", 1") + "  membar.cta;\n",
                      spin("ld.volatile.shared.u32 %r9, " + flag_shared) + "  membar.cta;\n"),
       "race"},
      {"flag in shared memory: release and acquire",
       shared_message(line("st.release.cta.shared.u32 " + flag_shared + ", 1"),
                      spin("ld.acquire.cta.shared.u32 %r9, " + flag_shared)),
       "clean"},
      {"flag in shared memory: release, relaxed read",
       shared_message(line("st.release.cta.shared.u32 " + flag_shared + ", 1"),
                      spin("ld.relaxed.cta.shared.u32 %r9, " + flag_shared)),
       "race"},
      {"flag in shared memory: overwritten by a relaxed store",
       shared_message(line("st.release.cta.shared.u32 " + flag_shared + ", 2") +
                          by_thread(0, line("st.relaxed.cta.shared.u32 " + flag_shared + ", 1")),
                      spin("ld.acquire.cta.shared.u32 %r9, " + flag_shared)),
       "race"},
      {"flag in shared memory: an atomic keeps the release",
       shared_message(line("st.release.cta.shared.u32 " + flag_shared + ", 2") +
                          line("atom.relaxed.cta.shared.exch.b32 %r2, " + flag_shared + ", 1"),
                      spin("ld.acquire.cta.shared.u32 %r9, " + flag_shared)),
       "clean"},
      {"flag in shared memory: red does not acquire",
       shared_message(
           line("st.release.cta.shared.u32 " + flag_shared + ", 1"),
           line("red.relaxed.cta.shared.add.u32 " + flag_shared + ", 0") + "  fence.acq_rel.cta;\n"),
       "race"},
      {"atomics: among themselves",
       by_thread(0, "  st.shared.u32 [smem+64], 0;\n") + kSyncCta +
           line("atom.shared.add.u32 %r1, [smem+64], 1"),
       "clean"},
      {"atomics: with a weak store",
       by_thread(0, "  st.shared.u32 [smem+64], 0;\n") + kSyncCta +
           by_thread(0, line("atom.shared.add.u32 %r1, [smem+64], 1")) + by_thread(32, kStore),
       "race"},

      {"global memory: cta barrier",
       by_thread(0, "  st.global.u32 [%d1], 7;\n") + kSyncCta +
           by_thread(32, "  ld.global.u32 %r1, [%d1];\n"),
       "clean"},
      {"global memory: nothing",
       by_thread(0, "  st.global.u32 [%d1], 7;\n") + by_thread(32, "  ld.global.u32 %r1, [%d1];\n"), "race"},
      {"global memory: mbarrier",
       init_barrier(0, 1) + kSyncCta + by_thread(0, "  st.global.u32 [%d1], 7;\n" + arrive(0)) +
           by_thread(32, wait_barrier(0, 0) + "  ld.global.u32 %r1, [%d1];\n"),
       "clean"},
      {"global memory: relaxed flag",
       global_message(line("st.relaxed.cta.global.u32 " + flag + ", 1"),
                      spin("ld.relaxed.cta.global.u32 %r9, " + flag)),
       "race"},
      {"global memory: flag with fences",
       global_message(kFence + line("st.relaxed.cta.global.u32 " + flag + ", 1"),
                      spin("ld.relaxed.cta.global.u32 %r9, " + flag) + kFence),
       "clean"},
      {"global memory: release and acquire",
       global_message(line("st.release.cta.global.u32 " + flag + ", 1"),
                      spin("ld.acquire.cta.global.u32 %r9, " + flag)),
       "clean"},
      {"global memory: atomics", line("atom.global.add.u32 %r1, [%d1], 1"), "clean"},

      {"ctas: two write one word", by_thread(0, "  st.global.u32 [%d1], 7;\n"),
       "two CTAs write the same global memory", 2},
      {"ctas: each its own word",
       line("mov.u32 %r5, %ctaid.x") + line("mul.wide.u32 %d4, %r5, 4") + line("add.s64 %d4, %d4, %d1") +
           by_thread(0, "  st.global.u32 [%d4], 7;\n"),
       "clean", 2},
      {"ctas: atomics on one word", line("atom.global.add.u32 %r1, [%d1], 1"), "clean", 2},
      {"ctas: atomics of cta scope", line("atom.relaxed.cta.global.add.u32 %r1, [%d1], 1"), "race", 2},
      {"ctas: release and acquire at gpu scope",
       between_ctas(line("st.release.gpu.global.u32 " + flag + ", 1"),
                    spin("ld.acquire.gpu.global.u32 %r9, " + flag)),
       "clean", 2},
      {"ctas: release at cta scope",
       between_ctas(line("st.release.cta.global.u32 " + flag + ", 1"),
                    spin("ld.acquire.gpu.global.u32 %r9, " + flag)),
       "race", 2},
      {"ctas: relaxed without fences",
       between_ctas(line("atom.relaxed.gpu.global.exch.b32 %r2, " + flag + ", 1"),
                    spin("ld.relaxed.gpu.global.u32 %r9, " + flag)),
       "race", 2},
      {"ctas: relaxed with gpu fences",
       between_ctas("  fence.acq_rel.gpu;\n" + line("atom.relaxed.gpu.global.exch.b32 %r2, " + flag + ", 1"),
                    spin("ld.relaxed.gpu.global.u32 %r9, " + flag) + "  fence.acq_rel.gpu;\n"),
       "clean", 2},
      {"ctas: relaxed with cta fences",
       between_ctas(kFence + line("atom.relaxed.gpu.global.exch.b32 %r2, " + flag + ", 1"),
                    spin("ld.relaxed.gpu.global.u32 %r9, " + flag) + kFence),
       "race", 2},
      {"ctas: a barrier before the releasing thread's fence",
       line("mov.u32 %r5, %ctaid.x") +
           only("%r5, 0",
                by_thread(64, line("st.global.u32 [%d1], 7")) + kSyncCta +
                    by_thread(0, "  fence.acq_rel.gpu;\n" +
                                     line("atom.relaxed.gpu.global.exch.b32 %r2, " + flag + ", 1"))) +
           only("%r5, 1", by_thread(0, spin("ld.acquire.gpu.global.u32 %r9, " + flag)) + kSyncCta +
                              by_thread(96, line("ld.global.u32 %r1, [%d1]"))),
       "clean", 2},

      {"unwritten word: a selection drops it",
       unwritten + line("max.s32 %r1, %r1, 3") + line("selp.b32 %r2, 5, %r1, %p5") + give, "clean"},
      {"unwritten word: a predicate of it is overruled",
       unwritten + line("setp.lt.s32 %p6, %r1, 3") + line("or.pred %p6, %p5, %p6") + line("mov.b32 %r2, 0") +
           line("@%p6 add.u32 %r2, %r2, 1") + give,
       "clean"},
      {"unwritten word: through shared memory, then dropped",
       unwritten + line("st.shared.u32 [%r4+1024], %r1") + line("ld.shared.u32 %r3, [%r4+1024]") +
           line("and.b32 %r2, %r3, 0") + give,
       "clean"},
      {"unwritten word: stored to global memory", unwritten + line("add.u32 %r2, %r1, 1") + give, "poison"},
      {"unwritten word: of another lane",
       unwritten + line("shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1") + give, "poison"},
      {"unwritten word: an address",
       unwritten + line("and.b32 %r1, %r1, 4") + line("add.u32 %r4, %r4, %r1") + line("st.shared.u32 [%r4+1024], 1"),
       "poison"},
      {"unwritten word: decides a branch",
       unwritten + line("setp.lt.s32 %p6, %r1, 3") + line("@%p6 exit"), "poison"},
      {"unwritten word: an atomic", line("atom.shared.add.u32 %r1, [smem+64], 1"), "poison"},
  };
}

}  // namespace fa4::sim::test
