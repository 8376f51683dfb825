// SPDX-License-Identifier: Apache-2.0
// The tables that describe the kernel: barriers, memory maps, names; and the PTX that was made from them.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "asm/attention/kernels.h"
#include "support/catch.h"

namespace {

using fa4::BarrierFlavour;
using fa4::blackwell::BarrierId;
using fa4::BarrierRow;

// "softmax of the stage (128), correction (128)" -> 256: threads or lanes that a row says arrive.
unsigned arrivals_in_words(const std::string& signals) {
  unsigned sum = 0;
  const std::regex number("\\((\\d+)(?: lane)?\\)");
  for (std::sregex_iterator it(signals.begin(), signals.end(), number), end; it != end; ++it) {
    sum += static_cast<unsigned>(std::stoul((*it)[1]));
  }
  return sum;
}

std::string ptx_text(const fa4::KernelList& list) {
  const char* path = std::getenv(&list == &fa4::hopper::kKernels ? "FA4_HOPPER_PTX" : "FA4_PTX");
  REQUIRE(path != nullptr);
  std::ifstream file(path);
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

unsigned slots_of(const fa4::Kernel& kernel) {
  unsigned slots = 0;
  for (unsigned row = 0; row < kernel.barrier_rows; ++row) slots += kernel.barriers[row].stages;
  return slots;
}

// A Q tile for this task and one for the next, where there is room for it. Else O leaves through the ring of K and V.
int q_tiles_of_hopper(const fa4::Config& config) {
  return config.qk_dim <= 128 ? 2 : 1;
}

// Beside one O of 64 columns for each stage, tensor memory holds a third S.
int scores_of_blackwell(const fa4::Config& config) {
  return config.v_dim == 64 ? 3 : 2;
}

unsigned name_count(const fa4::KernelList& list, const fa4::Kernel& kernel) {
  return &list == &fa4::hopper::kKernels ? fa4::hopper::name_count(kernel.config)
                                         : fa4::blackwell::name_count(kernel.config);
}

}  // namespace

TEST_CASE("the barrier table of Hopper is consistent", "[tables]") {
  for (const fa4::Kernel& kernel : fa4::hopper::kKernels) {
    const fa4::hopper::BarrierTable table = fa4::hopper::barrier_table(kernel.config);
    INFO(kernel.entry);
    const int consumers = int(kernel.threads) / 128 - 1;
    CHECK(table.consistent());
    CHECK(table.kinds == 8);
    unsigned slots = 0;
    for (const BarrierRow& row : table.row) {
      INFO(row.name);
      const std::string signals = row.signals, name = row.name;
      const bool ring = name.starts_with("kv."), of_tasks = name.starts_with("task.");
      CHECK(int(row.stages) == (ring       ? kernel.config.kv_slots
                                : of_tasks ? (kernel.config.general() ? 4 : 0)
                                : name == "q.read" ? (q_tiles_of_hopper(kernel.config) == 1 ? consumers : 0)
                                                   : 2 * consumers));
      CHECK((row.flavour == BarrierFlavour::tma) == (signals.find("TMA") != std::string::npos));
      const bool of_warps = signals.find("1 lane of each warp") != std::string::npos;
      const bool of_both = signals.find("load, query (1 lane each)") != std::string::npos;
      CHECK(int(row.arrivals) == (of_both ? 2 : !of_warps ? 1 : ring ? 4 * consumers : 4));
      slots += row.stages;
    }
    CHECK(slots == table.slots());
  }
}

TEST_CASE("the barrier table of Blackwell is consistent", "[tables]") {
  for (const fa4::Kernel& kernel : fa4::blackwell::kKernels) {
    INFO(kernel.entry);
    const fa4::Config& config = kernel.config;
    std::set<std::string> names;
    unsigned slots = 0;
    const fa4::blackwell::BarrierTable table = fa4::blackwell::barrier_table(config);
    CHECK(table.consistent());
    // A task's record is read by every warp of softmax and correction, by the two that work on K and V apart twice, by store once.
    unsigned readers = 2 * 2 + 1;
    for (const fa4::NameRecord* r = kernel.names; r->kind != fa4::NameKind::end; ++r) {
      const std::string name = r->name;
      if (r->kind == fa4::NameKind::role && (name.starts_with("softmax") || name == "correction")) readers += r->end - r->begin;
    }
    for (unsigned id = 0; id < fa4::blackwell::BarrierTable::kinds; ++id) {
      const BarrierRow& row = table.row[id];
      INFO(row.name);
      CHECK(names.insert(row.name).second);
      CHECK(table.slot(id) == slots);
      slots += row.stages;
      const unsigned in_words = BarrierId(id) == BarrierId::task_empty ? readers : arrivals_in_words(row.signals);
      CHECK(row.arrivals == (row.flavour == BarrierFlavour::tcgen05 ? 1u : in_words));
      CHECK((row.flavour == BarrierFlavour::tcgen05) ==
            (std::string(row.signals).find("commit") != std::string::npos));
      CHECK((row.flavour == BarrierFlavour::tma) ==
            (std::string(row.signals).find("TMA") != std::string::npos));
      const bool ring = BarrierId(id) == BarrierId::kv_full || BarrierId(id) == BarrierId::kv_empty;
      const bool of_tasks = BarrierId(id) == BarrierId::task_full || BarrierId(id) == BarrierId::task_empty;
      CHECK(int(row.stages) == (ring ? config.kv_slots
                                : of_tasks ? (config.general() ? 4 : 0)
                                : BarrierId(id) == BarrierId::s_ready ? scores_of_blackwell(config)
                                : BarrierId(id) == BarrierId::q_empty && config.o_place == fa4::OPlace::over_q ? 0
                                                                                                              : config.q_stages));
    }
    CHECK(slots == table.slots());
    CHECK(names.size() == 14);
  }
}

TEST_CASE("names cover the memories and do not overlap", "[tables]") {
  for (const fa4::KernelList* list : fa4::kArchitectures) for (const fa4::Kernel& kernel : *list) {
    INFO(list->name << ": " << kernel.entry);
    const unsigned slots = slots_of(kernel);
    std::map<fa4::NameKind, std::vector<const fa4::NameRecord*>> by_kind;
    unsigned records = 0;
    for (const fa4::NameRecord* r = kernel.names; r->kind != fa4::NameKind::end; ++r) {
      ++records;
      CHECK(r->begin < r->end);
      CHECK(r->name[sizeof(r->name) - 1] == 0);
      by_kind[r->kind].push_back(r);
    }
    CHECK(records == name_count(*list, kernel));

    const auto length = [&](fa4::NameKind kind) {
      unsigned sum = 0;
      for (const auto* r : by_kind[kind]) sum += r->end - r->begin;
      return sum;
    };
    const bool general = kernel.config.general(), of_hopper = list == &fa4::hopper::kKernels;
    const bool unlike = kernel.config.k_tile_bytes() != kernel.config.v_tile_bytes();
    const bool o_over_q = kernel.config.o_place == fa4::OPlace::over_q;
    // On Blackwell O may be staged where Q was; and in a ring of unlike tiles, whose names are those of K, the larger, a slot reaches into
    // the next one.
    const auto may_overlap = [&](const fa4::NameRecord& a, const fa4::NameRecord& b) {
      const std::string first = a.name, second = b.name;
      if (of_hopper) return false;
      if (first.starts_with("sO") && second.starts_with("sQ")) return o_over_q && a.begin == b.begin && a.end <= b.end;
      return unlike && first.starts_with("sKV") && second.starts_with("sKV");
    };
    const auto disjoint = [&](fa4::NameKind kind) {
      bool good = true;
      for (const auto* a : by_kind[kind]) {
        for (const auto* b : by_kind[kind])
          good = good && (a == b || a->end <= b->begin || b->end <= a->begin || may_overlap(*a, *b) || may_overlap(*b, *a));
      }
      return good;
    };
    const auto covered = [&](fa4::NameKind kind) {  // by some name
      std::vector<std::pair<unsigned, unsigned>> ranges;
      for (const auto* r : by_kind[kind]) ranges.push_back({r->begin, r->end});
      std::sort(ranges.begin(), ranges.end());
      unsigned sum = 0, end = 0;
      for (const auto& range : ranges) {
        sum += range.second - std::min(std::max(range.first, end), range.second);
        end = std::max(end, range.second);
      }
      return sum;
    };
    CHECK(length(fa4::NameKind::role) == kernel.threads / 32);
    CHECK(disjoint(fa4::NameKind::role));
    CHECK(by_kind[fa4::NameKind::barrier].size() == slots);
    CHECK(length(fa4::NameKind::barrier) == slots * 8);
    CHECK(disjoint(fa4::NameKind::barrier));
    CHECK(disjoint(fa4::NameKind::shared));
    CHECK(covered(fa4::NameKind::shared) <= kernel.shared_bytes);
    CHECK(kernel.shared_bytes - covered(fa4::NameKind::shared) < 16);  // nothing but the padding has no name

    std::set<std::string> names;
    for (const auto& [kind, list] : by_kind) {
      for (const auto* r : list) CHECK(names.insert(r->name).second);
    }
    // As many of each as follow from the specialisation, the last of them and none behind it.
    struct Numbered {
      const char *before, *behind;
      int count;
    };
    const fa4::Config& config = kernel.config;
    const int stages = config.q_stages, q_tiles = q_tiles_of_hopper(config), task_records = general ? 4 : 0;
    std::vector<Numbered> numbered = {{"kv.full[", "]", config.kv_slots}, {"task.full[", "]", task_records},
                                      {"task.empty[", "]", task_records}, {"task record ", "", task_records}};
    if (of_hopper) {
      const int ring = unlike ? 0 : config.kv_slots, half = unlike ? config.kv_slots / 2 : 0;
      numbered.insert(numbered.end(), {{"consumer ", "", stages}, {"q.full[", "]", 2 * stages}, {"o.full[", "]", 2 * stages},
                                       {"q.read[", "]", q_tiles > 1 ? 0 : stages}, {"sQ slot 0, consumer ", "", stages},
                                       {"sQ slot 1, consumer ", "", q_tiles > 1 ? stages : 0},
                                       {"task of Q slot ", "", 2}, {"entry of Q slot ", "", general ? 2 : 0},
                                       {"sKV slot ", "", ring}, {"sK slot ", "", half}, {"sV slot ", "", half}});
    } else {
      const int scores = scores_of_blackwell(config);
      numbered.insert(numbered.end(), {{"softmax ", "", stages}, {"q.full[", "]", stages}, {"q.empty[", "]", o_over_q ? 0 : stages},
                                       {"p_o_rescale[", "]", stages}, {"sQ stage ", "", stages}, {"sO stage ", "", stages},
                                       {"sKV slot ", "", config.kv_slots}, {"S", "", scores}, {"P", "", scores}, {"O", "", stages}});
    }
    for (const auto& [before, behind, count] : numbered) {
      INFO(before << count << behind);
      const auto name = [&, before = before, behind = behind](int i) { return before + std::to_string(i) + behind; };
      for (int i = 0; i < count; ++i) CHECK(names.count(name(i)) == 1);
      CHECK(names.count(name(count)) == 0);
    }
    for (const char* name : {"load", "store", "barriers", of_hopper ? "query" : "correction", of_hopper ? "query" : "mma"}) {
      INFO(name);
      CHECK(names.count(name) == 1);
    }
    // The warp that hands out the tasks of general kernels has nothing to do in the others.
    CHECK(names.count("idle") == (general ? 0 : 1));
    CHECK(names.count("scheduler") == (general ? 1 : 0));
  }
}

TEST_CASE("every barrier is initialised once, where and as the table says", "[tables]") {
  for (const fa4::KernelList* list : fa4::kArchitectures) for (const fa4::Kernel& kernel : *list) {
    const std::string ptx = ptx_text(*list);
    INFO(list->name << ": " << kernel.entry);
    const size_t begin = ptx.find(std::string(".entry ") + kernel.entry + "(");
    REQUIRE(begin != std::string::npos);
    const std::string setup = ptx.substr(begin, ptx.find("bar.sync", begin) - begin);

    // Registers that hold a constant, or an offset from the start of dynamic shared memory.
    std::map<std::string, unsigned> constant, offset;
    std::map<unsigned, unsigned> count_at;
    std::smatch m;
    std::istringstream lines(setup);
    const std::regex base("mov\\.u32\\s+(%r\\d+), \\w*dynamic_shared\\w*;");
    const std::regex move("mov\\.[bu]32\\s+(%r\\d+), (\\d+);");
    const std::regex add("add\\.s32\\s+(%r\\d+), (%r\\d+), (\\d+);");
    const std::regex init("mbarrier\\.init\\.shared::cta\\.b64 \\[(%r\\d+)\\], (%r\\d+);");
    for (std::string line; std::getline(lines, line);) {
      if (std::regex_search(line, m, base)) {
        offset[m[1]] = 0;
      } else if (std::regex_search(line, m, move)) {
        constant[m[1]] = static_cast<unsigned>(std::stoul(m[2]));
      } else if (std::regex_search(line, m, add) && offset.count(m[2])) {
        offset[m[1]] = offset[m[2]] + static_cast<unsigned>(std::stoul(m[3]));
      } else if (std::regex_search(line, m, init)) {
        REQUIRE(offset.count(m[1]));
        REQUIRE(constant.count(m[2]));
        CHECK(count_at.emplace(offset[m[1]], constant[m[2]]).second);
      }
    }

    std::map<unsigned, unsigned> expected;
    unsigned at = kernel.barriers_offset;
    for (unsigned row = 0; row < kernel.barrier_rows; ++row) {
      for (unsigned stage = 0; stage < kernel.barriers[row].stages; ++stage, at += 8)
        expected[at] = kernel.barriers[row].arrivals;
    }
    CHECK(count_at == expected);
  }
}

TEST_CASE("the names stand in the PTX byte for byte", "[tables]") {
  for (const fa4::KernelList* list : fa4::kArchitectures) for (const fa4::Kernel& kernel : *list) {
    const std::string ptx = ptx_text(*list);
    std::smatch m;
    const std::regex symbol(std::string(kernel.entry) + "_names\\[(\\d+)\\] = \\{([0-9, ]*)\\}");
    REQUIRE(std::regex_search(ptx, m, symbol));
    const size_t size = (name_count(*list, kernel) + 1) * sizeof(fa4::NameRecord);
    REQUIRE(std::stoul(m[1]) == size);
    std::vector<unsigned char> bytes;
    std::istringstream numbers(m[2]);
    for (std::string number; std::getline(numbers, number, ',');) {
      bytes.push_back(static_cast<unsigned char>(std::stoul(number)));
    }
    bytes.resize(size);  // trailing zeros are left out
    CHECK(std::equal(bytes.begin(), bytes.end(), reinterpret_cast<const unsigned char*>(kernel.names)));
  }
}
