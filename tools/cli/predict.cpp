// SPDX-License-Identifier: Apache-2.0
// `fa4 time`.
#include "predict.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "asm/attention/kernels.h"
#include "asm/attention/task.h"
#include "devices.h"
#include "findings.h"
#include "guarded.h"
#include "runtime/image.h"
#include "runtime/library.h"
#include "runtime/plan.h"
#include "support/attention_device.h"
#include "table.h"
#include "tensors.h"
#include "tools/image/fatbinary.h"
#include "tools/time/band.h"
#include "tools/time/nvdisasm.h"
#include "tools/time/record_file.h"
#include "tools/time/report.h"
#include "tools/time/timeline.h"

namespace fa4::cli {
namespace {

void line(const char* label, const std::string& text) {
  fmt::print("  {:<9} {}\n", label, text);
}

// The PTX and the machine code of an image.
struct Image {
  std::string ptx;
  std::string cubin;
};

// Those that a device of this compute capability, 10 * major + minor, runs. A cubin or a PTX text alone has
// but one of them.
Image split_image(const void* bytes, uint32_t device) {
  std::vector<ImageEntry> held;
  Message message;
  if (read_image(bytes, held, message) != FA4_OK) throw Refusal(message.text());
  std::vector<image::Entry> entries;
  if (std::memcmp(bytes, &image::fatbinary_magic, sizeof image::fatbinary_magic) == 0) {
    const std::string wrong =
        image::read_fatbinary(static_cast<const unsigned char*>(bytes), image::unknown_size, &entries);
    if (!wrong.empty()) throw Refusal("the image is a damaged fatbinary: " + wrong);
  }
  Image split;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!held[i].runs_on(device)) continue;
    const std::string wrong =
        unpack(entries[i], held[i].kind == ImageEntry::Kind::ptx ? &split.ptx : &split.cubin);
    if (!wrong.empty()) throw Refusal("the image cannot be read: " + wrong);
  }
  split.ptx.resize(strnlen(split.ptx.c_str(), split.ptx.size()));  // without the padding behind it
  if (split.ptx.empty() || split.cubin.empty())
    throw Refusal(fmt::format(
        "the image has to hold both PTX and a cubin for the GPU that is simulated, sm_{}; it holds {}",
        device, describe_image(held)));
  return split;
}

// Blocks of keys that a CTA works on, and its tasks.
template <Config config>
uint64_t count_blocks(const AttentionParams& p, int32_t grid, int32_t cta, uint64_t* tasks) {
  uint64_t sum = 0;
  *tasks = 0;
  for (int32_t wave = 0;; ++wave) {
    const int32_t place = task_of(p.order, cta, wave, grid);
    if (place < 0) return sum;
    const TaskId id = decode_task(p.order, place);
    const BlockRegions blocks = visited_blocks<config>(Mask<config.mask>{}, make_task<config>(p, id));
    ++*tasks;
    sum += uint64_t(blocks.end - blocks.begin);
  }
}

template <const KernelList& list, size_t... i>
uint64_t blocks_of(const Plan& plan, int32_t cta, uint64_t* tasks, std::index_sequence<i...>) {
  uint64_t blocks = 0;
  ((plan.kernel == list.first + i
        ? void(blocks = count_blocks<list.first[i].config>(plan.params, int32_t(plan.grid), cta, tasks))
        : void()),
   ...);
  return blocks;
}

template <const KernelList&... lists>
uint64_t blocks_of_any(const Plan& plan, int32_t cta, uint64_t* tasks) {
  uint64_t blocks = 0;
  ((plan.kernel >= lists.begin() && plan.kernel < lists.end()
        ? void(blocks = blocks_of<lists>(plan, cta, tasks, std::make_index_sequence<lists.count>()))
        : void()),
   ...);
  return blocks;
}

uint64_t blocks_of(const Plan& plan, int32_t cta, uint64_t* tasks) {
  return blocks_of_any<hopper::kKernels, blackwell::kPolynomialKernels, blackwell::kKernels>(plan, cta, tasks);
}

