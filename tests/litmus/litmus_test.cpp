// SPDX-License-Identifier: Apache-2.0
// Runs every litmus program under the checker, with nominal and with adversarial timing, and compares the
// verdict.
#include <cuda.h>

#include <set>

#include "tiles.h"
#include "support/catch.h"
#include "support/record.h"
#include "tools/sim/check/collector.h"
#include "tools/sim/core/tensor_map.h"

using namespace fa4::sim;
using namespace fa4::sim::test;

namespace {

constexpr uint64_t kSeeds = 8;

std::string fault_name(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::illegal_instruction:
      return "illegal instruction";
    case Fault::Kind::illegal_address:
      return "illegal address";
    case Fault::Kind::misaligned_address:
      return "misaligned address";
    case Fault::Kind::trap:
      return "trap";
    case Fault::Kind::assertion:
      return "assertion";
    case Fault::Kind::poison:
      return "poison";
    case Fault::Kind::deadlock:
      return "deadlock";
    case Fault::Kind::budget:
      return "budget";
    case Fault::Kind::bad_launch:
      return "bad launch";
    case Fault::Kind::no_cta:
      return "no such CTA";
  }
  return {};
}

struct Outcome {
  std::string verdict, report;
  uint32_t axioms = 0;
  size_t findings = 0;
};

Outcome watch(const Litmus& test, uint64_t seed, Model model = Model::isa) {
  std::string ptx =
      entry_of(".param .u64 out, .param .u64 from, .param .align 64 .b8 map[128]",
               prologue() + "  ld.param.u64 %d1, [from];\n  mov.b64 %d2, map;\n  cvta.param.u64 %d2, %d2;\n" +
                   test.body + "  ret;\n",
               test.threads);
  ptx.replace(ptx.find("sm_100a"), 7, test.target);
  ptx += ".file 1 \"kernel.cu\"\n";
  Kernel kernel(ptx, 1, 4, 200000);
  const uint64_t out = kernel.buffer<uint32_t>(16384), from = kernel.buffer<uint32_t>(16384);
  CUtensorMap map;
  const cuuint64_t extents[2] = {64, 512}, strides[1] = {128};
  const cuuint32_t box[2] = {64, 8}, ones[2] = {1, 1};
  REQUIRE(encode_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, reinterpret_cast<void*>(out), extents,
                       strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                       CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  Collector collector;
  kernel.device().set_observers([&](uint32_t slot) { return collector.observer(slot); });
  kernel.device().set_adversarial(seed);
  kernel.device().set_model(model);
  Outcome outcome;
  std::string fault;
  try {
    kernel.run("kernel", {{test.ctas, 1, 1}, {test.threads, 1, 1}, 65536, {test.cluster, test.cluster ? 1u : 0u, test.cluster ? 1u : 0u}}, out, from, map);
  } catch (const Fault& f) {
    fault = fault_name(f.kind);
    outcome.report = f.what();
  }
  std::set<std::string> kinds;
  for (const Finding& f : collector.take()) {
    kinds.insert(kind_name(f.kind));
    if (seed == 0)
      fa4::support::record("litmus: " + test.name + ": " + kind_name(f.kind) + " on " + f.memory + ": " +
                           fa4::support::actor(f.first) + "; " + fa4::support::actor(f.second));
    outcome.report += describe(f);
    ++outcome.findings;
  }
  outcome.axioms = collector.axioms();
  for (const std::string& kind : kinds) outcome.verdict += (outcome.verdict.empty() ? "" : " + ") + kind;
  if (!fault.empty()) outcome.verdict += (outcome.verdict.empty() ? "" : " + ") + fault;
  if (outcome.verdict.empty()) outcome.verdict = "clean";
  if (seed == 0) fa4::support::record("litmus: " + test.name + ": " + outcome.verdict);
  return outcome;
}

void check_all(const std::vector<Litmus>& table) {
  const std::string rules = read_text(ORDERING_DOCUMENT);
  for (const Litmus& test : table) {
    INFO(test.name << "\n" << test.body);
    CHECK((rules.find("| " + test.name + " | " + test.verdict + " |") !=
           std::string::npos));  // a row of docs/ordering.md
    for (uint64_t seed = 0; seed <= kSeeds; ++seed) {
      const Outcome outcome = watch(test, seed);
      INFO("seed " << seed << ": " << outcome.verdict << "\n" << outcome.report);
      if (seed == 0)
        CHECK(outcome.verdict == test.verdict);
      else
        CHECK((outcome.verdict == "clean") == (test.verdict == "clean"));
    }
  }
}

}  // namespace

