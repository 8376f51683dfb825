// SPDX-License-Identifier: Apache-2.0
// The command line: the options of every command.
#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <string>

#include "bench.h"
#include "check.h"
#include "info.h"
#include "run.h"
#include "predict.h"
#include "verify.h"

namespace {

using namespace fa4::cli;

// Options that give a shape, and options that give files: one kind or the other.
constexpr const char* kShapeOptions[] = {"--batch", "--seq-q", "--seq-kv", "--heads", "--kv-heads", "--head-dim",
                                         "--head-dim-v", "--seed"};
constexpr const char* kFileOptions[] = {"--q", "--k", "--v"};

void add_shape(CLI::App* run, RunRequest& r) {
  const char* shape = "Shape and seeded inputs";
  run->add_option("--batch", r.batch, "Batch entries")->capture_default_str()->group(shape);
  run->add_option("--seq-q", r.seq_q, "Query positions")->capture_default_str()->group(shape);
  run->add_option("--seq-kv", r.seq_kv, "Key positions; default: as --seq-q")->group(shape);
  run->add_option("--heads", r.q_heads, "Query heads, a multiple of --kv-heads")
      ->capture_default_str()
      ->group(shape);
  run->add_option("--kv-heads", r.kv_heads, "K/V heads")->capture_default_str()->group(shape);
  run->add_option("--head-dim", r.head_dim, "Head dimension of Q and K: a multiple of 8 up to 256")->capture_default_str()->group(shape);
  run->add_option("--head-dim-v", r.head_dim_v, "The same of V and O; default: as --head-dim")->group(shape);
  run->add_option("--seed", r.seed, "Seed of the inputs")->capture_default_str()->group(shape);
}

CLI::Option* add_text(CLI::App* command, const std::string& name, std::string& text, const std::string& type,
                      const std::string& meaning) {
  return command->add_option(name, text, meaning)
      ->type_name(type)
      ->check([](const std::string& given) { return given.empty() ? "nothing is given" : std::string(); }, "");
}

void set_window(RunRequest& r, const std::string& text) {
  const size_t comma = text.find(',');
  const auto bound = [&](const std::string& part, int64_t& keys) {
    const char* const end = part.data() + part.size();
    const auto [behind, error] = std::from_chars(part.data(), end, keys);
    return error == std::errc() && behind == end && keys >= -1;
  };
  if (comma == std::string::npos || !bound(text.substr(0, comma), r.window_left) ||
      !bound(text.substr(comma + 1), r.window_right))
    throw CLI::ValidationError("--window", text + ": LEFT,RIGHT is accepted, each a number of keys, or -1 for no bound");
  r.window = true;
}

// What a general kernel takes of a problem: masks and scores, and lengths of batch entries.
void add_features(CLI::App* command, RunRequest& r) {
  const char* problem = "Problem";
  command
      ->add_option_function<std::string>(
          "--window", [&r](const std::string& text) { set_window(r, text); },
          "So many keys before and behind its diagonal a query sees, besides the one on it; -1: all on that side")
      ->type_name("LEFT,RIGHT")
      ->group(problem);
  command
      ->add_flag("--top-left", r.top_left,
                 "The diagonal of --causal, --window and --alibi goes through the first query and the first key: query i's key is i, "
                 "not i + seq-kv - seq-q")
      ->group(problem);
  command->add_option("--softcap", r.softcap, "Scores become X tanh(score / X)")->type_name("X")->group(problem);
  add_text(command, "--sinks", r.sinks, "[FILE]", "One more logit in the sum of each query head's rows: .npy float32 (heads)")
      ->expected(0, 1)
      ->default_str(kSeeded)
      ->group(problem);
  add_text(command, "--alibi", r.alibi, "[FILE]",
           "Scores lose slope * distance from the diagonal: slopes as .npy float32 (heads) or (batch, heads)")
      ->expected(0, 1)
      ->default_str(kSeeded)
      ->group(problem);
  const char* lengths = "Lengths of batch entries: a list such as 100,2000,7, or FILE.npy, int32";
  for (const char side : {'q', 'k'}) {
    LengthOptions& given = side == 'q' ? r.q_lengths : r.kv_lengths;
    const std::string names = side == 'q' ? "Q and O" : "K and V", end(1, side);
    add_text(command, "--lengths-" + end, given.lengths, "LIST",
             names + " lie packed, (rows, heads, head dimension): rows of each entry" +
                 (side == 'q' ? "" : "; default: as --lengths-q, without --seq-kv"))
        ->group(lengths);
    add_text(command, "--cu-seqlens-" + end, given.cu_seqlens, "LIST",
             "The same as prefix sums: 0 and where each entry ends, 0,100,2100,2107")
        ->group(lengths);
    add_text(command, "--seqused-" + end, given.seqused, "LIST", "Of each entry of " + names + " only so many rows count")
        ->group(lengths);
  }
}

void add_problem(CLI::App* run, RunRequest& r) {
  run->add_flag("--causal", r.causal, "Query i sees keys j <= i + seq-kv - seq-q")->group("Problem");
  run->add_option("--dtype", r.dtype, "fp16 or bf16; default: the files' type, or fp16")
      ->check(CLI::IsMember({"fp16", "bf16"}))
      ->group("Problem");
  run->add_option("--scale", r.scale, "Softmax scale; default: 1 / sqrt(head dimension)")->group("Problem");
}

CLI::Option* add_gpu(CLI::App* command, std::string& gpu, const char* meaning) {
  return command->add_option("--gpu", gpu, meaning)->check(CLI::IsMember({"sm_90", "sm_100", "sm_103"}));
}

CLI::Option* add_exp2(CLI::App* command, std::string& exp2) {
  return command
      ->add_option("--exp2", exp2, "What computes exponentials; auto: polynomial for a share of them on compute capability 10.0, else mufu")
      ->check(CLI::IsMember({"auto", "mufu", "polynomial"}))
      ->default_str("auto");
}

void add_device_kind(CLI::App* command, DeviceKind& kind, const char* meaning) {
  command
      ->add_option_function<std::string>(
          "--device",
          [&kind](const std::string& text) {
            kind = text == "gpu" ? DeviceKind::gpu : text == "sim" ? DeviceKind::sim : DeviceKind::automatic;
          },
          meaning)
      ->check(CLI::IsMember({"auto", "gpu", "sim"}))
      ->default_str("auto")
      ->group("Device");
}

void add_device(CLI::App* run, RunRequest& r,
                const char* gpu_default = "The GPU that is simulated; default: sm_100") {
  run->add_option("--driver", r.driver, "Driver library in place of libcuda.so.1 or libfa4sim.so")
      ->group("Device");
  add_gpu(run, r.gpu, gpu_default)->group("Device");
  run->add_option("--sms", r.sms, "SMs of the simulated GPU (148 or 132); an upper bound on CTAs on a real one")
      ->check(CLI::Range(1, 65535))
      ->group("Device");
  run->add_option("--threads", r.threads,
                  "Host threads of the simulation; default: all cores. Changes no result")
      ->check(CLI::Range(1, 1024))
      ->group("Device");
  run->add_option("--scheduler", r.scheduler, "auto: linear where no key is masked, else LPT; entries with lengths of their own have an order of their own")
      ->check(CLI::IsMember({"auto", "linear", "lpt"}))
      ->default_str("auto")
      ->group("Device");
  add_exp2(run, r.exp2)->group("Device");
}

CLI::App* add_run(CLI::App& app, RunRequest& r) {
  CLI::App* run = app.add_subcommand(
      "run", "Run one attention problem and, with --check, compare it with double precision");
  run->footer(
      "Without arguments: B=1, Sq=Skv=1024, Hq=32, Hkv=8, D=128, fp16, on a supported GPU or else on the "
      "simulated one.\n"
      "Exit codes: 0 done, 1 the check failed or there are hazards, 2 the request was refused, 3 the device "
      "failed.");
  add_shape(run, r);

  const char* files = "Files in place of a shape";
  run->add_option("--q", r.q_path,
                  "Queries, .npy of rank 4, or 3 with --lengths-q: float16, bfloat16 as uint16 or as ml_dtypes saves it with "
                  "--dtype bf16, or float32 with --dtype")
      ->group(files);
  run->add_option("--k", r.k_path, "Keys, .npy")->group(files);
  run->add_option("--v", r.v_path, "Values, .npy")->group(files);
  run->add_option("--out", r.out_path, "Write O here, .npy: float16, or bfloat16 as uint16; 0 in rows that do not count")->group("Outputs and layout");
  run->add_option("--lse", r.lse_path,
                  "Write the natural log-sum-exp here, .npy float32 (batch, heads, seq-q), packed (heads, rows); -inf in rows that do "
                  "not count")
      ->group("Outputs and layout");
  run->add_option_function<std::string>(
         "--layout", [&r](const std::string& text) { r.bhsd = text == "bhsd"; },
         "Order of the files' extents")
      ->check(CLI::IsMember({"bshd", "bhsd"}))
      ->default_str("bshd")
      ->group("Outputs and layout");
  add_problem(run, r);
  add_features(run, r);

  add_device_kind(run, r.device, "auto takes a supported GPU, else the simulated one");
  add_device(run, r);

  run->add_flag("--check", r.check, "Compare O and LSE with attention in double precision")->group("Check");
  run->add_flag("--hazards", r.hazards, "Watch the run with the happens-before checker (simulated GPU)")
      ->group("Check");
  run->add_option("--image", r.image_path,
                  "PTX or fatbinary with the same entries in place of the built-in image")
      ->group("Device");
  return run;
}

CLI::App* add_check(CLI::App& app, CheckRequest& r) {
  CLI::App* check = app.add_subcommand(
      "check", "Run a problem on the simulated GPU under the happens-before checker and adversarial timing");
  check->footer(
      "Without arguments: a small causal problem with grouped heads and tails on 3 SMs.\n"
      "Exit codes: 0 clean, 1 findings, 2 could not run.");
  r.problem.seq_q = 300;
  r.problem.q_heads = 4;
  r.problem.kv_heads = 2;
  r.problem.causal = true;
  r.problem.sms = 3;
  add_shape(check, r.problem);
  check
      ->add_flag("--causal,!--full", r.problem.causal,
                 "Query i sees keys j <= i + seq-kv - seq-q (default); --full: all keys")
      ->group("Problem");
  check->add_option("--dtype", r.problem.dtype, "fp16 or bf16")
      ->check(CLI::IsMember({"fp16", "bf16"}))
      ->group("Problem");
  check->add_option("--scale", r.problem.scale, "Softmax scale; default: 1 / sqrt(head dimension)")->group("Problem");
  add_features(check, r.problem);
  add_device(check, r.problem);
  check
      ->add_option("--image", r.image_path,
                   "PTX or fatbinary with the same entries in place of the built-in image")
      ->group("Check");
  check->add_option("--seeds", r.seeds, "Adversarial runs beside the nominal one")
      ->capture_default_str()
      ->group("Check");
  check
      ->add_option("--model", r.model,
                   "What the kernel may rely on: isa, the documents and the order of MMAs; silicon, in addition what "
                   "today's hardware does")
      ->check(CLI::IsMember({"isa", "silicon"}))
      ->capture_default_str()
      ->group("Check");
  check
      ->add_flag("--independent-lanes", r.independent_lanes,
                 "Adversarial runs: lanes that diverged stay apart until a bar.warp.sync")
      ->group("Check");
  check->add_option("--json", r.json_path, "Write the report here")->group("Check");
  return check;
}

CLI::App* add_verify(CLI::App& app, VerifyRequest& r) {
  CLI::App* verify = app.add_subcommand("verify", "Hold the simulated GPU against a real one, instruction by instruction, or against recorded answers");
  verify->footer(
      "Runs every conformance row that the GPU supports on it and on the simulated GPU and compares the bits; without a GPU, on the\n"
      "simulated one against recorded answers. Then the driver's answers to bad arguments, attention, and times. The report says\n"
      "nothing about the machine but GPU, driver and toolkit.\n"
      "Exit codes: 0 all as believed, 1 something was not, 2 the request was refused, 3 a device failed.");
  add_device_kind(verify, r.device, "auto takes a GPU if there is one");
  verify->add_option("--gpu-driver", r.gpu_driver, "Driver library in place of libcuda.so.1");
  verify->add_option("--driver", r.sim_driver, "The simulated GPU's driver library in place of the one that is found");
  add_gpu(verify, r.gpu, "The GPU that is simulated; default: as the real one, or one that has the row");
  verify->add_option("--rows", r.rows, "Only rows whose name contains this");
  verify->add_option("--json", r.json_path, "Write the whole report here");
  return verify;
}

CLI::App* add_time(CLI::App& app, TimeRequest& r) {
  CLI::App* time = app.add_subcommand("time", "Where the cycles of a launch go, predicted from the machine code");
  time->footer(
      "Runs the CTA of one SM on the simulated GPU, records how it synchronises, and replays the machine code on a model of that SM.\n"
      "Without arguments: B=1, Sq=Skv=1024, Hq=32, Hkv=8, D=128, fp16, on a B200. Needs nvdisasm.\n"
      "Exit codes: 0 done, 2 the request was refused or there is no nvdisasm, 3 the run failed.");
  add_shape(time, r.problem);
  add_problem(time, r.problem);
  add_device(time, r.problem, "The GPU that is simulated; default: sm_100, or the one that goes with --chip");
  time->add_option("--chip", r.chip, "Whose numbers; default: those of the GPU that is simulated")->check(CLI::IsMember({"b200", "b300", "h200"}))->group("Model");
  time->add_option("--parameters", r.parameters_path, "Report of `fa4 verify --json` on such a GPU: take the numbers that it measured")->group("Model");
  time->add_option("--cta", r.cta, "The CTA whose SM is timed; default: the one with the most work")->check(CLI::NonNegativeNumber)->group("Model");
  const char* other = "Another program's launch";
  CLI::Option* record = time->add_option("--record", r.record_path, "What FA4SIM_RECORD wrote while that program ran")->group(other);
  time->add_option("--cubin", r.cubin_path, "The machine code of its kernel, made from the PTX that it ran")->needs(record)->group(other);
  time->add_option("--launch", r.launch, "Which launch of the record, from 0; default: the last")->check(CLI::NonNegativeNumber)->needs(record)->group(other);
  time->add_option("--image", r.image_path, "Fatbinary with the same entries in place of the built-in image")->group("Device");
  time->add_option("--json", r.json_path, "Write the report here")->group("Outputs");
  time->add_option("--trace", r.trace_path, "Write a trace for Perfetto or chrome://tracing here; a nanosecond there is a cycle")->group("Outputs");
  CLI::Option* svg = time->add_option("--svg", r.svg_path, "Write a picture of the timeline here")->group("Outputs");
  time->add_option("--from", r.from, "First cycle of the picture")->needs(svg)->group("Outputs");
  time->add_option("--until", r.until, "Last cycle of the picture; default: 40000 later, or the end")->needs(svg)->group("Outputs");
  return time;
}

CLI::App* add_bench(CLI::App& app, BenchRequest& r) {
  CLI::App* bench = app.add_subcommand("bench", "Measure fa4_forward on a real GPU: times, TFLOP/s, and what a call costs the host");
  bench->footer(
      "Calls on buffers that rotate through more than the L2 cache, captured in a CUDA graph and replayed; docs/bench.md.\n"
      "Without arguments: B=1, Sq=Skv=1024, Hq=32, Hkv=8, D=128, fp16. On the simulated GPU nothing is measured.\n"
      "Exit codes: 0 done, 1 an output was wrong, 2 the request was refused or there is no GPU, 3 the device failed.");
  add_shape(bench, r.problem);
  add_problem(bench, r.problem);
  add_features(bench, r.problem);
  const char* several = "Several problems";
  CLI::Option* list = bench->add_option("--list", r.list_path, "JSON array of problems: docs/bench.md has the keys; what is missing is as the "
                                                               "options say")
                          ->group(several);
  CLI::Option* table = bench->add_flag("--table", r.table, "24 shapes of 32768 tokens: head dimension 128, 64; heads 16/16, 32/8; length 1024, "
                                                           "4096, 16384; full, causal")
                           ->excludes(list)
                           ->group(several);
  for (const char* lengths : {"--lengths-q", "--cu-seqlens-q", "--seqused-q", "--lengths-k", "--cu-seqlens-k", "--seqused-k"})
    table->excludes(bench->get_option(lengths));
  const char* launch = "Launch";
  bench->add_option("--scheduler", r.problem.scheduler, "auto: linear where no key is masked, else LPT; entries with lengths of their own have an order of their own")
      ->check(CLI::IsMember({"auto", "linear", "lpt"}))
      ->capture_default_str()
      ->group(launch);
  add_exp2(bench, r.problem.exp2)->group(launch);
  bench->add_option("--max-ctas", r.max_ctas, "At most so many CTAs; 0: one for each SM")->check(CLI::NonNegativeNumber)->capture_default_str()->group(launch);
  bench->add_flag("--with-lse", r.lse, "Write the LSE, too")->group(launch);
  add_device_kind(bench, r.problem.device, "auto and gpu take a supported GPU; sim is refused");
  bench->add_option("--driver", r.problem.driver, "Driver library in place of libcuda.so.1")->group("Device");
  bench->add_option("--image", r.problem.image_path, "PTX or fatbinary with the same entries in place of the built-in image")
      ->group("Device");
  const char* measurement = "Measurement";
  bench->add_option("--seconds", r.seconds, "Of measurement for each problem, behind 0.3 of warm-up")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str()
      ->group(measurement);
  CLI::Option* host = bench->add_flag("--host", r.host, "What a call costs the host, beside a bare launch of an empty kernel")
                          ->excludes(list)
                          ->excludes(table)
                          ->group(measurement);
  bench->add_option("--calls", r.calls, "Calls of each kind that --host times")->check(CLI::Range(10, 10000000))->needs(host)->capture_default_str()->group(measurement);
  bench->add_option("--json", r.json_path, "Write the report here")->group("Outputs");
  return bench;
}

void note_given(const CLI::App& command, RunRequest& request) {
  request.batch_given = command.count("--batch") != 0;
  request.seq_q_given = command.count("--seq-q") != 0;
  request.seq_kv_given = command.count("--seq-kv") != 0;
}

// "" or what is wrong with the combination of options.
std::string contradiction(const CLI::App& run, const RunRequest& request) {
  if (run.count("--scale") && request.scale == 0)
    return "--scale is 0; leave it out for 1 / sqrt(head dimension), or give a finite number other than 0";
  std::string given_file, missing_file;
  for (const char* file : kFileOptions) (run.count(file) ? given_file : missing_file) = file;
  if (given_file.empty()) return "";
  if (!missing_file.empty())
    return given_file + " needs " + missing_file + ": Q, K and V all come from files, or none of them";
  const bool seeded = request.sinks == kSeeded || request.alibi == kSeeded;
  for (const char* shape : kShapeOptions)
    if (run.count(shape) && !(seeded && shape == std::string("--seed")))
      return std::string(shape) + " is given beside --q, --k and --v, whose files have the shape";
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("FlashAttention forward for NVIDIA Hopper and Blackwell, on a GPU or a simulated one", "fa4");
  app.set_version_flag("--version", std::string("fa4 ") + FA4_VERSION_TEXT);
  app.require_subcommand(1);
  RunRequest request;
  const CLI::App* run_command = add_run(app, request);
  CheckRequest check_request;
  const CLI::App* check_command = add_check(app, check_request);
  VerifyRequest verify_request;
  const CLI::App* verify_command = add_verify(app, verify_request);
  TimeRequest time_request;
  const CLI::App* time_command = add_time(app, time_request);
  BenchRequest bench_request;
  const CLI::App* bench_command = add_bench(app, bench_request);
  std::string driver, gpu;
  CLI::App* info =
      app.add_subcommand("info", "Devices, the image, and the kernel's roles, memory maps and barriers");
  info->add_option("--driver", driver,
                   "The simulated GPU's driver library in place of the one that is found");
  add_gpu(info, gpu, "The GPU that is simulated; default: sm_100");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kSuccess : kRefused;
  }
  if (info->parsed()) return fa4::cli::info(driver, gpu);
  if (verify_command->parsed()) return fa4::cli::verify(verify_request);
  if (check_command->parsed()) {
    note_given(*check_command, check_request.problem);
    return fa4::cli::check(check_request);
  }
  if (time_command->parsed()) {
    note_given(*time_command, time_request.problem);
    return fa4::cli::predict(time_request);
  }
  if (bench_command->parsed()) {
    note_given(*bench_command, bench_request.problem);
    return fa4::cli::bench(bench_request);
  }
  if (const std::string wrong = contradiction(*run_command, request); !wrong.empty()) {
    std::cerr << "fa4 run: " << wrong << '\n';
    return kRefused;
  }
  note_given(*run_command, request);
  return run(request);
}
