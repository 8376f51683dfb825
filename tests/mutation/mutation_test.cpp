// SPDX-License-Identifier: Apache-2.0
// The kernel with one thing wrong at a time. Every mutant must be noticed, or stand in the table of those
// that do no harm with the reason why.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "harmless.h"
#include "judge.h"
#include "ptx_mutants.h"
#include "support/catch.h"
#include "support/record.h"

using namespace fa4::mutation;
namespace support = fa4::support;

namespace {

constexpr uint32_t kSeeds = 8;

// The kernels of the simulated GPU that the environment names. A process looks at one subject.
const Subject& subject() {
  const auto number = [](const char* variable, int otherwise) {
    const char* text = std::getenv(variable);
    return text ? std::atoi(text) : otherwise;
  };
  const char* gpu = std::getenv("FA4SIM_GPU");
  static const Subject subject{
      *fa4::kernels_for(gpu ? uint32_t(std::atoi(gpu + std::string_view(gpu).find('_') + 1)) : 100),
      number("FA4_MUTATION_HEAD_DIM", 128), number("FA4_MUTATION_GENERAL", 0) != 0};
  return subject;
}
bool hopper() {
  return &subject().list == &fa4::hopper::kKernels;
}
// Where the mutants of the source are, and the beginning of what is recorded.
std::string name_of(const Subject& s) {
  return std::string(hopper() ? "hopper" : "blackwell") + (s.general ? "-general-" : "-") + std::to_string(s.head_dim);
}
const KernelText& kernel() {
  static const KernelText text(fa4::sim::test::read_text(hopper() ? MUTATION_HOPPER_PTX : MUTATION_KERNEL_PTX),
                               subject().kernels(), MUTATION_SOURCE_ROOT);
  return text;
}
const Judge& judge() {
  const char* seeds = std::getenv("FA4_MUTATION_SEEDS");
  static const Judge judge(subject(), seeds ? uint32_t(std::atoi(seeds)) : kSeeds);
  return judge;
}

struct Task {
  std::string kind, where;
  std::function<std::string()> ptx;
  std::set<uint32_t> lines;  // of the PTX that the mutant changes
};

// What orders the accesses of the kernel as it is.
const std::vector<Judge::Explained>& original_orders() {
  static const std::vector<Judge::Explained> all = judge().explain(kernel().text(), {});
  return all;
}
bool goes_through(const fa4::sim::Ordering& ordering, const std::set<uint32_t>& lines) {
  return std::any_of(ordering.lines.begin(), ordering.lines.end(),
                     [&](uint32_t n) { return lines.count(n); });
}

// For a mutant that nobody notices: the pairs of accesses that the kernel orders by what the mutant changes,
// and what the checker says orders them in the mutant, in every configuration. Returns how many pairs there
// are.
size_t explain_harmless(const Task& task) {
  std::vector<std::set<std::pair<uint32_t, uint32_t>>> wanted;
  std::set<std::pair<uint32_t, uint32_t>> all;
  for (const Judge::Explained& configuration : original_orders()) {
    wanted.emplace_back();
    for (const fa4::sim::Ordering& o : configuration.orderings) {
      if (goes_through(o, task.lines)) wanted.back().insert({o.first_line, o.second_line});
    }
    all.insert(wanted.back().begin(), wanted.back().end());
  }
  if (all.empty()) return 0;
  const std::vector<Judge::Explained> mutant = judge().explain(task.ptx(), all);
  for (size_t i = 0; i < mutant.size(); ++i) {
    INFO(mutant[i].configuration);
    std::printf("    %s: %zu pairs\n", mutant[i].configuration.c_str(), wanted[i].size());
    size_t explained = 0;
    for (const fa4::sim::Ordering& o : mutant[i].orderings) {
      INFO(o.memory << "\n" << o.first << "\n" << o.second);
      CHECK(!o.steps.empty());  // the search must find what the vector clocks know
      if (o.steps.empty() || !wanted[i].count({o.first_line, o.second_line}) || explained++) continue;
      std::printf("      %s\n        first   %s\n", o.memory.c_str(), o.first.c_str());
      for (const std::string& step : o.steps) std::printf("        then    %s\n", step.c_str());
      std::printf("        then    %s\n", o.second.c_str());
    }
    CHECK((wanted[i].empty() || explained > 0));
  }
  return all.size();
}

// All of them, on all cores.
std::vector<Verdict> judge_all(const std::vector<Task>& tasks) {
  std::vector<Verdict> verdicts(tasks.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i; (i = next++) < tasks.size();) verdicts[i] = judge().judge(tasks[i].ptx());
  };
  judge();
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  return verdicts;
}

