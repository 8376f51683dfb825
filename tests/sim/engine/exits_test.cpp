// SPDX-License-Identifier: Apache-2.0
// Lanes that exit while others of their warp go on: whoever waits for them waits for those that have not
// exited (PTX ISA 9.7.12.7, 9.7.13.1 to 9.7.13.3). With nominal timing, with seeds, and with lanes that
// nothing brings together.
#include "faults.h"

using namespace fa4::sim;
using namespace fa4::sim::test;
using Kind = Fault::Kind;

namespace {

constexpr uint32_t kUntouched = 0xDEADBEEF;

// %d9: the thread's word of `out`; %r31: the address of its word of shared memory; %lane.
const std::string kOwn = R"(
  .reg .b32 %lane;
  and.b32 %lane, %tid32, 31;
  mul.wide.u32 %d9, %tid32, 4;
  add.s64 %d9, %d9, %out;
  mov.u32 %r30, smem;
  shl.b32 %r31, %tid32, 2;
  add.u32 %r31, %r31, %r30;
)";

std::string text_of(const std::string& body) {
  return entry_of(".param .u64 out", prologue() + kOwn + body + "  ret;\n", 128);
}

// The words of the threads of all CTAs are `expected`, one by one, however lanes and warps are timed.
void always(const std::string& body, const std::vector<uint32_t>& expected, uint32_t ctas = 1,
            uint32_t cluster = 0) {
  Kernel kernel(text_of(body));
  const uint64_t out = kernel.buffer<uint32_t>(expected.size());
  const uint32_t threads = uint32_t(expected.size()) / ctas;
  INFO(body);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<uint32_t> fill(expected.size(), kUntouched);
    std::memcpy(kernel.device().memory().at(out, fill.size() * 4), fill.data(), fill.size() * 4);
    kernel.device().set_adversarial(seed, seed % 2 == 1);
    INFO("seed " << seed);
    REQUIRE_NOTHROW(kernel.run(
        "kernel", {{ctas, 1, 1}, {threads, 1, 1}, 4096, {cluster, cluster ? 1u : 0u, cluster ? 1u : 0u}},
        out));
    CHECK(kernel.read<uint32_t>(out, expected.size()) == expected);
  }
}

std::string faults(const std::string& body, Kind kind, const std::vector<std::string>& says) {
  Kernel kernel(text_of(body));
  const uint64_t out = kernel.buffer<uint32_t>(128);
  return fault_of(kernel, {{1, 1, 1}, {64, 1, 1}, 4096}, kind, says, out);
}

// Threads from `first` on leave, at once or late; the others do `text`.
enum class Leave { first, last, late, by_another_way };
std::string leave(uint32_t first, Leave how, const std::string& text) {
  const std::string n = std::to_string(first), away = "  setp.ge.u32 %p2, %tid32, " + n + ";\n",
                    stays = "  setp.lt.u32 %p2, %tid32, " + n + ";\n";
  switch (how) {
    case Leave::first:
      return away + "  @%p2 bra GONE;\n" + text + "GONE:\n";
    case Leave::last:
      return stays + "  @%p2 bra STAY;\n  ret;\nSTAY:\n" + text;
    case Leave::late:
      return stays + "  @%p2 bra STAY;\n  nanosleep.u32 100000;\n  bra GONE;\nSTAY:\n" + text + "GONE:\n";
    default:
      return stays + "  @!%p2 bra AWAY;\n" + text + "  ret;\nAWAY:\n  nanosleep.u32 100000;\n";
  }
}
constexpr Leave kEveryWay[] = {Leave::first, Leave::last, Leave::late, Leave::by_another_way};

// Each thread gives its number to its neighbour.
std::string exchange(const std::string& barrier) {
  return "  st.shared.u32 [%r31], %tid32;\n" + barrier +
         "  xor.b32 %r32, %r31, 4;\n  ld.shared.u32 %r1, [%r32];\n  st.global.u32 [%d9], %r1;\n";
}
std::vector<uint32_t> exchanged(uint32_t threads, uint32_t staying) {
  std::vector<uint32_t> words(threads, kUntouched);
  for (uint32_t i = 0; i < staying; ++i) words[i] = i ^ 1;
  return words;
}

}  // namespace

