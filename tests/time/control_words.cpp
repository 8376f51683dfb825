// SPDX-License-Identifier: Apache-2.0
// Holds the reading of control words (tools/time/sass.h) to what ptxas does: small programs whose dependences
// are known, and the cubin that ships.
//
//     control_words PTXAS CUBIN PLACE...        PLACE: a folder that may have nvdisasm
//
// Exits with 77 (skipped) where there is no nvdisasm.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "tools/time/nvdisasm.h"
#include "tools/time/sass.h"

using namespace fa4::time;

namespace {

int complaints = 0;

void complain(const std::string& where, const std::string& what) {
  std::printf("%s: %s\n", where.c_str(), what.c_str());
  ++complaints;
}

std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::vector<char>(std::istreambuf_iterator<char>(file), {});
}

// The instructions of a program that ptxas makes of `body` for `target`.
std::vector<Instruction> assemble(const std::string& ptxas, const std::string& nvdisasm,
                                  const std::string& target, const std::string& body) {
  char folder[] = "/tmp/fa4-probe-XXXXXX";
  if (!mkdtemp(folder)) throw Error("no temporary folder");
  const std::string source = folder + std::string("/probe.ptx"), cubin = folder + std::string("/probe.cubin");
  std::ofstream(source)
      << ".version 8.7\n.target " << target
      << "\n.address_size 64\n.visible .entry probe(.param .u64 out, .param .f32 x) {\n.reg .pred %p<9>;\n"
         ".reg .b32 %r<99>;\n.reg .f32 %f<99>;\n.reg .b64 %d<9>;\n.shared .align 16 .b8 memory[4096];\n"
         "ld.param.u64 %d1, [out];\nld.param.f32 %f1, [x];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, "
         "memory;\nshl.b32 %r3, %r1, 2;\nadd.u32 %r2, %r2, %r3;\n"
      << body << "\nret;\n}\n";
  const std::string command = ptxas + " -O3 -arch=" + target + " " + source + " -o " + cubin;
  const bool made = std::system(command.c_str()) == 0;
  std::vector<char> bytes = read_file(cubin);
  std::filesystem::remove_all(folder);
  if (!made || bytes.empty()) throw Error("ptxas refused the probe for " + target);
  return parse_disassembly(disassemble(nvdisasm, bytes))[0].code;
}

using Code = std::vector<Instruction>;

size_t first(const Code& code, const std::function<bool(const Instruction&)>& is, size_t from = 0) {
  return size_t(std::find_if(code.begin() + std::ptrdiff_t(std::min(from, code.size())), code.end(), is) -
                code.begin());
}
std::function<bool(const Instruction&)> opcode(const std::string& base) {
  return [=](const Instruction& x) { return x.base() == base; };
}
// The first register among the operands: SHFL and others name a predicate before it.
std::string destination(const Instruction& x) {
  const size_t at = x.operands.find('R');
  return x.operands.substr(at, x.operands.find(',', at) - at);
}
bool names(const Instruction& x, const std::string& reg) {
  for (size_t at = x.operands.find(reg); at != std::string::npos; at = x.operands.find(reg, at + 1)) {
    const char next = at + reg.size() < x.operands.size() ? x.operands[at + reg.size()] : ' ';
    if (next < '0' || next > '9') return true;
  }
  return false;
}

// A result of variable latency: its scoreboard is waited for before it is used.
void check_result(const std::string& where, const Code& code, const std::string& producer) {
  const size_t p = first(code, opcode(producer));
  if (p == code.size()) return complain(where, "there is no " + producer);
  if (code[p].writes > 5) return complain(where, "no scoreboard for the result of: " + code[p].text());
  const size_t user = first(
      code, [&](const Instruction& x) { return names(x, destination(code[p])); }, p + 1);
  uint8_t waited = 0;
  for (size_t i = p + 1; i <= user && i < code.size(); ++i) waited |= code[i].waits;
  if (user == code.size() || !(waited >> code[p].writes & 1))
    complain(where, "the result is used without a wait for scoreboard " + std::to_string(code[p].writes) +
                        ": " + code[p].text());
}