// What is timed: an entry as machine code and as PTX, and what its run did to synchronise.
struct Subject {
  std::string title;  // "fa4_forward_f16_full, CTA 0 of 128"
  std::string kernel;
  std::string ptx;
  std::string cubin;
  std::vector<fa4sim_sync> records;
  uint64_t tasks = 0;  // of the CTA; 0: not known
};

// Runs the CTA with the most work of our own kernel.
Subject record_attention(const TimeRequest& request, uint32_t sms) {
  std::vector<char> given;
  if (!request.image_path.empty()) given = read_image(request.image_path);
  const Loaded loaded = load(request.problem);
  const DeviceChoice choice = choose_device(DeviceKind::sim, request.problem.driver);
  support::AttentionDevice device(choice.library, choice.ordinal);
  if (!device.simulated()) throw DeviceError(fmt::format("{} is no simulated GPU", choice.library));
  const KernelList& kernels = kernels_of(device.gpu().properties());
  Plan plan{};
  Message message;
  if (plan_forward(dry_params(loaded.problem, request.problem), {&kernels, sms}, plan,
                   message) != FA4_OK)
    throw Refusal(message.text());
  if (plan.grid == 0) throw Refusal("there is nothing to compute, and so nothing to time");
  if (request.cta >= int64_t(plan.grid))
    throw Refusal(fmt::format("--cta {}: the launch has the CTAs 0 to {}", request.cta, plan.grid - 1));
  uint64_t most = 0, tasks = 0, cta = 0;
  for (uint32_t c = 0; c < plan.grid; ++c) {
    if (request.cta >= 0 && c != uint64_t(request.cta)) continue;
    uint64_t n = 0;
    const uint64_t blocks = blocks_of(plan, int32_t(c), &n);
    // Of those with as many blocks, the one with the most tasks: each has a beginning and an end of its own.
    if (tasks != 0 && std::pair(blocks, n) <= std::pair(most, tasks)) continue;
    most = blocks;
    tasks = n;
    cta = c;
  }

  Image image = split_image(given.empty() ? builtin_image() : given.data(), device.gpu().properties().arch());
  device.set_host_threads(request.problem.threads);
  if (!given.empty()) device.set_image(std::move(given));
  const support::SimulatorApi& simulator = device.gpu().simulator();
  if (simulator.record(&cta, 1) != 0) throw DeviceError(simulator.last_error());
  support::RunOptions options;
  options.scheduler = scheduler_of(request.problem);
  options.exp2 = exp2_of(request.problem);
  options.sm_count = sms;
  options.lse = false;
  device.run(loaded.problem, loaded.inputs, options);

  Subject subject;
  subject.kernel = plan.kernel->entry;
  subject.title = fmt::format("{}; the CTA with the most work, {} of {}: {} tasks, {} blocks of keys",
                              support::describe(loaded.problem), cta, plan.grid, tasks, most);
  subject.tasks = tasks;
  subject.ptx = std::move(image.ptx);
  subject.cubin = std::move(image.cubin);
  subject.records.resize(simulator.take_sync(cta, nullptr, 0));
  simulator.take_sync(cta, subject.records.data(), subject.records.size());
  return subject;
}

// What another program's launch did, and the machine code that belongs to it.
Subject read_subject(const TimeRequest& request) {
  if (request.cubin_path.empty())
    throw Refusal("--record needs --cubin: the machine code of the recorded kernel");
  std::vector<fa4::time::RecordedLaunch> launches = fa4::time::read_record_file(request.record_path);
  const int64_t last = int64_t(launches.size()) - 1;
  if (request.launch > last)
    throw Refusal(
        fmt::format("--launch {}: {} has the launches 0 to {}", request.launch, request.record_path, last));
  fa4::time::RecordedLaunch& launch = launches[size_t(request.launch < 0 ? last : request.launch)];
  if (launch.records.empty())
    throw Refusal(
        fmt::format("CTA {} of the launch of {} did not synchronise, or there is no such CTA: "
                    "FA4SIM_RECORD_CTA chooses it",
                    launch.cta, launch.kernel));
  Subject subject;
  subject.kernel = launch.kernel;
  subject.title = fmt::format("CTA {} of {}, {} threads; {}", launch.cta, launch.ctas, launch.threads,
                              request.record_path);
  subject.ptx = std::move(launch.ptx);
  subject.records = std::move(launch.records);
  std::ifstream file(request.cubin_path, std::ios::binary);
  subject.cubin.assign(std::istreambuf_iterator<char>(file), {});
  if (!file || subject.cubin.empty())
    throw Refusal(fmt::format("--cubin {}: the file cannot be read", request.cubin_path));
  return subject;
}