TEST_CASE("barriers of the CTA wait for the threads that have not exited") {
  for (Leave how : kEveryWay) {
    for (uint32_t staying : {2u, 36u, 62u, 64u}) {
      for (const char* barrier : {"bar.sync 0", "barrier.sync 3", "barrier.cta.sync.aligned 0"}) {
        always(leave(staying, how, exchange("  " + std::string(barrier) + ";\n")), exchanged(64, staying));
      }
    }
    // A count is in units of warps, and a warp has arrived when those of its threads have that have not
    // exited.
    for (const char* barrier : {"bar.sync 1, 64", "barrier.sync 1, 64"}) {
      always(leave(36, how, exchange("  " + std::string(barrier) + ";\n")), exchanged(64, 36));
    }
  }
}

TEST_CASE("arrivals and reductions of warps that some threads have left") {
  for (Leave how : kEveryWay) {
    for (const char* form : {"bar.", "barrier."}) {
      const std::string f = form;
      always(
          leave(36, how,
                "  @!%p1 bra SECOND;\n" + exchange("  " + f + "sync 1, 64;\n") + "  bra GONE2;\nSECOND:\n" +
                    exchange("  " + f + "arrive 1, 64;\n  bar.warp.sync 0xffffffff;\n") + "GONE2:\n"),
          exchanged(64, 36));
      std::vector<uint32_t> counts(64, kUntouched);
      std::fill_n(counts.begin(), 36, 35);
      always(leave(36, how,
                   "  setp.ne.u32 %p3, %tid32, 7;\n  " + f +
                       "red.popc.u32 %r1, 0, %p3;\n  st.global.u32 [%d9], %r1;\n"),
             counts);
      std::fill_n(counts.begin(), 36, 1);
      always(
          leave(
              36, how,
              "  setp.lt.u32 %p3, %tid32, 36;\n  " + f +
                  "red.and.pred %p4, 2, 64, %p3;\n  selp.u32 %r1, 1, 0, %p4;\n  st.global.u32 [%d9], %r1;\n"),
          counts);
    }
  }
}

TEST_CASE("without .aligned the lanes of a warp come to a barrier by several ways, and some never") {
  std::vector<uint32_t> expected = exchanged(64, 64);
  for (uint32_t i = 16; i < 32; ++i) expected[i] = kUntouched;
  always(
      "  setp.lt.u32 %p2, %lane, 8;\n  @%p2 bra LOW;\n  setp.lt.u32 %p2, %tid32, 16;\n  @%p2 bra MIDDLE;\n  "
      "setp.lt.u32 %p2, %tid32, 32;\n"
      "  @%p2 bra GONE;\n" +
          exchange("  barrier.sync 1;\n") + "  ret;\nLOW:\n" + exchange("  barrier.sync 1, 64;\n") +
          "  ret;\nMIDDLE:\n" + exchange("  barrier.sync 1, 64;\n") +
          "  ret;\nGONE:\n  nanosleep.u32 50000;\n",
      expected);
  // The guard of an arrival: lanes whose guard is false go on, and exit.
  std::vector<uint32_t> given(64, kUntouched);
  for (uint32_t i = 32; i < 64; ++i) given[i] = i - 32;
  for (uint32_t i = 32 + 20; i < 64; ++i) given[i] = 99;
  always(
      "  @!%p1 bra READ;\n  st.shared.u32 [%r31], 99;\n  bar.warp.sync 0xffffffff;\n  setp.lt.u32 %p3, "
      "%tid32, 20;\n"
      "  @%p3 st.shared.u32 [%r31], %tid32;\n  bar.warp.sync 0xffffffff;\n  @%p3 barrier.arrive 1, 64;\n  "
      "ret;\nREAD:\n"
      "  barrier.sync 1, 64;\n  ld.shared.u32 %r1, [%r31+-128];\n  st.global.u32 [%d9], %r1;\n",
      given);
}

