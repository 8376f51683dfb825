// SPDX-License-Identifier: Apache-2.0
// The conformance rows on the simulated GPU against the recorded answers of a real one, the driver's answers
// to bad arguments, what is refused at load, and the table of support, which must say what is the case.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include "support/catch.h"
#include "support/half.h"
#include "tools/conformance/driver_rows.h"
#include "tools/conformance/harness.h"
#include "tools/conformance/isolated.h"
#include "tools/conformance/support_table.h"
#include "tools/sim/core/builder.h"

using namespace fa4::conformance;

namespace {

struct Outcome {
  Answer answer;
  Standing standing;
  std::string difference;
};

// All rows on simulated GPUs, a Hopper or a Blackwell, once for all tests.
const std::vector<Outcome>& outcomes() {
  static const std::vector<Outcome> list = [] {
    std::vector<const Row*> rows;
    for (const Row& row : all_rows()) rows.push_back(&row);
    std::vector<Outcome> result;
    run_rows_simulated(FA4SIM_LIBRARY, rows, [&](const Row& row, const Answer& answer) {
      Outcome o{answer, Standing::documents_only, ""};
      const auto recorded = recorded_h200().rows.find(row.name);
      if (recorded != recorded_h200().rows.end()) {
        o.difference = difference(row, recorded->second, answer, "recorded", "simulated");
        o.standing = o.difference.empty() ? Standing::equal : Standing::different;
      } else if (answer.status != 0) {
        o.difference = answer.failure;
        o.standing = Standing::different;
      }
      if (answer.status == CUDA_ERROR_INVALID_PTX) o.standing = Standing::refused;
      result.push_back(std::move(o));
    });
    return result;
  }();
  return list;
}

}  // namespace

TEST_CASE("rows are equal to the recorded answers, or listed with their reason", "[rows][equal]") {
  const std::vector<Row>& rows = all_rows();
  REQUIRE(outcomes().size() == rows.size());
  size_t wrong = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Outcome& o = outcomes()[i];
    // One try_wait, whose time limit may pass whenever adversarial timing likes.
    if (std::getenv("FA4SIM_SEED") && rows[i].name.find("a time limit") != std::string::npos) continue;
    const bool differs = o.standing == Standing::different || o.standing == Standing::refused;
    const bool listed = !known_difference(rows[i]).empty();
    if (differs == listed) continue;
    ++wrong;
    UNSCOPED_INFO(rows[i].name << (listed ? ": listed as different, but it is equal" : ": " + o.difference)
                               << "\n  believed: " << rows[i].belief << " (PTX ISA " << rows[i].section
                               << ")");
  }
  CHECK(wrong == 0);
}

// The rows only say that two devices agree; this says that what they agree on is attention.
TEST_CASE("attention of one tile is attention", "[rows]") {
  size_t checked = 0;
  for (size_t i = 0; i < all_rows().size(); ++i) {
    const Row& row = all_rows()[i];
    if (row.entry != "attention_f16") continue;
    ++checked;
    const std::vector<std::byte> input = input_of(row);
    const auto element = [](const std::vector<std::byte>& bytes, uint32_t r, uint32_t c) {
      uint16_t bits;
      std::memcpy(&bits, bytes.data() + (r * 64 + c) * 2, 2);
      return double(fa4::support::fp16_to_float(bits));
    };
    float scale;
    std::memcpy(&scale, &row.words[3], sizeof scale);
    double worst = 0;
    uint32_t off = 0;
    for (uint32_t q = 0; q < 64; ++q) {
      std::vector<double> score;
      for (uint32_t k = 0; k < row.words[1]; ++k) {
        if (row.words[2] != 0x7FFFFFFF && int32_t(k) > int32_t(row.words[2] + q)) continue;
        double s = 0;
        for (uint32_t c = 0; c < 64; ++c)
          s += element(input, q, c) * element(input, 64 + k / 64 * 128 + k % 64, c);
        score.push_back(s * scale);  // masked keys come last
      }
      const double highest = score.empty() ? 0 : *std::max_element(score.begin(), score.end());
      double sum = 0;
      for (double& s : score) sum += s = std::exp2(s - highest);
      for (uint32_t c = 0; c < 64; ++c) {
        double o = 0;
        for (uint32_t k = 0; k < score.size(); ++k)
          o += score[k] * element(input, 128 + k / 64 * 128 + k % 64, c);
        const double error =
            std::fabs((sum == 0 ? 0 : o / sum) - element(outcomes()[i].answer.output, q, c));
        worst = std::max(worst, error);  // drops a NaN, which counts below
        off += !(error < 0.01);          // weights and results are rounded to 11 bits, values are below 8
      }
    }
    INFO(row.name << ": off by " << worst);
    CHECK(off == 0);
  }
  CHECK(checked == 15);
}