TEST_CASE("litmus: threads") {
  check_all(thread_litmus());
}
TEST_CASE("litmus: proxies") {
  check_all(proxy_litmus());
}
TEST_CASE("litmus: mbarriers") {
  check_all(mbarrier_litmus());
}
TEST_CASE("litmus: tensor memory") {
  check_all(tcgen05_litmus());
}
TEST_CASE("litmus: wgmma") {
  check_all(wgmma_litmus());
}
TEST_CASE("litmus: cp.async") {
  check_all(thread_copy_litmus());
}

TEST_CASE("litmus: clusters") {
  check_all(cluster_litmus());
}

// Where hardware may be relied on too, verdicts are those of docs/ordering.md's table of differences, and else the same.
TEST_CASE("litmus: what hardware does beside") {
  const std::string rules = read_text(ORDERING_DOCUMENT);
  for (const auto& table : {thread_litmus, proxy_litmus, mbarrier_litmus, tcgen05_litmus, wgmma_litmus, thread_copy_litmus, cluster_litmus}) {
    for (const Litmus& test : table()) {
      const std::string row = "| " + test.name + " | " + test.verdict + " | ";
      const size_t at = rules.find(row), end = rules.find(" |", at + row.size());
      const std::string expected = at == std::string::npos ? test.verdict : rules.substr(at + row.size(), end - at - row.size());
      INFO(test.name << "\n" << test.body);
      for (uint64_t seed = 0; seed <= kSeeds; ++seed) {
        const Outcome outcome = watch(test, seed, Model::silicon);
        INFO("seed " << seed << "\n" << outcome.report);
        if (seed == 0 || expected != test.verdict)
          CHECK(outcome.verdict == expected);
        else
          CHECK((outcome.verdict == "clean") == (expected == "clean"));
      }
    }
  }
}

TEST_CASE("a verdict says which axioms it rests on") {
  const auto axioms = [](const std::string& name, Model model = Model::isa) {
    for (const Litmus& test : tcgen05_litmus()) {
      if (test.name != name) continue;
      const Outcome outcome = watch(test, 0, model);
      return outcome.verdict == "clean" ? std::to_string(outcome.axioms) : outcome.verdict;
    }
    return "no litmus program " + name;
  };
  const std::string none = "0", order = std::to_string(FA4SIM_AXIOM_MMA_ORDER),
                    delivery = std::to_string(FA4SIM_AXIOM_LOAD_DELIVERY),
                    fences = std::to_string(FA4SIM_AXIOM_TENSOR_FENCES);
  CHECK(axioms("mma after mma: the same accumulator") == none);
  CHECK(axioms("mma after mma: another accumulator") == order);
  CHECK(axioms("mma after mma: another thread, ordered") == order);
  // What silicon lets through, and what it does not.
  CHECK(axioms("mma to ld: no fence::after", Model::silicon) == fences);
  CHECK(axioms("st to mma: no fence::before", Model::silicon) == fences);
  CHECK(axioms("ld to mma: no wait::ld", Model::silicon) == "race");
  CHECK(axioms("ld to mma: used before the arrival, no wait::ld") == "poison");
  CHECK(axioms("ld to mma: used before the arrival, no wait::ld", Model::silicon) == delivery);
  CHECK(axioms("st to mma: no wait::st", Model::silicon) == "poison");
  CHECK(axioms("ld to mma: the whole chain", Model::silicon) == none);
}

TEST_CASE("a deviation is told once for its place in the source") {
  const auto findings = [](const std::string& first_line, const std::string& second_line) {
    const auto store = [](const std::string& source_line, uint32_t column) {
      return ".loc 1 " + source_line + " 0\n" + line("tcgen05.st.sync.aligned.32x32b.x1.b32 [%r20+" + std::to_string(column) + "], {%v0}");
    };
    const Outcome outcome = watch({"", tile_setup() + store(first_line, 0) + store(second_line, 1) + ".loc 1 90 0\n" + kLoadD +
                                       line("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v2}, [%r20+1]") + kWaitLoad + free_tmem(64), ""},
                                  0, Model::silicon);
    INFO(outcome.report);
    CHECK(outcome.verdict == "tcgen05.st handed over without wait::st");
    CHECK(outcome.report.find("warning: ") == 0);
    return outcome.findings;
  };
  CHECK(findings("10", "10") == 1);
  CHECK(findings("10", "11") == 2);
}

TEST_CASE("both writers of one global word are named") {
  for (const Litmus& test : thread_litmus()) {
    if (test.name != "ctas: two write one word") continue;
    const std::string report = watch(test, 0).report;
    INFO(report);
    for (const char* part : {"first   CTA 0, warp 0", "then    CTA 1, warp 0", "write at", "PTX line",
                             "st.global", "-byte allocation"}) {
      CHECK(report.find(part) != std::string::npos);
    }
  }
}