TEST_CASE("lanes that leave through a place where they would meet the others") {
  // A compiler that finds the same store at both ends makes one of it, in front of the exit.
  std::vector<uint32_t> expected = exchanged(64, 36);
  for (uint32_t i = 36; i < 64; ++i) expected[i] = 5;
  const std::string work =
      "  st.shared.u32 [%r31], %tid32;\n  bar.sync 0;\n  xor.b32 %r32, %r31, 4;\n  ld.shared.u32 %r1, "
      "[%r32];\n";
  always("  mov.u32 %r1, 5;\n  setp.ge.u32 %p2, %tid32, 36;\n  @%p2 bra END;\n" + work +
             "END:\n  st.global.u32 [%d9], %r1;\n",
         expected);
  // Within a branch of which only a part leaves; two barriers follow.
  std::vector<uint32_t> some(64, kUntouched);
  for (uint32_t i = 0; i < 64; ++i) {
    if (i % 4 != 1) some[i] = (i ^ 4) + (i % 4 == 0 ? 99 : 0);
  }
  always(
      "  st.shared.u32 [%r31], %tid32;\n  and.b32 %r3, %tid32, 1;\n  setp.eq.u32 %p2, %r3, 0;\n  @%p2 bra "
      "ALL;\n"
      "  and.b32 %r3, %tid32, 2;\n  setp.eq.u32 %p2, %r3, 0;\n  @%p2 bra END;\n  nanosleep.u32 "
      "20000;\nALL:\n  bar.sync 0;\n"
      "  xor.b32 %r32, %r31, 16;\n  ld.shared.u32 %r1, [%r32];\n  bar.sync 0;\n"
      "  and.b32 %r3, %tid32, 3;\n  setp.eq.u32 %p2, %r3, 0;\n  @%p2 add.u32 %r1, %r1, 99;\n  st.global.u32 "
      "[%d9], %r1;\nEND:\n",
      some);
}

TEST_CASE("member masks name lanes that exit") {
  const auto four = [](uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    std::vector<uint32_t> words(32, kUntouched);
    words[0] = a, words[1] = b, words[2] = c, words[3] = d;
    return words;
  };
  for (Leave how : kEveryWay) {
    const auto gives = [&](const std::string& instruction, const std::vector<uint32_t>& words,
                           const std::string& result = "%r1") {
      always(leave(4, how,
                   "  setp.ne.u32 %p3, %tid32, 2;\n  " + instruction + ";\n  st.global.u32 [%d9], " + result +
                       ";\n"),
             words);
    };
    const std::string predicate = ";\n  selp.u32 %r1, 1, 0, %p4";
    gives("bar.warp.sync 0xffffffff", four(0, 1, 2, 3), "%tid32");
    gives("shfl.sync.bfly.b32 %r1, %tid32, 1, 31, 0xffffffff", four(1, 0, 3, 2));
    gives("vote.sync.ballot.b32 %r1, %p3, 0xffffffff", four(11, 11, 11, 11));
    gives("vote.sync.all.pred %p4, %p3, 0xffffffff" + predicate, four(0, 0, 0, 0));
    gives("vote.sync.any.pred %p4, %p3, 0xffffffff" + predicate, four(1, 1, 1, 1));
    gives("match.any.sync.b32 %r1, 7, 0xffffffff", four(15, 15, 15, 15));
    gives("redux.sync.add.u32 %r1, %tid32, 0xffffffff", four(6, 6, 6, 6));
    gives("elect.sync %r1|%p4, 0xffffffff", four(0, 0, 0, 0));
  }
}

