// SPDX-License-Identifier: Apache-2.0
#include "ptx_mutants.h"

#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>


namespace fa4::mutation {
namespace {

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string trimmed(const std::string& s) {
  const size_t begin = s.find_first_not_of(" \t"), end = s.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : s.substr(begin, end - begin + 1);
}

bool has(const std::string& line, const std::string& part) {
  return line.find(part) != std::string::npos;
}

// ---- what may go wrong with an instruction
// -----------------------------------------------------------------------------

using Change = std::function<std::string(const std::string& line)>;

std::string removed(const std::string&) {
  return {};
}

// The predicate that the instruction would have set is true.
std::string always_true(const std::string& line) {
  const size_t name = line.find_first_of(" \t", line.find_first_not_of(" \t")) + 1;
  const size_t bar = line.find('|', name), comma = line.find(',', name);
  const size_t begin = bar < comma ? bar + 1 : name;
  return "setp.eq.u32 " + line.substr(begin, comma - begin) + ", 0, 0;";
}

// The last operand replaced by `opcode` of it and `with`.
Change last_operand(const std::string& opcode, const std::string& with) {
  return [=](const std::string& line) {
    const size_t comma = line.rfind(','), end = line.find(';', comma);
    return "{ .reg .b32 changed; " + opcode + " changed, " + line.substr(comma + 1, end - comma - 1) + ", " +
           with + "; " + line.substr(0, comma) + ", changed; }";
  };
}

// The barrier in the last pair of brackets replaced by its neighbour: the next stage of the same ring, and
// the first one after the last, so that flavour and count agree.
std::string neighbour(const Kernel& kernel, const std::string& dynamic_shared, const std::string& line) {
  const size_t begin = line.rfind('['), end = line.find(']', begin);
  const std::string address = line.substr(begin + 1, end - begin - 1);
  std::string text =
      "{ .reg .b32 offset, changed; .reg .pred wraps; mov.u32 offset, " + dynamic_shared + "; sub.s32 offset, " +
      address + ", offset; add.s32 changed, " + address + ", 8; ";
  uint32_t last = kernel.barriers_offset - 8;  // offset of the last stage of a row
  for (uint32_t row = 0; row < kernel.barrier_rows; ++row) {
    const uint32_t stages = kernel.barriers[row].stages;
    last += 8 * stages;
    text += "setp.eq.u32 wraps, offset, " + std::to_string(last) + "; @wraps sub.s32 changed, changed, " +
            std::to_string(8 * stages) + "; ";
  }
  return text + line.substr(0, begin) + "[changed" + line.substr(end) + " }";
}

// An immediate at the end, one higher.
std::string one_more_pending(const std::string& line) {
  const size_t digit = line.find_last_of("0123456789");
  return line.substr(0, digit) + std::to_string(line[digit] - '0' + 1) + line.substr(digit + 1);
}

struct Kind {
  const char* name;
  const char* instruction;  // a part of its text
  Change change;
};

std::vector<Kind> kinds(const Kernel& kernel, const std::string& dynamic_shared) {
  const Change neighbour = [&](const std::string& line) { return mutation::neighbour(kernel, dynamic_shared, line); };
  return {
      {"remove wait", "mbarrier.try_wait.", always_true},
      {"wait for the other parity", "mbarrier.try_wait.", last_operand("xor.b32", "1")},
      {"wait on the neighbour", "mbarrier.try_wait.", neighbour},
      {"remove arrive", "mbarrier.arrive.shared", removed},
      {"arrive at the neighbour", "mbarrier.arrive.shared", neighbour},
      {"remove commit", "tcgen05.commit.", removed},
      {"commit to the neighbour", "tcgen05.commit.", neighbour},
      {"remove arrive.expect_tx", "mbarrier.arrive.expect_tx.", removed},
      {"arrive without expect_tx", "mbarrier.arrive.expect_tx.", last_operand("and.b32", "0")},
      {"expect half the bytes", "mbarrier.arrive.expect_tx.", last_operand("shr.u32", "1")},
      {"expect twice the bytes", "mbarrier.arrive.expect_tx.", last_operand("shl.b32", "1")},
      {"expect bytes at the neighbour", "mbarrier.arrive.expect_tx.", neighbour},
      {"remove TMA load", "cp.async.bulk.tensor.5d.shared", removed},
      {"TMA load signals the neighbour", "cp.async.bulk.tensor.5d.shared", neighbour},
      {"remove TMA store", "cp.async.bulk.tensor.5d.global", removed},
      {"remove commit_group", "cp.async.bulk.commit_group", removed},
      {"remove wait_group", "cp.async.bulk.wait_group", removed},
      {"wait_group leaves one more", "cp.async.bulk.wait_group", one_more_pending},
      {"remove mbarrier.init", "mbarrier.init.", removed},
      {"one arrival more", "mbarrier.init.", last_operand("add.s32", "1")},
      {"one arrival less", "mbarrier.init.", last_operand("sub.s32", "1")},
      {"remove fence.mbarrier_init", "fence.mbarrier_init", removed},
      {"remove fence.proxy.async", "fence.proxy.async", removed},
      {"remove fence::before_thread_sync", "tcgen05.fence::before_thread_sync", removed},
      {"remove fence::after_thread_sync", "tcgen05.fence::after_thread_sync", removed},
      {"remove wait::ld", "tcgen05.wait::ld", removed},
      {"remove wait::st", "tcgen05.wait::st", removed},
      {"remove bar.warp.sync", "bar.warp.sync", removed},
      {"remove bar.sync", "bar.sync", removed},
      {"elect every lane", "elect.sync", always_true},
      {"remove alloc", "tcgen05.alloc", removed},
      {"remove dealloc", "tcgen05.dealloc", removed},
      {"remove relinquish_alloc_permit", "tcgen05.relinquish_alloc_permit", removed},
      {"remove wgmma.fence", "wgmma.fence", removed},
      {"remove wgmma.commit_group", "wgmma.commit_group", removed},
      {"remove wgmma.wait_group", "wgmma.wait_group", removed},
      {"wgmma.wait_group leaves one more", "wgmma.wait_group", one_more_pending},
      {"remove bar.arrive", "bar.arrive", removed},
  };
}

}  // namespace

KernelText::KernelText(const std::string& ptx, const std::vector<const Kernel*>& kernels,
                       const std::string& source_root)
    : kernel_(*kernels.front()), source_root_(source_root) {
  const std::string head = ".visible .entry ";
  const size_t first = ptx.find(head);
  if (first == std::string::npos) throw std::runtime_error("the PTX has no entry");
  std::string text = ptx.substr(0, first), rest;
  for (size_t at = first; at != std::string::npos;) {
    const size_t end = ptx.find("\n}\n", at) + 3, next = ptx.find(head, at + 1);
    for (const Kernel* kernel : kernels) {
      const std::string name = kernel->entry;
      if (ptx.compare(at + head.size(), name.size() + 1, name + "(") == 0) text += ptx.substr(at, end - at);
    }
    if (next == std::string::npos) rest = ptx.substr(end);
    at = next;
  }
  const std::string symbol = "dynamic_sharedE";
  size_t symbol_end = ptx.find(symbol), symbol_begin = symbol_end;
  if (symbol_end == std::string::npos) throw std::runtime_error("the PTX has no dynamic shared memory");
  while (ptx[symbol_begin - 1] == '_' || std::isalnum(static_cast<unsigned char>(ptx[symbol_begin - 1]))) --symbol_begin;
  dynamic_shared_ = ptx.substr(symbol_begin, symbol_end + symbol.size() - symbol_begin);
  lines_ = split_lines(text + rest);
  read_strings();
  read_locations();
}

void KernelText::read_strings() {
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i].compare(0, 15, "$L__info_string") != 0) continue;
    std::string& value = strings_[lines_[i].substr(0, lines_[i].find(':'))];
    for (size_t j = i + 1; j < lines_.size() && lines_[j].compare(0, 4, ".b8 ") == 0; ++j) {
      const int c = std::atoi(lines_[j].c_str() + 4);
      if (c == 0) break;
      value += char(c);
    }
  }
}