TEST_CASE("every row for a Hopper has a recorded answer", "[rows]") {
  size_t missing = 0;
  for (const Row& row : all_rows()) {
    if (!runs_on(row, 9) || recorded_h200().rows.contains(row.name)) continue;
    ++missing;
    UNSCOPED_INFO("no recorded answer: " << row.name);
  }
  CHECK(missing == 0);
  std::set<std::string> names;
  for (const Row& row : all_rows()) names.insert(row.name);
  for (const auto& [name, record] : recorded_h200().rows) {
    INFO("recorded, but no row: " << name);
    CHECK(names.contains(name));
  }
}

// Kernels whose hand-overs are right, so that the checker has nothing to say.
TEST_CASE("rows about clusters are clean under the checker", "[checked]") {
  std::vector<const Row*> rows;
  for (const Row& row : all_rows()) {
    if (row.cluster[0]) rows.push_back(&row);
  }
  REQUIRE(rows.size() > 100);
  struct Checked : Worker {
    explicit Checked(const std::vector<const Row*>& list) : rows(list) { gpu.simulator().check(1); }
    std::string work(size_t job, bool*) override {
      Runner runner(gpu);
      const Answer answer = runner.run(*rows[job]);
      fa4sim_finding finding;
      std::string text = answer.failure;
      while (gpu.simulator().take_findings(&finding, 1) == 1)
        text += std::string(finding.kind) + " on " + finding.memory + "\n  " + finding.first + "\n  " + finding.second + "\n";
      return text;
    }
    const std::vector<const Row*>& rows;
    fa4::support::Gpu gpu{FA4SIM_LIBRARY, 0};
  };
  run_isolated(
      rows.size(), 60, [&] { return std::make_unique<Checked>(rows); },
      [&](size_t job, const JobEnd& end) {
        INFO(rows[job]->name);
        CHECK(end.result == "");
      });
}

TEST_CASE("every simulated GPU takes the kernels of the rows that it has", "[gpus]") {
  for (const auto& [gpu, number] : {std::pair("sm_90", 90), std::pair("sm_100", 100), std::pair("sm_103", 103)}) {
    std::vector<const Row*> rows;
    for (const Row& row : all_rows()) {
      if (runs_on(row, number / 10) && known_difference(row).empty()) rows.push_back(&row);
    }
    struct Taker : Worker {
      explicit Taker(const std::vector<const Row*>& list) : rows(list) {}
      std::string work(size_t job, bool*) override {
        const Row& row = *rows[job];
        const auto& p = gpu.properties();
        std::string text = module_for(row, p.major, p.minor);
        CUfunction function = nullptr;
        if (text != loaded) {
          if (module) gpu.driver().cuModuleUnload(module);
          if (gpu.driver().cuModuleLoadData(&module, text.c_str()) != CUDA_SUCCESS) return gpu.simulator().last_error();
          loaded = std::move(text);
        }
        if (gpu.driver().cuModuleGetFunction(&function, module, row.entry.c_str()) != CUDA_SUCCESS) return gpu.simulator().last_error();
        return std::to_string(10 * p.major + p.minor);
      }
      const std::vector<const Row*>& rows;
      std::string loaded;
      CUmodule module = nullptr;
      fa4::support::Gpu gpu{FA4SIM_LIBRARY, 0};
    };
    size_t wrong = 0;
    run_isolated(
        rows.size(), 60,
        [&, name = gpu] {
          choose_gpu({FA4SIM_LIBRARY, 0, name});
          return std::make_unique<Taker>(rows);
        },
        [&, expected = std::to_string(number)](size_t job, const JobEnd& end) {
          if (end.result == expected) return;
          ++wrong;
          UNSCOPED_INFO(rows[job]->name << ": " << end.result);
        });
    INFO(gpu);
    CHECK(wrong == 0);
  }
}