using fa4::time::Chip;

std::string simulated_as(const Chip& chip) {
  return fmt::format("sm_{}", chip.arch);
}

// The chip that the options name; the simulated GPU becomes the one that goes with it.
const Chip& choose_chip(const TimeRequest& request) {
  const char* environment = std::getenv("FA4SIM_GPU");
  std::string simulated = request.problem.gpu;
  if (simulated.empty() && request.chip.empty() && environment) simulated = environment;
  const Chip* chosen = nullptr;
  for (const Chip& chip : fa4::time::kChips) {
    if (!request.chip.empty() ? chip.name == request.chip
                              : simulated_as(chip) == (simulated.empty() ? "sm_100" : simulated))
      chosen = &chip;
  }
  if (!chosen) throw Refusal(fmt::format("FA4SIM_GPU {}: sm_90, sm_100 and sm_103 are accepted", simulated));
  if (!simulated.empty() && simulated != simulated_as(*chosen))
    throw Refusal(fmt::format("--chip {} --gpu {}: --chip {} goes with --gpu {}", request.chip, simulated,
                              request.chip, simulated_as(*chosen)));
  simulate(simulated_as(*chosen));
  return *chosen;
}

// The model's numbers, and where those come from that are not the table's.
struct Numbers {
  fa4::time::Gpu gpu;
  std::string measured_on;  // "NVIDIA B200"; "": all are the table's
  size_t count = 0;
};

// Those of the chip; what a report of `fa4 verify` has measured replaces the table's.
Numbers numbers_of(const Chip& chip, const std::string& path) {
  Numbers numbers{fa4::time::gpu_of(chip.name), "", 0};
  if (path.empty()) return numbers;
  try {
    std::ifstream file(path);
    const nlohmann::json report = nlohmann::json::parse(file);
    const auto& measured = report.at("times").at("measured").get_ref<const nlohmann::json::object_t&>();
    const std::string capability = report.at("gpu").at("compute_capability");
    numbers.measured_on = report.at("gpu").at("name");
    const std::string wanted = fmt::format("{}.{}", chip.arch / 10, chip.arch % 10);
    if (capability != wanted)
      throw Refusal(
          fmt::format("--parameters {}: measured on a GPU of compute capability {}, where {} has {}", path,
                      capability, numbers.gpu.name, wanted));
    for (const auto& [name, value] : measured)
      fa4::time::set_measured(numbers.gpu, name, value.get<double>());
    numbers.count = measured.size();
  } catch (const nlohmann::json::exception&) {
    throw Refusal(
        fmt::format("--parameters {}: no report of `fa4 verify --json` from a GPU that was timed", path));
  } catch (const fa4::time::Error& error) {
    throw Refusal(fmt::format("--parameters {}: {}", path, error.what()));
  }
  return numbers;
}

std::string percent(double part, double whole) {
  return whole > 0 && part / whole >= 0.0005 ? fmt::format("{:.1f}", 100 * part / whole) : "-";
}

// Groups of causes, as columns.
struct Column {
  const char* title;
  std::vector<fa4::time::Cause> causes;
};
const std::vector<Column>& columns() {
  using enum fa4::time::Cause;
  static const std::vector<Column> all = {
      {">issue", {issue}},
      {">latency", {dependency}},
      {">MUFU", {mufu_result, mufu_busy}},
      {">FMA", {ffma_busy}},
      {">ALU", {alu_busy, imad_busy, uniform_busy}},
      {">TMEM", {tmem_result, tmem_busy}},
      {">memory", {shared_result, memory_result, memory_busy, other_result}},
      {">MMA, TMA", {tensor_sources, mma_busy, tma_busy, mma_group, group}},
      {">registers", {registers_busy}},
      {">branch", {branch}},
      {">other warp", {other_warp}},
      {">barriers", {barrier, cta_barrier}},
      {">ended", {over}},
  };
  return all;
}