// A location names its caller by position; the newest location at that position is the one that is meant.
void KernelText::read_locations() {
  std::map<std::string, int> newest;
  const auto position = [](unsigned file, unsigned line, unsigned column) {
    return std::to_string(file) + " " + std::to_string(line) + " " + std::to_string(column);
  };
  int current = -1;
  for (const std::string& line : lines_) {
    Location at;
    unsigned index = 0;
    char name[1024];
    if (std::sscanf(line.c_str(), " .file %u \"%1023[^\"]\"", &index, name) == 2) files_[index] = name;
    if (std::sscanf(line.c_str(), " .loc %u %u %u", &at.file, &at.line, &at.column) == 3) {
      unsigned file = 0, row = 0, column = 0;
      const size_t inlined = line.find("inlined_at");
      if (inlined != std::string::npos &&
          std::sscanf(line.c_str() + inlined, "inlined_at %u %u %u", &file, &row, &column) == 3) {
        const auto caller = newest.find(position(file, row, column));
        if (caller != newest.end()) at.caller = caller->second;
        const size_t begin = line.find("$L__info_string");
        at.function = line.substr(begin, line.find(',', begin) - begin);
      }
      current = int(locations_.size());
      newest[position(at.file, at.line, at.column)] = current;
      locations_.push_back(std::move(at));
    }
    location_of_line_.push_back(current);
  }
}