TEST_CASE("barriers of a cluster wait for the threads that have not exited") {
  // Two CTAs, 36 of 64 threads of each stay; each of these gives its number to the other CTA's.
  std::vector<uint32_t> expected(128, kUntouched);
  for (uint32_t i = 0; i < 36; ++i) expected[i] = i + 100, expected[64 + i] = i;
  for (Leave how : kEveryWay) {
    for (const char* aligned : {"", ".aligned"}) {
      const std::string sync =
          "  barrier.cluster.arrive" + std::string(aligned) + ";\n  barrier.cluster.wait" + aligned + ";\n";
      always("  mov.u32 %r20, %cluster_ctarank;\n" +
                 leave(36, how,
                       "  mad.lo.u32 %r1, %r20, 100, %tid32;\n  st.shared.u32 [%r31], %r1;\n" + sync +
                           "  xor.b32 %r21, %r20, 1;\n  mapa.shared::cluster.u32 %r32, %r31, %r21;\n  "
                           "ld.shared::cluster.u32 %r1, [%r32];\n"
                           "  mul.wide.u32 %d8, %r20, 256;\n  add.s64 %d9, %d9, %d8;\n  st.global.u32 [%d9], "
                           "%r1;\n" +
                           sync),
             expected, 2, 2);
    }
  }
}

TEST_CASE("exits that help nobody") {
  // A count that is given stays as it is when a warp has exited.
  CHECK(faults(leave(32, Leave::late, "  bar.sync 1, 64;\n"), Kind::deadlock,
               {"waits at barrier 1: 32 of 64 threads came", "warp 1: has exited"}) == "");
  // The lanes that are missing are at another barrier, or at the end of a loop in front of one.
  CHECK(faults(
            "  setp.lt.u32 %p2, %lane, 4;\n  @%p2 bra OTHER;\n  bar.sync 0;\n  ret;\nOTHER:\n  bar.sync 0;\n",
            Kind::illegal_instruction,
            {"only lanes 0xf", "of 0xffffffff are here, lanes 0xf", "at PTX line"}) == "");
  CHECK(faults("  mov.u32 %r1, 0;\nAGAIN:\n  bar.sync 0;\n  add.u32 %r1, %r1, 1;\n  setp.le.u32 %p2, %r1, "
               "%lane;\n  @%p2 bra AGAIN;\n  bar.sync 1;\n",
               Kind::illegal_instruction, {"only lanes", "are here"}) == "");
  CHECK(faults("  setp.lt.u32 %p2, %lane, 4;\n  @%p2 bra OTHER;\n  bar.warp.sync 0xffffffff;\n  "
               "ret;\nOTHER:\n  bar.sync 0;\n",
               Kind::illegal_instruction,
               {"only lanes 0xf of 0xffffffff are here, lanes 0xfffffff0 at"}) == "");
  // Masks that name the same lanes, but for some that have exited, are not the same mask.
  CHECK(faults(leave(4, Leave::first,
                     "  setp.lt.u32 %p2, %tid32, 2;\n  @%p2 bra LOW;\n  bar.warp.sync 0xf;\n  ret;\nLOW:\n  "
                     "bar.warp.sync 0xffffffff;\n"),
               Kind::deadlock, {"waits for lanes 0x0000000f of its warp"}) == "");
  // What is no barrier needs all lanes (9.7.14.5.15, 9.7.16.7.1), before and after the others have exited.
  for (Leave how : kEveryWay) {
    CHECK(faults("  st.shared.u32 [%r31], 0;\n" +
                     leave(36, how,
                           "  setp.ge.u32 %p3, %tid32, 32;\n  @!%p3 bra GONE2;\n  "
                           "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r31];\nGONE2:\n"),
                 Kind::illegal_instruction,
                 {"ldmatrix", "needs all lanes of the warp; lanes 0xfffffff0 have exited"}) == "");
    CHECK(faults(leave(4, how, "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [smem], 32;\n"),
                 Kind::illegal_instruction, {"tcgen05.alloc", "have exited"}) == "");
  }
  // A lane that has exited has no value to give.
  CHECK(faults(leave(4, Leave::late,
                     "  shfl.sync.bfly.b32 %r1, %tid32, 4, 31, 0xffffffff;\n  st.global.u32 [%d9], %r1;\n"),
               Kind::illegal_instruction, {"shfl.sync", "lane 0 reads lane 4", "has exited"}) == "");
}