// Prints killed / total for each kind, what killed, and the survivors; checks that the survivors are those of
// the table.
void expect_kills(const std::vector<Task>& tasks) {
  const std::vector<Verdict> verdicts = judge_all(tasks);
  size_t killed = 0, survivors = 0;
  std::printf("\n%-36s %9s   noticed by\n", "", "killed");
  for (size_t i = 0; i < tasks.size();) {
    size_t end = i, dead = 0;
    std::map<std::string, int> by;
    for (; end < tasks.size() && tasks[end].kind == tasks[i].kind; ++end) {
      dead += verdicts[end].killed();
      if (verdicts[end].killed()) ++by[name_of(verdicts[end].by)];
    }
    std::string who;
    for (const auto& [name, count] : by) who += name + " " + std::to_string(count) + "  ";
    std::printf("%-36s %4zu / %-4zu %s\n", tasks[i].kind.c_str(), dead, end - i, who.c_str());
    killed += dead;
    i = end;
  }
  std::set<const Harmless*> needed;
  const bool verbose = std::getenv("FA4_MUTATION_VERBOSE") != nullptr;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Verdict& v = verdicts[i];
    const Harmless* reason = find_harmless(subject(), tasks[i].kind, tasks[i].where);
    if (verbose && v.killed())
      std::printf("  %s: %s\n    %s: %s (%s)\n", tasks[i].kind.c_str(), tasks[i].where.c_str(), name_of(v.by),
                  v.sentence.c_str(), v.run.c_str());
    if (!v.killed())
      std::printf("  survives: %s: %s\n    %s\n", tasks[i].kind.c_str(), tasks[i].where.c_str(),
                  reason ? reason->why : "NOT ARGUED");
    support::record("mutant " + name_of(subject()) + ": " + tasks[i].kind + ": " + (tasks[i].kind == "source" ? tasks[i].where : "") + ": " +
                    name_of(v.by) + ": " + v.sentence.substr(0, v.sentence.find(';')) + ": " + v.actors);
    INFO(tasks[i].kind << ": " << tasks[i].where << "\n" << v.sentence << "\n" << v.run);
    if (v.killed()) {
      CHECK(reason == nullptr);  // noticed, so the table is out of date
    } else if (reason == nullptr) {
      CHECK(reason != nullptr);
    } else {
      needed.insert(reason);
      const size_t pairs = explain_harmless(tasks[i]);
      CHECK((pairs > 0) == (reason->because == Because::another_path));
      if (pairs == 0)
        std::printf("    no two accesses that conflict are ordered by it, in any configuration\n");
      ++survivors;
    }
  }
  std::printf("%zu mutants: %zu killed, %zu harmless\n", tasks.size(), killed, survivors);
  for (const Harmless& row : harmless(subject())) {
    const bool tried =
        std::any_of(tasks.begin(), tasks.end(), [&](const Task& t) { return t.kind == row.kind; });
    INFO(row.kind << ": " << row.where << " " << (row.near ? row.near : ""));
    CHECK((!tried || needed.count(&row) || (row.head_dim != 0 && row.head_dim != subject().head_dim)));  // the row is still about a mutant
  }
}

}  // namespace

// Of a general kernel, what others have not.
bool of_task_ring(const Mutant& mutant) {
  constexpr std::array words{"ring.full", "ring.empty", "give_back", "task.full", "task.empty"};
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return mutant.where.find(word) != std::string::npos; });
}

TEST_CASE("the kernel itself is clean", "[ptx]") {
  const Verdict v = judge().judge(kernel().text());
  INFO(v.sentence << "\n" << v.run);
  CHECK(!v.killed());
}

TEST_CASE("mutants of the PTX", "[ptx]") {
  std::vector<Task> tasks;
  for (Mutant& m : kernel().mutants()) {
    const char* only = std::getenv("FA4_MUTATION_KIND");
    if (only && m.kind.find(only) == std::string::npos) continue;
    if (subject().general && !of_task_ring(m)) continue;
    std::set<uint32_t> lines;
    for (const auto& [index, text] : m.lines) lines.insert(uint32_t(index + 1));
    tasks.push_back({m.kind, m.where, [m] { return kernel().text(m); }, lines});
  }
  if (!std::getenv("FA4_MUTATION_KIND"))
    CHECK(tasks.size() >= (subject().general ? hopper() ? 15 : 70 : hopper() ? 150 : 200));
  expect_kills(tasks);
}

TEST_CASE("mutants of the source", "[source]") {
  std::vector<Task> tasks;
  for (const auto& file : std::filesystem::directory_iterator(MUTATION_SOURCE_MUTANTS "/" + name_of(subject()))) {
    if (file.path().extension() != ".ptx") continue;
    const std::string path = file.path(), name = file.path().stem();
    tasks.push_back(
        {"source",
         name,
         [path] {
           return KernelText(fa4::sim::test::read_text(path), subject().kernels(), MUTATION_SOURCE_ROOT).text();
         },
         {}});
  }
  std::sort(tasks.begin(), tasks.end(), [](const Task& x, const Task& y) { return x.where < y.where; });
  CHECK(tasks.size() >= (subject().general ? 45 : 80));
  expect_kills(tasks);
}
