// SPDX-License-Identifier: Apache-2.0
// The real kernel with one synchronisation taken away or changed at a time. Every mutant must be reported;
// none may come to an answer, right or wrong.
#include <functional>
#include <map>
#include <set>

#include "attention_kernel.h"
#include "support/catch.h"

using namespace fa4::sim;
using namespace fa4::sim::test;

namespace {

const std::vector<std::string>& kernel_lines() {
  static const std::vector<std::string> lines = attention_lines(read_text(ENGINE_KERNEL_PTX));
  return lines;
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// "" after an orderly end, otherwise the report.
std::string report_of(size_t at, const std::string& instead) {
  std::vector<std::string> lines = kernel_lines();
  lines[at] = instead;
  try {
    run_attention(text_of(lines));
  } catch (const Fault& fault) {
    return fault.what();
  }
  return {};
}

std::vector<size_t> lines_with(const std::string& part) {
  std::vector<size_t> found;
  for (size_t i = 0; i < kernel_lines().size(); ++i) {
    if (kernel_lines()[i].find(part) != std::string::npos) found.push_back(i);
  }
  return found;
}

using Change = std::function<std::string(const std::string& line)>;
std::string removed(const std::string&) {
  return {};
}

// The last operand replaced by a value computed from it.
Change last_operand(const std::string& opcode, const std::string& with) {
  return [=](const std::string& line) {
    const size_t comma = line.rfind(','), end = line.find(';', comma);
    return "{ .reg .b32 changed; " + opcode + " changed, " + line.substr(comma + 1, end - comma - 1) + ", " +
           with + "; " + line.substr(0, comma) + ", changed; }";
  };
}
std::string always_true(const std::string&) {
  return "setp.eq.u32 p, 0, 0;";
}

// All lines with `part`, changed one at a time, must be reported.
void every_one_is_reported(const std::string& part, const Change& change, size_t at_least) {
  const std::vector<size_t> lines = lines_with(part);
  CHECK(lines.size() >= at_least);
  for (size_t at : lines) {
    INFO("line " << at + 1 << ": " << kernel_lines()[at] << "\nchanged to: " << change(kernel_lines()[at]));
    CHECK(report_of(at, change(kernel_lines()[at])) != "");
  }
}

// The barrier that a line works on, by name: initialising it there again is a fault that names it.
std::string barrier_of(size_t at) {
  const std::string& line = kernel_lines()[at];
  const size_t begin = line.find('['), end = line.find(']', begin);
  const std::string report =
      report_of(at, "mbarrier.init.shared::cta.b64 " + line.substr(begin, end - begin + 1) + ", 1;");
  const std::string head = "mbarrier.init of ";
  const size_t name = report.find(head);
  if (name == std::string::npos) return {};
  const size_t stop = report.find_first_of("[,", name + head.size());
  return report.substr(name + head.size(), stop - name - head.size());
}

}  // namespace

TEST_CASE("the kernel as it is runs to its end") {
  const std::vector<uint16_t> o = run_attention(text_of(kernel_lines()));
  size_t zero = 0;
  for (uint16_t x : o) zero += (x & 0x7FFF) == 0;
  CHECK(zero >= size_t(130) * 4 * 128);  // queries that see no key
  CHECK(zero < o.size() / 2);
}

TEST_CASE("mutants: completion of tensor-memory accesses") {
  every_one_is_reported("tcgen05.wait::st", removed, 4);
  every_one_is_reported("tcgen05.wait::ld", removed, 4);
}

TEST_CASE("mutants: commits and announced bytes") {
  every_one_is_reported("tcgen05.commit", removed, 8);
  every_one_is_reported("mbarrier.arrive.expect_tx", removed, 4);
  every_one_is_reported("mbarrier.arrive.expect_tx", last_operand("shr.u32", "1"), 4);
  every_one_is_reported("mbarrier.arrive.expect_tx", last_operand("shl.b32", "1"), 4);
  every_one_is_reported("cp.async.bulk.tensor.5d.shared::cta", removed, 4);
}

TEST_CASE("mutants: arrivals") {
  every_one_is_reported("mbarrier.arrive.shared", removed, 10);
}

TEST_CASE("mutants: barrier counts") {
  every_one_is_reported("mbarrier.init", last_operand("add.s32", "1"), 20);
  every_one_is_reported("mbarrier.init", removed, 20);
}

TEST_CASE("mutants: tensor memory and CTA barriers") {
  every_one_is_reported("tcgen05.alloc", removed, 1);
  every_one_is_reported("tcgen05.dealloc", removed, 1);
  every_one_is_reported("bar.sync", removed, 2);
}

TEST_CASE("mutants: each kind of wait") {
  // A missing wait is seen when what it guards is late, and this engine knows one order of events: of each
  // kind at least one removal must be seen, but for these, which are never late in it. The other parity is
  // seen always.
  const std::set<std::string> never_late = {"o_ready", "q.full", "softmax_corr.empty"};
  std::map<std::string, size_t> waits, reported, reported_parity;
  for (size_t at : lines_with("mbarrier.try_wait.parity")) {
    const std::string name = barrier_of(at);
    INFO("line " << at + 1 << ": " << kernel_lines()[at]);
    CHECK(name != "");  // the problem reaches every wait
    ++waits[name];
    reported[name] += report_of(at, always_true("")) != "";
    reported_parity[name] += report_of(at, last_operand("xor.b32", "1")(kernel_lines()[at])) != "";
  }
  CHECK(waits.size() == 12);
  for (const auto& [name, count] : waits) {
    INFO(name << ": " << count << " waits, " << reported[name] << " reported when removed, "
              << reported_parity[name] << " with the other parity");
    CHECK((reported[name] > 0 || never_late.count(name)));
    CHECK(reported_parity[name] > 0);
  }
}
