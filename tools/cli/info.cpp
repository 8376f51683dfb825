// SPDX-License-Identifier: Apache-2.0
// `fa4 info`. The maps and the barriers come from the headers that the kernel is compiled with, the registers
// from the assembler's report on the cubin that the library embeds.
#include "info.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include <fmt/format.h>

#include "asm/attention/kernels.h"
#include "devices.h"
#include "run.h"
#include "table.h"

namespace fa4 {
extern const void* ptxas_log();  // generated: the text, zero-terminated
}

namespace fa4::cli {
namespace {

void print_devices(const std::string& driver) {
  Table table({"device", "compute capability", ">SMs", ">memory", "kernels", "driver library"});
  const std::vector<ImageEntry> image = builtin_entries();
  std::vector<std::string> notes;
  const auto add = [&](const std::string& library) {
    const GpuList gpus = list_gpus(library);
    for (const support::Gpu::Properties& d : gpus.devices)
      table.add({d.name, fmt::format("{}.{}", d.major, d.minor), std::to_string(d.sm_count),
                 bytes_text(d.memory_bytes), image_runs_on(image, d.arch()) ? kernels_of(d).name : "none", library});
    if (!gpus.failure.empty()) notes.push_back(gpus.failure);
    if (gpus.failure.empty() && gpus.devices.empty()) notes.push_back(library + " offers no device");
  };
  add("libcuda.so.1");
  try {
    add(driver.empty() ? find_simulator() : driver);
  } catch (const DeviceError& error) {
    notes.push_back(error.what());
  }
  fmt::print("{}{}", heading("Devices"), table.text());
  for (const std::string& note : notes) fmt::print("  {}\n", note);
  fmt::print("  The simulated GPU is sm_90, sm_100 or sm_103: --gpu, or FA4SIM_GPU for any program.\n");
}

void print_image() {
  fmt::print("{}  {}\n\n", heading("Image, embedded in libfa4"), describe_image(builtin_entries()));
  Table table({"kernel", "target", ">head dimension", ">of V", ">threads",
               ">registers", ">stack", ">spills", ">shared memory"});
  const std::vector<AssembledKernel> assembled = parse_ptxas_log(static_cast<const char*>(ptxas_log()));
  for (const KernelList* list : kArchitectures) for (const Kernel& kernel : *list) {
    const auto k = std::find_if(assembled.begin(), assembled.end(), [&](const AssembledKernel& a) {
      return a.name == kernel.entry && a.target == list->target;
    });
    if (k == assembled.end())
      throw std::runtime_error(
          fmt::format("the assembler's report does not name {} for {}", kernel.entry, list->target));
    table.add({k->name, k->target, std::to_string(kernel.config.qk_dim), std::to_string(kernel.config.v_dim),
               std::to_string(kernel.threads), std::to_string(k->registers),
               fmt::format("{} B", k->stack_bytes), fmt::format("{} B", k->spill_store_bytes + k->spill_load_bytes),
               fmt::format("{} of {} B", kernel.shared_bytes, kMaxSharedBytes)});
  }
  fmt::print(
      "{}  Registers at launch; setmaxnreg then shares them out by role. A problem goes to the first kernel whose head dimensions, of Q\n"
      "  and K and of V and O, are not smaller than its own.\n\n"
      "  The general kernels take what masks, lengths and scores the others do not: a window, the diagonal from the top left, lengths\n"
      "  of each batch entry (packed, used in part, or both), a softcap or ALiBi, sinks, and all of these together but a softcap with\n"
      "  ALiBi. A problem that needs none of it, or whose window hides nothing, is one of the others.\n",
      table.text());
}

std::vector<NameRecord> records(const Kernel& kernel, NameKind kind) {
  std::vector<NameRecord> all;
  for (const NameRecord* r = kernel.names; r->kind != NameKind::end; ++r)
    if (r->kind == kind) all.push_back(*r);
  return all;
}

void print_roles(const Kernel& kernel, const std::string& title) {
  const std::vector<NameRecord> roles = records(kernel, NameKind::role);
  const bool has_query =
      std::any_of(roles.begin(), roles.end(), [](const NameRecord& r) { return r.name == std::string("query"); });
  Table table({"role", "warps", ">threads", ">registers", "job"});
  const auto job = [&](const std::string& role) -> const char* {
    if (role.starts_with("softmax")) return "online softmax of a Q stage: S to P, one row a thread";
    if (role == "correction") return "rescales O when a maximum has moved enough, normalises it, writes LSE";
    if (role == "mma") return "issues both MMAs from one thread, owns TMEM";
    if (role.starts_with("consumer")) return "64 rows of Q: both products and online softmax, O and LSE";
    if (role == "query") return "TMA loads of Q, and what the task is";
    if (role == "load") return has_query ? "TMA loads of K and V" : "TMA loads of Q, K and V";
    if (role == "store") return "TMA stores of O";
    if (role == "scheduler") return "finds the tasks, by the lengths of batch entries, and hands them to the other roles";
    return "sleeps";
  };
  for (const NameRecord& r : roles) {
    table.add({r.name,
               r.begin + 1 == r.end ? std::to_string(r.begin) : fmt::format("{}-{}", r.begin, r.end - 1),
               std::to_string((r.end - r.begin) * 32), std::to_string(kernel.registers_of(r.begin)), job(r.name)});
  }
  fmt::print("{}{}", heading(title), table.text());
}

// `besides`: only those whose names another kernel has not; null: all.
void print_regions(const Kernel& kernel, NameKind kind, const std::string& title, const char* unit, const Kernel* besides = nullptr) {
  std::vector<NameRecord> regions = records(kernel, kind);
  if (besides != nullptr) {
    const std::vector<NameRecord> there = records(*besides, kind);
    std::erase_if(regions, [&](const NameRecord& r) {
      return std::any_of(there.begin(), there.end(), [&](const NameRecord& t) { return t.name == std::string(r.name); });
    });
  }
  std::stable_sort(regions.begin(), regions.end(),
                   [](const NameRecord& a, const NameRecord& b) { return a.begin < b.begin; });
  Table table({"name", ">begin", ">end", fmt::format(">{}", unit)});
  for (const NameRecord& r : regions)
    table.add({r.name, std::to_string(r.begin), std::to_string(r.end), std::to_string(r.end - r.begin)});
  fmt::print("{}{}", heading(title), table.text());
}

// Those that the kernel has; with `besides`, and the other has not.
void print_barriers(const Kernel& kernel, const std::string& title, const Kernel* besides = nullptr) {
  Table table({"barrier", ">stages", "flavour", ">arrivals", "who signals", "who waits"});
  Table meanings({"barrier", "a completed phase says"});
  for (uint32_t i = 0; i < kernel.barrier_rows; ++i) {
    const BarrierRow& row = kernel.barriers[i];
    if (row.stages == 0 || (besides != nullptr && besides->barriers[i].stages != 0)) continue;
    const char* flavour = row.flavour == BarrierFlavour::tma       ? "TMABar"
                          : row.flavour == BarrierFlavour::tcgen05 ? "TCGen05Bar"
                                                                   : "MBarrier";
    const std::string arrivals = std::to_string(row.arrivals);
    table.add({row.name, std::to_string(row.stages), flavour,
               row.bytes ? fmt::format("{} + {} B", arrivals, row.bytes) : arrivals, row.signals, row.waits});
    meanings.add({row.name, row.meaning});
  }
  fmt::print("{}{}\n{}", heading(title), table.text(),
             meanings.text());
}

std::string head_dims_text(const Config& config) {
  if (config.qk_dim == config.v_dim) return fmt::format("head dimension {}", config.qk_dim);
  return fmt::format("head dimension {}, V {}", config.qk_dim, config.v_dim);
}

// What element types, and masks but for general kernels, do not change, for each head dimension.
void print_architecture(const KernelList& list) {
  for (const Kernel& kernel : list) {
    if (!list.first_of_head_dim(kernel)) continue;
    const std::string which = fmt::format("{}, {}", list.name, head_dims_text(kernel.config));
    print_roles(kernel, fmt::format("Roles of a CTA: {}", which));
    if (!records(kernel, NameKind::tmem).empty())
      print_regions(kernel, NameKind::tmem,
                    fmt::format("TMEM map: {} (columns of 128 lanes x 32 bits; P lies inside S)", which), "columns");
    print_regions(kernel, NameKind::shared,
                  fmt::format("Shared-memory map: {} (bytes from the start of dynamic shared memory)", which), "bytes");
    print_barriers(kernel, fmt::format("Barriers: {} (arrivals, and bytes, that complete a phase)", which));

    const auto general = std::find_if(list.begin(), list.end(), [&](const Kernel& k) {
      return k.config.general() && k.config.qk_dim == kernel.config.qk_dim && k.config.v_dim == kernel.config.v_dim;
    });
    if (general == list.end()) continue;
    // Of the same tiles; there may be others for short sequences.
    const auto plain = std::find_if(list.begin(), list.end(), [&](const Kernel& k) {
      return !k.config.general() && k.config.qk_dim == kernel.config.qk_dim && k.config.v_dim == kernel.config.v_dim &&
             k.config.block_rows() == general->config.block_rows();
    });
    const Kernel& besides = plain == list.end() ? kernel : *plain;
    print_roles(*general, fmt::format("Roles of a CTA: {}, general", which));
    print_regions(*general, NameKind::shared, fmt::format("Shared memory besides: {}, general", which), "bytes", &besides);
    print_barriers(*general, fmt::format("Barriers besides: {}, general", which), &besides);
  }
}

}  // namespace

std::vector<AssembledKernel> parse_ptxas_log(const std::string& log) {
  std::vector<AssembledKernel> kernels;
  bool has_frame = true, has_registers = true;
  const auto require_complete = [&] {
    if (!has_frame || !has_registers)
      throw std::runtime_error(
          fmt::format("the assembler's report has no registers or stack frame for {}", kernels.back().name));
  };
  for (size_t at = 0; at < log.size();) {
    const size_t end = std::min(log.find('\n', at), log.size());
    const std::string text = log.substr(at, end - at);
    at = end + 1;
    char name[128], target[32];
    if (std::sscanf(text.c_str(), "ptxas info : Compiling entry function '%127[^']' for '%31[^']'", name,
                    target) == 2) {
      require_complete();
      kernels.push_back({name, target});
      has_frame = has_registers = false;
    } else if (!kernels.empty()) {
      AssembledKernel& k = kernels.back();
      if (std::sscanf(text.c_str(), " %d bytes stack frame, %d bytes spill stores, %d bytes spill loads",
                      &k.stack_bytes, &k.spill_store_bytes, &k.spill_load_bytes) == 3)
        has_frame = true;
      if (std::sscanf(text.c_str(), "ptxas info : Used %d registers, used %d barriers", &k.registers,
                      &k.named_barriers) >= 1)
        has_registers = true;
    }
  }
  if (kernels.empty()) throw std::runtime_error("the assembler's report names no kernel");
  require_complete();
  return kernels;
}

int info(const std::string& driver, const std::string& gpu) {
  try {
    std::string names;
    // How exponentials are computed changes nothing else that is said of an architecture.
    std::vector<const KernelList*> architectures;
    for (const KernelList* list : kArchitectures)
      if (list->exp2 == Exp2::mufu) architectures.push_back(list);
    for (const KernelList* list : architectures) names += (names.empty() ? "" : " and ") + std::string(list->name);
    fmt::print("fa4 {}: FlashAttention forward for NVIDIA {}, head dimensions of Q and K, and of V, that are multiples of 8 up to {}, "
               "fp16 and bf16\n",
               FA4_VERSION_TEXT, names, kArchitectures[0]->most_head_dim());
    simulate(gpu);
    print_devices(driver);
    print_image();
    for (const KernelList* list : architectures) print_architecture(*list);
  } catch (const std::runtime_error& error) {
    std::fflush(stdout);
    fmt::print(stderr, "fa4 info: {}\n", error.what());
    return kDeviceFailed;
  }
  return kSuccess;
}

}  // namespace fa4::cli