void check_target(const std::string& ptxas, const std::string& nvdisasm, const std::string& target) {
  const auto where = [&](const char* what) { return target + ", " + what; };
  {
    // Ten additions, each of the one before: ptxas spaces them by the latency of 4 that an H200 shows.
    std::string body = "add.rn.f32 %f2, %f1, 0f3F9D70A4;\n";
    for (int i = 0; i < 10; ++i) body += "add.rn.f32 %f2, %f2, %f1;\n";
    const Code code =
        assemble(ptxas, nvdisasm, target, body + "cvta.to.global.u64 %d2, %d1;\nst.global.f32 [%d2], %f2;");
    size_t chained = 0;
    for (size_t i = 0; i + 1 < code.size(); ++i) {
      if (code[i].base() != "FADD" || code[i + 1].base() != "FADD") continue;
      ++chained;
      if (code[i].stall != 4)
        complain(where("a chain of FADD"),
                 "a stall of " + std::to_string(code[i].stall) + ", 4 expected: " + code[i].text());
    }
    if (chained < 8) complain(where("a chain of FADD"), "it was not found");
  }
  const std::string store = "\ncvta.to.global.u64 %d2, %d1;\nst.global.f32 [%d2], %f3;";
  check_result(
      where("ex2"),
      assemble(ptxas, nvdisasm, target, "ex2.approx.ftz.f32 %f2, %f1;\nadd.rn.f32 %f3, %f2, %f1;" + store),
      "MUFU");
  check_result(
      where("ld.shared"),
      assemble(
          ptxas, nvdisasm, target,
          "st.shared.f32 [%r2], %f1;\nbar.sync 0;\nld.shared.f32 %f2, [%r2+4];\nadd.rn.f32 %f3, %f2, %f1;" +
              store),
      "LDS");
  check_result(where("shfl"),
               assemble(ptxas, nvdisasm, target,
                        "mov.b32 %r5, %f1;\nadd.u32 %r5, %r5, %r1;\nshfl.sync.bfly.b32 %r4, %r5, 1, 31, "
                        "-1;\nmov.b32 %f2, %r4;\nadd.rn.f32 %f3, %f2, %f1;" +
                            store),
               "SHFL");
  check_result(
      where("ld.global"),
      assemble(
          ptxas, nvdisasm, target,
          "cvta.to.global.u64 %d3, %d1;\nld.global.f32 %f2, [%d3+64];\nadd.rn.f32 %f3, %f2, %f1;" + store),
      "LDG");
  {
    // try_wait gives a predicate: the branch on it waits.
    const Code code = assemble(
        ptxas, nvdisasm, target,
        "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;\n@!%p1 bra WAIT;\nmov.f32 %f3, %f1;" +
            store);
    const size_t p = first(code, opcode("SYNCS"));
    const size_t branch = first(code, opcode("BRA"), p);
    if (p == code.size() || branch == code.size() || code[p].writes > 5 ||
        !(code[branch].waits >> code[p].writes & 1))
      complain(where("try_wait"), "the branch does not wait for its scoreboard");
  }
}

// Of the cubin that ships: how the fields go together.
void check_fields(const std::vector<Function>& functions) {
  size_t ones = 0, ones_keep = 0, all = 0;
  for (const Function& f : functions) {
    for (const Instruction& x : f.code) {
      ++all;
      if (x.stall > 11 && x.keep)
        complain(f.name, "a stall above 11 without a yield, which an H200 does not count: " + x.text());
      if (x.writes == 6 || x.reads == 6) complain(f.name, "scoreboard 6, of 0 to 5: " + x.text());
      if (x.stall == 1) ++ones, ones_keep += x.keep;
    }
  }
  if (all < 1000 || ones_keep * 10 < ones * 9)
    complain("the cubin",
             "the yield bit is stored as 1 on less than nine tenths of the instructions with a stall of 1");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    const std::string nvdisasm = find_nvdisasm(std::vector<std::string>(argv + 3, argv + argc));
    if (nvdisasm.empty()) {
      std::printf("skipped: %s\n", how_to_get_nvdisasm());
      return 77;
    }
    for (const char* target : {"sm_90a", "sm_100a"}) check_target(argv[1], nvdisasm, target);
    check_fields(parse_disassembly(disassemble(nvdisasm, read_file(argv[2]))));
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return complaints ? 1 : 0;
}
