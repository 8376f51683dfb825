// SPDX-License-Identifier: Apache-2.0
#include "findings.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "table.h"
#include "tensors.h"

namespace fa4::cli {
namespace {

// Bytes that a fatbinary or a cubin takes by its own headers, 0 for anything else. Who gets an image as a pointer
// believes them.
uint64_t announced_bytes(const std::vector<char>& image) {
  const auto field = [&](size_t offset, auto value) {
    if (image.size() >= offset + sizeof value) std::memcpy(&value, image.data() + offset, sizeof value);
    return uint64_t(value);
  };
  const auto sum = [](uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; };
  const uint64_t magic = field(0, uint32_t{});
  if (magic == 0xba55ed50) return sum(std::max<uint64_t>(field(6, uint16_t{}), 16), field(8, uint64_t{}));
  if (magic != 0x464c457f) return 0;
  // ELF: the tables of sections and of segments stand at its end.
  return std::max<uint64_t>({sum(field(40, uint64_t{}), field(58, uint16_t{}) * field(60, uint16_t{})),
                             sum(field(32, uint64_t{}), field(54, uint16_t{}) * field(56, uint16_t{})), 64});
}

}  // namespace

std::vector<char> read_image(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Refusal(fmt::format("--image {}: the file cannot be opened", path));
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.empty())
    throw Refusal(fmt::format("--image {}: the file is empty; PTX or a fatbinary is needed", path));
  if (const uint64_t announced = announced_bytes(bytes); announced > bytes.size())
    throw Refusal(fmt::format("--image {}: the file is cut: its headers speak of {} bytes, it has {}", path, announced,
                              bytes.size()));
  bytes.resize(std::max<size_t>(bytes.size() + 1, 64));  // a NUL behind PTX, and room for any header
  return bytes;
}

std::vector<fa4sim_finding> take_findings(const support::SimulatorApi& simulator) {
  std::vector<fa4sim_finding> findings(simulator.count_findings());
  findings.resize(simulator.take_findings(findings.data(), findings.size()));
  return findings;
}

void print_findings(const std::vector<fa4sim_finding>& findings) {
  const auto part = [](const char* label, const char* text) {
    if (*text) fmt::print("    {:<8} {}\n", label, text);
  };
  for (const fa4sim_finding& f : findings) {
    fmt::print("\n  {}: {}{}\n", f.warning ? "warning" : "error", f.kind,
               *f.memory ? fmt::format(" on {}", f.memory) : "");
    part("first", f.first);
    part("then", f.second);
    part("known", f.last_sync);
    part("needed", f.chain);
    fmt::print("    {:<8} {} {}, first in CTA {} at cycle {}\n", "seen", f.count,
               f.count == 1 ? "time" : "times", f.cta, f.cycle);
  }
}

uint64_t count_warnings(const std::vector<fa4sim_finding>& findings) {
  return uint64_t(std::count_if(findings.begin(), findings.end(),
                                [](const fa4sim_finding& f) { return f.warning != 0; }));
}

nlohmann::json findings_json(const std::vector<fa4sim_finding>& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const fa4sim_finding& f : findings) {
    list.push_back({{"severity", f.warning ? "warning" : "error"},
                    {"kind", f.kind},
                    {"kernel", f.kernel},
                    {"memory", f.memory},
                    {"first", f.first},
                    {"second", f.second},
                    {"last_sync", f.last_sync},
                    {"chain", f.chain},
                    {"count", f.count},
                    {"cta", f.cta},
                    {"cycle", f.cycle}});
  }
  return list;
}

std::vector<std::string> axioms_used(const support::SimulatorApi& simulator) {
  std::vector<std::string> axioms;
  if (simulator.axioms() & FA4SIM_AXIOM_MMA_ORDER)
    axioms.push_back("the MMAs of one CTA execute in the order of their issue");
  if (simulator.axioms() & FA4SIM_AXIOM_LOAD_DELIVERY)
    axioms.push_back("a register of tcgen05.ld is delivered, and its load over, when it is used, without tcgen05.wait::ld");
  if (simulator.axioms() & FA4SIM_AXIOM_TENSOR_FENCES)
    axioms.push_back("tcgen05.fence orders nothing that is not ordered without it");
  if (simulator.axioms() & FA4SIM_AXIOM_CLUSTER_SCOPE)
    axioms.push_back("an mbarrier arrival in another CTA of the cluster, and a wait for it, reach the cluster where they name no scope");
  return axioms;
}

double peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024;
}

void print_verdict(uint64_t errors, uint64_t warnings, double seconds, const std::string& model,
                   const std::vector<std::string>& axioms) {
  fmt::print("{}  {}, {} errors and {} warnings in {:.2f} s; peak memory {:.0f} MiB\n", heading("Verdict"),
             errors || warnings ? "NOT CLEAN" : "CLEAN", errors, warnings, seconds, peak_mebibytes());
  fmt::print("  Exact for the executions that were watched, under the model '{}'. It rests on the PTX ISA{}\n", model,
             axioms.empty() ? "." : " and on what it does not state:");
  for (const std::string& axiom : axioms) fmt::print("  {}.\n", axiom);
}

}  // namespace fa4::cli