double cycles_of(const fa4::time::RoleReport& role, const Column& column) {
  double sum = 0;
  for (fa4::time::Cause cause : column.causes) sum += role.cycles[size_t(cause)];
  return sum;
}

void print_roles(const fa4::time::Report& r) {
  std::vector<std::string> titles{"role", "warps"};
  std::vector<Column> shown;  // a GPU has tensor memory, or its MMAs take the registers' place
  for (const Column& column : columns())
    if (std::ranges::any_of(r.roles, [&](const auto& role) { return cycles_of(role, column) > 0; }))
      shown.push_back(column);
  for (const Column& column : shown) titles.push_back(column.title);
  titles.push_back(">instr./tile");
  Table table(titles);
  for (const fa4::time::RoleReport& role : r.roles) {
    std::vector<std::string> cells{role.name, role.begin + 1 == role.end
                                                  ? std::to_string(role.begin)
                                                  : fmt::format("{}-{}", role.begin, role.end - 1)};
    for (const Column& column : shown) cells.push_back(percent(cycles_of(role, column), double(r.cycles)));
    cells.push_back(r.tiles > 0 ? fmt::format("{:.0f}", role.issued / r.tiles) : "-");
    table.add(cells);
  }
  fmt::print("{}{}", heading("Where the cycles of each role go, in % (a mean of its warps)"), table.text());
  Table waits({"role", "waits for", ">% of its time", ">cycles a tile"});
  for (const fa4::time::RoleReport& role : r.roles)
    for (const auto& [name, cycles] : role.barriers)
      if (cycles * 50 >= double(r.cycles))
        waits.add({role.name, name, percent(cycles, double(r.cycles)),
                   r.tiles > 0 ? fmt::format("{:.0f}", cycles / r.tiles) : "-"});
  fmt::print("{}{}", heading("What it waits for (from 2 % on)"), waits.text());
}

void print_chain(const fa4::time::Report& r) {
  if (!r.loop.empty()) {
    uint64_t sum = 0;
    for (const fa4::time::ChainPart& part : r.loop) sum += part.cycles;
    Table table({"in this order", ">cycles"});
    for (const fa4::time::ChainPart& part : r.loop) table.add({part.what, grouped(part.cycles)});
    table.add({fmt::format("once around; seen {} times", r.loop.front().count), grouped(sum)});
    fmt::print("{}{}", heading("The loop of dependencies that sets the pace"), table.text());
  }
  const double half = double(r.cycles) / 2;
  Table table({"part", ">times", ">cycles each", ">%"});
  size_t shown = 0;
  for (const fa4::time::ChainPart& part : r.parts) {
    if (++shown > 14) break;
    table.add({part.what, grouped(part.count), grouped(part.cycles / part.count),
               percent(double(part.cycles), half)});
  }
  fmt::print("{}{}", heading("The chain that decides when the launch ends, its middle half by parts"),
             table.text());
}

void print_bounds(const fa4::time::Report& r) {
  Table table({"part of the SM", ">cycles a tile", ">% of the time"});
  for (const fa4::time::Bound& bound : r.bounds)
    table.add({bound.part, r.tiles > 0 ? fmt::format("{:.0f}", bound.cycles / r.tiles) : "-",
               percent(bound.cycles, double(r.cycles))});
  fmt::print("{}{}", heading("What each part would need if nothing else took time: the first one binds next"),
             table.text());
}

void print_band(const fa4::time::Band& band, const fa4::time::Report& r) {
  Table table({"with", ">cycles", ">change", "because"});
  for (const fa4::time::Variation& v : band.variations)
    table.add({v.what, grouped(v.cycles),
               fmt::format("{:+.1f} %", 100 * (double(v.cycles) / double(r.cycles) - 1)), v.source});
  fmt::print("{}{}", heading("What the prediction hangs on, the launch aside: what is not known of this GPU"),
             table.text());
}

