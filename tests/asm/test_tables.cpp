// SPDX-License-Identifier: Apache-2.0
// The tables that describe the kernel: barriers, memory maps, names; and the PTX that was made from them.
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "asm/attention/name_table.h"
#include "support/catch.h"

namespace {

using fa4::BarrierFlavour;
using fa4::BarrierId;
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

std::string ptx_text() {
  const char* path = std::getenv("FA4_PTX");
  REQUIRE(path != nullptr);
  std::ifstream file(path);
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the barrier table is consistent", "[tables]") {
  std::set<std::string> names;
  unsigned slots = 0;
  for (const BarrierRow& row : fa4::kBarriers) {
    INFO(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(fa4::barrier_slot(row.id) == slots);
    slots += row.stages;
    CHECK(row.arrivals == (row.flavour == BarrierFlavour::tcgen05 ? 1u : arrivals_in_words(row.signals)));
    CHECK((row.flavour == BarrierFlavour::tcgen05) ==
          (std::string(row.signals).find("commit") != std::string::npos));
    CHECK((row.flavour == BarrierFlavour::tma) ==
          (std::string(row.signals).find("TMA") != std::string::npos));
    CHECK(row.stages == (row.id == BarrierId::kv_full || row.id == BarrierId::kv_empty ? 3u : 2u));
  }
  CHECK(slots == fa4::kBarrierSlots);
  CHECK(names.size() == 12);
}

TEST_CASE("names cover the memories and do not overlap", "[tables]") {
  const fa4::NameTable table = fa4::make_name_table();
  std::map<fa4::NameKind, std::vector<const fa4::NameRecord*>> by_kind;
  unsigned records = 0;
  for (const fa4::NameRecord& r : table.record) {
    if (r.kind == fa4::NameKind::end) break;
    ++records;
    CHECK(r.begin < r.end);
    CHECK(r.name[sizeof(r.name) - 1] == 0);
    by_kind[r.kind].push_back(&r);
  }
  CHECK(records + 1 == fa4::kNameRecords);
  CHECK(table.record[records].kind == fa4::NameKind::end);

  const auto length = [&](fa4::NameKind kind) {
    unsigned sum = 0;
    for (const auto* r : by_kind[kind]) sum += r->end - r->begin;
    return sum;
  };
  const auto disjoint = [&](fa4::NameKind kind) {
    bool good = true;
    for (const auto* a : by_kind[kind]) {
      for (const auto* b : by_kind[kind]) good = good && (a == b || a->end <= b->begin || b->end <= a->begin);
    }
    return good;
  };
  CHECK(length(fa4::NameKind::role) == 16);
  CHECK(disjoint(fa4::NameKind::role));
  CHECK(by_kind[fa4::NameKind::barrier].size() == 26);
  CHECK(length(fa4::NameKind::barrier) == 26 * 8);
  CHECK(disjoint(fa4::NameKind::barrier));
  CHECK(disjoint(fa4::NameKind::shared));
  CHECK(length(fa4::NameKind::shared) <= fa4::kDynamicSharedBytes);
  CHECK(fa4::kDynamicSharedBytes - length(fa4::NameKind::shared) < 8);  // nothing but the padding has no name

  std::set<std::string> names;
  for (const auto& [kind, list] : by_kind) {
    for (const auto* r : list) CHECK(names.insert(r->name).second);
  }
  for (const char* name : {"softmax 0", "softmax 1", "correction", "mma", "load", "store", "idle",
                           "p_o_rescale[1]", "kv.full[2]", "sQ stage 1", "sKV slot 2", "S0", "P1", "O1"}) {
    INFO(name);
    CHECK(names.count(name) == 1);
  }
}

TEST_CASE("every barrier is initialised once, where and as the table says", "[tables]") {
  const std::string ptx = ptx_text();
  for (const char* entry : {"fa4_forward_f16_full", "fa4_forward_f16_causal", "fa4_forward_bf16_full",
                            "fa4_forward_bf16_causal"}) {
    INFO(entry);
    const size_t begin = ptx.find(std::string(".entry ") + entry + "(");
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
    for (const BarrierRow& row : fa4::kBarriers) {
      for (unsigned stage = 0; stage < row.stages; ++stage) {
        expected[fa4::barrier_offset(row.id, stage)] = row.arrivals;
      }
    }
    CHECK(count_at == expected);
  }
}

TEST_CASE("the names stand in the PTX byte for byte", "[tables]") {
  const std::string ptx = ptx_text();
  std::smatch m;
  const std::regex symbol("fa4_names\\[(\\d+)\\] = \\{([0-9, ]*)\\}");
  REQUIRE(std::regex_search(ptx, m, symbol));
  REQUIRE(std::stoul(m[1]) == sizeof(fa4::NameTable));
  std::vector<unsigned char> bytes;
  std::istringstream numbers(m[2]);
  for (std::string number; std::getline(numbers, number, ',');) {
    bytes.push_back(static_cast<unsigned char>(std::stoul(number)));
  }
  bytes.resize(sizeof(fa4::NameTable));  // trailing zeros are left out
  const fa4::NameTable table = fa4::make_name_table();
  const auto* expected = reinterpret_cast<const unsigned char*>(&table);
  CHECK(std::equal(bytes.begin(), bytes.end(), expected));
}