std::string KernelText::source_line(unsigned file, unsigned line) const {
  auto [it, added] = sources_.try_emplace(file);
  if (added) {
    const auto name = files_.find(file);
    std::ifstream source(name == files_.end() ? "" : source_root_ + "/" + name->second);
    for (std::string text; std::getline(source, text);) it->second.push_back(trimmed(text));
  }
  return line >= 1 && line <= it->second.size() ? it->second[line - 1] : "";
}

KernelText::Site KernelText::site(size_t line) const {
  Site site;
  bool told = false;
  for (int i = location_of_line_[line]; i >= 0 && locations_[size_t(i)].caller >= 0;
       i = locations_[size_t(i)].caller) {
    const Location& at = locations_[size_t(i)];
    site.key +=
        std::to_string(at.file) + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + " ";
    const std::string file = files_.count(at.file) ? files_.at(at.file) : "";
    // A row of the barrier table is a template argument.
    if (const auto symbol = strings_.find(at.function); symbol != strings_.end()) {
      int status = 0;
      const std::unique_ptr<char, void (*)(void*)> name(
          abi::__cxa_demangle(symbol->second.c_str(), nullptr, nullptr, &status), std::free);
      const std::string tag = "::BarrierId)";
      const std::string function = name ? name.get() : "";
      if (const size_t begin = function.find(tag); begin != std::string::npos && has(function, "init_row<")) {
        const std::string row = kernel_.barriers[std::atoi(function.c_str() + begin + tag.size())].name;
        if (!has(site.key, row)) {
          site.key += row + " ";
          site.where = row;
          told = true;
        }
      }
    }
    const bool primitive = has(file, "asm/ptx/") || has(file, "barriers.cuh") || has(file, "barrier_ring.cuh") || !has(file, "asm/");
    const bool outer = has(file, "attention.cu") && told;
    if (primitive || outer) continue;
    site.where += (told ? " <- " : "") + source_line(at.file, at.line);
    site.between.push_back("after " + source_line(at.file, at.line - 1) + " before " + source_line(at.file, at.line + 1));
    told = true;
  }
  return site;
}

std::string KernelText::text() const {
  return text(Mutant{});
}

std::string KernelText::text(const Mutant& mutant) const {
  std::string text;
  for (size_t i = 0; i < lines_.size(); ++i) {
    const auto changed = mutant.lines.find(i);
    text += changed == mutant.lines.end() ? lines_[i] : changed->second;
    text += '\n';
  }
  return text;
}

std::vector<Mutant> KernelText::mutants() const {
  std::vector<Mutant> all;
  std::vector<std::vector<std::string>> between;  // of each
  // Those whose words are the same: told apart by what stands around the innermost call in which that differs.
  const std::function<void(const std::vector<size_t>&, size_t)> tell_apart = [&](const std::vector<size_t>& same, size_t call) {
    if (same.size() == 1 || call == between[same[0]].size()) return;
    std::map<std::string, std::vector<size_t>> groups;
    for (size_t mutant : same) groups[between[mutant][call]].push_back(mutant);
    for (const auto& [text, group] : groups) {
      if (groups.size() > 1)
        for (size_t mutant : group) all[mutant].where += "  (" + text + ")";
      tell_apart(group, call + 1);
    }
  };
  for (const Kind& kind : kinds(kernel_, dynamic_shared_)) {
    std::map<std::string, size_t> by_key;
    std::map<std::string, std::vector<size_t>> same_words;
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (!has(lines_[i], kind.instruction)) continue;
      const Site s = site(i);
      const auto [it, added] = by_key.try_emplace(s.key, all.size());
      if (added) {
        same_words[s.where].push_back(all.size());
        all.push_back({kind.name, s.where, {}});
        between.push_back(s.between);
      }
      all[it->second].lines[i] = kind.change(lines_[i]);
    }
    for (const auto& [where, same] : same_words) tell_apart(same, 0);
  }
  return all;
}

}  // namespace fa4::mutation