nlohmann::json parts_json(const std::vector<fa4::time::ChainPart>& parts) {
  nlohmann::json all = nlohmann::json::array();
  for (const fa4::time::ChainPart& part : parts)
    all.push_back({{"part", part.what}, {"times", part.count}, {"cycles", part.cycles}});
  return all;
}

nlohmann::json report_json(const Subject& subject, const Numbers& known, const fa4::time::Report& r,
                           const fa4::time::Band& band, const fa4::time::Replay& replay) {
  const fa4::time::Gpu& gpu = known.gpu;
  nlohmann::json roles = nlohmann::json::array(), bounds = nlohmann::json::object(),
                 variations = nlohmann::json::array(), numbers = nlohmann::json::object();
  for (const fa4::time::RoleReport& role : r.roles) {
    nlohmann::json causes = nlohmann::json::object(), barriers = nlohmann::json::object();
    for (size_t c = 0; c < role.cycles.size(); ++c)
      causes[fa4::time::name_of(fa4::time::Cause(c))] = role.cycles[c];
    for (const auto& [name, cycles] : role.barriers) barriers[name] = cycles;
    roles.push_back({{"name", role.name},
                     {"first_warp", role.begin},
                     {"warps", role.end - role.begin},
                     {"instructions", role.issued},
                     {"cycles", causes},
                     {"barriers", barriers}});
  }
  for (const fa4::time::Bound& bound : r.bounds) bounds[bound.part] = bound.cycles;
  for (const fa4::time::Variation& v : band.variations)
    variations.push_back({{"with", v.what}, {"cycles", v.cycles}, {"because", v.source}});
  for (size_t i = 0; i < fa4::time::parameters().size(); ++i) {
    const fa4::time::Parameter& p = fa4::time::parameters()[i];
    numbers[p.name] = {{"value", gpu.*p.member},
                       {"unit", p.unit},
                       {"source", gpu.replaced >> i & 1 ? "measured on an " + known.measured_on : p.source}};
  }
  return {{"kernel", subject.kernel},
          {"subject", subject.title},
          {"gpu", gpu.name},
          {"predicted", true},
          {"cycles", r.cycles},
          {"launch_cycles", gpu.launch},
          {"cycles_low", band.low},
          {"cycles_high", band.high},
          {"clock_mhz", gpu.clock_mhz},
          {"tasks", subject.tasks},
          {"tiles", r.tiles},
          {"tensor_core_share", r.tensor_share},
          {"roles", roles},
          {"loop", parts_json(r.loop)},
          {"chain", parts_json(r.parts)},
          {"bounds", bounds},
          {"variations", variations},
          {"ambiguous_matches", replay.matching.ambiguous},
          {"stretches", replay.stretches},
          {"stretches_with_choice", replay.stretches_with_choice},
          {"numbers", numbers}};
}

void write_file(const char* option, const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw Refusal(fmt::format("{} {}: the file cannot be written", option, path));
  line("wrote", path);
}

void write_pictures(const TimeRequest& request, const Subject& subject, const fa4::time::Gpu& gpu,
                    const fa4::time::Replay& replay, const fa4::time::Timing& timing,
                    const fa4::time::Names& names, const fa4::time::Report& report) {
  if (request.svg_path.empty() && request.trace_path.empty()) return;
  const fa4::time::Timeline timeline = fa4::time::timeline(replay, timing, names, report);
  if (!request.trace_path.empty())
    write_file("--trace", request.trace_path, fa4::time::chrome_trace(timeline, timing, names));
  if (request.svg_path.empty()) return;
  constexpr uint64_t shown = 40000;  // cycles that are legible in one picture
  const uint64_t begin = std::min(request.from, timing.cycles);
  const uint64_t end = std::min(timing.cycles, request.until != 0 ? request.until : begin + shown);
  if (begin >= end)
    throw Refusal(fmt::format("--from {} --until {}: the launch takes {} cycles", request.from, request.until,
                              timing.cycles));
  const std::string title =
      fmt::format("{}: {}, cycles predicted for a {}", subject.kernel, subject.title, gpu.name);
  write_file("--svg", request.svg_path, fa4::time::svg(timeline, begin, end, title));
}