TEST_CASE("every row says what it believes and where it is written", "[rows]") {
  for (const Row& row : all_rows()) {
    INFO(row.name);
    CHECK((!row.belief.empty() && !row.section.empty() && !row.family.empty()));
  }
}

TEST_CASE("the driver's answers to bad arguments are the recorded ones", "[calls]") {
  run_driver_rows({FA4SIM_LIBRARY, 0, "sm_90"}, [&](const DriverRow& row, int result) {
    const auto recorded = recorded_h200().calls.find(row.name);
    INFO(row.name);
    REQUIRE(recorded != recorded_h200().calls.end());
    if (row.stricter.empty())
      CHECK(result == recorded->second);
    else
      CHECK(result != recorded->second);
  });
}

TEST_CASE("what is listed as refused is refused, with the line", "[refusals]") {
  struct Loader : Worker {
    std::string work(size_t job, bool*) override {
      const Refusal& r = refusals()[job];
      const std::string text = std::string(".version 9.0\n.target ") + "sm_100a" +
                               "\n.address_size 64\n.visible .entry k()\n{\n  .reg .b16 %h;\n  .reg .b32 %r, "
                               "%f;\n  .reg .b64 %d;\n  .reg .b128 %q;\n  " +
                               std::string(r.ptx) + "\n  ret;\n}\n";
      CUmodule module = nullptr;
      CUfunction function = nullptr;
      if (gpu.driver().cuModuleLoadData(&module, text.c_str()) != CUDA_SUCCESS) return "at load: " + std::string(gpu.simulator().last_error());
      const CUresult result = gpu.driver().cuModuleGetFunction(&function, module, "k");
      return std::to_string(int(result)) + " " + gpu.simulator().last_error();
    }
    fa4::support::Gpu gpu{FA4SIM_LIBRARY, 0};
  };
  run_isolated(
      refusals().size(), 60, [] { return std::make_unique<Loader>(); },
      [](size_t job, const JobEnd& end) {
        if (refusals()[job].ptx.empty()) return;
        INFO(refusals()[job].ptx << " -> " << end.result);
        CHECK(end.result.starts_with("218 "));
        CHECK(end.result.find("line 10") != std::string::npos);
      });
}

TEST_CASE("the table of support is current", "[table]") {
  std::vector<Standing> standings;
  for (const Outcome& o : outcomes()) standings.push_back(o.standing);
  const std::string text = support_table(recorded_h200(), standings, fa4::sim::known_opcodes());
  if (const char* target = std::getenv("FA4_WRITE_SUPPORT_TABLE")) std::ofstream(target) << text;
  std::ifstream file(FA4_SUPPORT_TABLE);
  const std::string there{std::istreambuf_iterator<char>(file), {}};
  INFO("docs/support.md is not what the rows say; `ninja support-table` writes it again");
  CHECK((there == text));
}

TEST_CASE("a process that ends takes its job with it, and the others go on", "[isolated]") {
  struct Fragile : Worker {
    std::string work(size_t job, bool* broken) override {
      if (job == 2) std::abort();
      if (job == 4) throw std::runtime_error("four");
      *broken = job == 1;
      return std::to_string(job * 10);
    }
  };
  std::vector<std::string> results;
  const auto run = [&](size_t count) {
    run_isolated(
        count, 60, [] { return std::make_unique<Fragile>(); },
        [&](size_t, const JobEnd& end) { results.push_back(end.ended_process ? "ended" : end.result); });
  };
  run(4);
  CHECK((results == std::vector<std::string>{"0", "10", "ended", "30"}));
  CHECK_THROWS_WITH(run(5), "four");
}
