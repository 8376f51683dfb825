// SPDX-License-Identifier: Apache-2.0
#include "support_table.h"

#include <cctype>
#include <map>
#include <set>

namespace fa4::conformance {

const std::vector<Refusal>& refusals() {
  static const std::vector<Refusal> list = {
      {"approximate functions in double precision", "rcp.approx.ftz.f64 %d, %d;",
       "their results are not known bit for bit"},
      {"functions that call themselves, calls through pointers, calls of functions without a body", "",
       "calls are put in place"},
      {"pairs of CTAs in tensor memory and tensor core (`cta_group::2`)",
       "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r], 32;", "not simulated"},
      {"minimum and maximum of halves in memory by `atom` and `red`", "red.global.min.noftz.f16x2 [%d], %r;",
       "not simulated"},
      {"`multimem`", "multimem.ld_reduce.relaxed.gpu.global.add.u32 %r, [%d];", "it reaches other devices"},
      {"`st.async` and `red.async` in global memory", "red.async.relaxed.gpu.global.add.u32 [%d], %r;", "not simulated"},
      {"textures, surfaces and their queries", "txq.width.b32 %r, [%d];", "not simulated"},
      {"video instructions", "vadd.s32.s32.s32 %r, %r, %r;", "not simulated"},
      {"`mma.sync` of integers, 8-bit floats and f64, `wmma`, `mma.sp`",
       "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r, %r, %r, %r}, {%r, %r, %r, %r}, {%r, %r}, {%r, "
       "%r, %r, %r};",
       "not simulated"},
      {"`wgmma` of integers and 8-bit floats, `wgmma.mma_async.sp`, and any `wgmma` outside the target "
       "sm_90a",
       "wgmma.fence.sync.aligned;", "not simulated"},
      {"`ldmatrix` and `stmatrix` of 8-bit elements and with decompression",
       "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r, %r}, [%r];", "not simulated"},
      {"im2col tensor maps",
       "cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r], [%d, {%r, %r, "
       "%r}], [%r], {%h};",
       "not simulated"},
      {"`cvt.pack`, stochastic rounding, 4- and 6-bit formats", "cvt.pack.sat.u16.s32 %r, %r, %r;",
       "not simulated"},
      {"`discard`, `createpolicy` beyond fractional forms", "discard.global.L2 [%d], 128;", "not simulated"},
      {"stack instructions (`alloca`, `stacksave`, `stackrestore`)", "stacksave.u64 %d;", "not simulated"},
      {"`pmevent`, `brkpt`", "pmevent 3;", "they speak to a debugger or profiler"},
  };
  return list;
}

std::string_view known_difference(const Row& row) {
  if (row.name == "call of itself") return "refused: calls are put in place";
  return {};
}

namespace {

// The base opcodes in the modules of all rows.
std::set<std::string> tested_opcodes() {
  std::set<std::string> found;
  const std::string* last = nullptr;
  for (const Row& row : all_rows()) {
    if (last && *last == row.ptx) continue;
    last = &row.ptx;
    std::string word;
    bool statement = true;  // at the start of a statement, after a guard at most
    for (char c : row.ptx) {
      const bool part = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%' || c == '@' ||
                        c == '!' || c == '$' || c == '.' || c == ':';
      if (part) {
        word += c;
        continue;
      }
      if (!word.empty() && statement) {
        if (word[0] != '@' && word.back() != ':') {
          found.insert(word.substr(0, word.find('.')));
          statement = false;
        }
      }
      word.clear();
      if (c == ';' || c == '{' || c == '}' || c == '\n') statement = true;
    }
  }
  return found;
}

}  // namespace

std::string support_table(const Recording& recording, const std::vector<Standing>& standings,
                          const std::vector<std::string_view>& opcodes) {
  struct Counts {
    size_t rows = 0, equal = 0, different = 0, refused = 0, documents = 0;
    std::string_view section;
  };
  std::map<std::string_view, Counts> families;
  std::vector<std::string_view> order;
  Counts all;
  const std::vector<Row>& rows = all_rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    Counts& c = families[rows[i].family];
    if (c.rows == 0) order.push_back(rows[i].family), c.section = rows[i].section;
    for (Counts* counts : {&c, &all}) {
      ++counts->rows;
      counts->equal += standings[i] == Standing::equal;
      counts->different += standings[i] == Standing::different;
      counts->refused += standings[i] == Standing::refused;
      counts->documents += standings[i] == Standing::documents_only;
    }
  }
  std::string text =
      "# What the simulated GPU supports\n\n"
      "Written by the test `support table` from the conformance rows (`tools/conformance`), the answers "
      "recorded from a real GPU\n"
      "and the simulator itself: `ninja -C build support-table` writes it again. A row is one small kernel "
      "for one form of an\n"
      "instruction. \"Equal\" means: every bit of its output, over corner cases and seeded random inputs, is "
      "what the GPU answered.\n\n";
  text += "Recorded from: " + recording.device + ", driver for " + recording.driver + ", toolkit CUDA " +
          recording.toolkit + ".\n\n";
  text +=
      "| family | PTX ISA | rows | executed | equal to the GPU | checked by documents only | not supported "
      "|\n|---|---|--:|--:|--:|--:|--:|\n";
  const auto line = [](const std::string& name, std::string_view section, const Counts& c) {
    const auto n = [](size_t v) { return v == 0 ? std::string("–") : std::to_string(v); };
    return "| " + name + " | " + std::string(section) + " | " + std::to_string(c.rows) + " | " +
           n(c.equal + c.documents) + " | " + n(c.equal) + " | " + n(c.documents) + " | " +
           n(c.refused + c.different) + " |\n";
  };
  for (std::string_view name : order) text += line(std::string(name), families[name].section, families[name]);
  text += line("**all**", "", all);
  text += "\n## Rows that are not equal\n\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    if (standings[i] == Standing::equal || standings[i] == Standing::documents_only) continue;
    const std::string_view reason = known_difference(rows[i]);
    text += "- " + rows[i].name + ": " + (reason.empty() ? "**not explained**" : std::string(reason)) + "\n";
  }
  const std::set<std::string> tested = tested_opcodes();
  std::string known, untested;
  for (std::string_view opcode : opcodes) {
    known += (known.empty() ? "`" : ", `") + std::string(opcode) + "`";
    if (!tested.contains(std::string(opcode)))
      untested += (untested.empty() ? "`" : ", `") + std::string(opcode) + "`";
  }
  text += "\n## Opcodes\n\nKnown: " + known +
          ".\n\nKnown, but in no row: " + (untested.empty() ? "none" : untested) + ".\n";
  text +=
      "\n## What is refused\n\nA kernel that uses one of these is refused when it is looked up or first used, with the lines and "
      "their text; other kernels of its module run. Everything else that is not in the table is refused too.\n\n";
  for (const Refusal& r : refusals())
    text += "- " + std::string(r.form) + ": " + std::string(r.reason) + "\n";
  return text;
}

}  // namespace fa4::conformance