int predict_checked(const TimeRequest& request) {
  const std::string nvdisasm = fa4::time::find_nvdisasm({FA4_NVDISASM_PLACES});
  if (nvdisasm.empty()) throw Refusal(fa4::time::how_to_get_nvdisasm());
  const Numbers known = numbers_of(choose_chip(request), request.parameters_path);
  const fa4::time::Gpu& gpu = known.gpu;
  const Subject subject =
      request.record_path.empty()
          ? record_attention(request, request.problem.sms ? request.problem.sms : gpu.sm_count)
          : read_subject(request);

  const sim::ptx::Module module = sim::ptx::parse(subject.ptx);
  const std::vector<fa4::time::Function> functions =
      fa4::time::parse_disassembly(fa4::time::disassemble(nvdisasm, subject.cubin));
  const auto sass = std::ranges::find(functions, subject.kernel, &fa4::time::Function::name);
  const auto ptx = std::ranges::find(module.functions, subject.kernel, &sim::ptx::Function::name);
  if (sass == functions.end() || ptx == module.functions.end())
    throw Refusal("there is no entry " + subject.kernel + " in both the PTX and the cubin");
  fa4::time::Replay replay = fa4::time::make_replay(*sass, *ptx, subject.records, gpu);
  const fa4::time::Names names(module, subject.kernel, replay);
  const fa4::time::Timing timing = fa4::time::run(replay.program, gpu, fa4::time::kNominalArbitration);
  const fa4::time::Report report = fa4::time::report(replay.program, timing, gpu, names);
  const fa4::time::Band band = fa4::time::band(replay, *sass, gpu, timing.cycles);

  const auto microseconds = [&](uint64_t cycles) { return double(cycles) / gpu.clock_mhz; };
  line("kernel", subject.kernel);
  line("", subject.title);
  line("GPU", fmt::format("{}; the cycles are predicted from the machine code, none was measured", gpu.name));
  line("", gpu.held);
  if (known.count != 0)
    line("numbers",
         fmt::format("{} as measured on an {}: {}", known.count, known.measured_on, request.parameters_path));
  const auto launched = [&](uint64_t cycles) { return grouped(cycles + gpu.launch); };
  line("predicted",
       fmt::format("{} cycles for the launch: {:.1f} us at {} MHz; {} from the first instruction to the last",
                   launched(report.cycles), microseconds(report.cycles + gpu.launch), gpu.clock_mhz,
                   grouped(report.cycles)));
  line("", fmt::format("{} to {} {}", launched(band.low), launched(band.high),
                       gpu.measured ? "with another order among the warps of a scheduler"
                                    : "where a number is not known"));
  if (subject.tasks != 0)
    line("", fmt::format("{} a task, the launch aside", grouped(report.cycles / subject.tasks)));
  if (report.tiles > 0)
    line("", fmt::format("{:.0f} a tile of 128 x 128 x 128, both products ({:.0f} to {:.0f}); the tensor "
                         "core is busy {:.1f} %",
                         double(report.cycles) / report.tiles, double(band.low) / report.tiles,
                         double(band.high) / report.tiles, 100 * report.tensor_share));
  line("matched", fmt::format("{} synchronising instructions to those of the PTX; {} of {} stretches between "
                              "them have more than one way: the one like what the warp computed",
                              replay.sass.nodes.size() - 2, replay.stretches_with_choice, replay.stretches));
  write_pictures(request, subject, gpu, replay, timing, names, report);
  print_roles(report);
  print_chain(report);
  print_bounds(report);
  print_band(band, report);
  if (!request.json_path.empty()) {
    std::ofstream file(request.json_path);
    file << report_json(subject, known, report, band, replay).dump(2) << '\n';
    if (!file.flush()) throw Refusal(fmt::format("--json {}: the file cannot be written", request.json_path));
    line("wrote", request.json_path);
  }
  return kSuccess;
}

}  // namespace

int predict(const TimeRequest& request) {
  return guarded("time", [&] { return predict_checked(request); });
}

}  // namespace fa4::cli
