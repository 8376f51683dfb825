// SPDX-License-Identifier: Apache-2.0
// The harness of attention_device.h.
#include "attention_device.h"

#include "inputs.h"
#include "record.h"

namespace fa4::support {

AttentionDevice::~AttentionDevice() {
  drop_contexts();
}

void AttentionDevice::drop_contexts() {
  for (const auto& [sms, context] : contexts_) fa4_destroy(context);
  contexts_.clear();
}

void AttentionDevice::configure(uint32_t sm_count) {
  if (!simulated()) return;
  fa4sim_config config{};
  config.struct_size = sizeof config;
  config.sm_count = sm_count;
  config.host_threads = host_threads_;
  if (gpu_.simulator().configure(&config) != 0)
    throw AttentionError(FA4_ERROR_DRIVER, gpu_.simulator().last_error());
}

// The library's sentence, and the simulated GPU's report behind it, unless it is there as the log of a load.
void AttentionDevice::fail(fa4_status status) {
  std::string message = fa4_last_error();
  if (status == FA4_ERROR_DRIVER && simulated()) {
    const std::string report = gpu_.simulator().last_error();
    if (message.find(report.substr(0, 200)) == std::string::npos) message += "\n" + report;
  }
  throw AttentionError(status, message);
}

void AttentionDevice::give_up(const std::string& message) {
  const bool fault =
      gpu_.driver().cuCtxSynchronize() != CUDA_SUCCESS;  // a context carries its kernel's fault
  drop_contexts();
  gpu_.reset();
  throw AttentionError(FA4_ERROR_DRIVER, message, fault);
}

fa4_context* AttentionDevice::context(uint32_t sm_count) {
  configure(sm_count);
  fa4_context*& context = contexts_[simulated() ? sm_count : 0];
  if (!context) {
    fa4_create_params params{};
    params.struct_size = sizeof params;
    params.version = FA4_VERSION;
    params.driver_library = gpu_.library().c_str();
    if (!image_.empty()) params.image = image_.data();
    const fa4_status status = fa4_create(&params, &context);
    if (status != FA4_OK) fail(status);
  }
  return context;
}

RunResult AttentionDevice::run(const Problem& problem, const Inputs& inputs, const RunOptions& options) {
  RunResult result;
  try {
    std::vector<std::unique_ptr<DeviceBuffer>> buffers;
    const DeviceMemory memory{
        .put =
            [&](const void* from, uint64_t bytes) {
              buffers.push_back(std::make_unique<DeviceBuffer>(gpu_, bytes));
              gpu_.upload(buffers.back()->address(), from, bytes);
              return buffers.back()->address();
            },
        .get = [&](void* to, uint64_t from, uint64_t bytes) { gpu_.download(to, from, bytes); }};
    StagedProblem staged(problem, inputs, options.layout, options.lse, options.beside, memory);
    fa4_forward_params& params = staged.params;
    params.scheduler = options.scheduler;
    params.exp2 = options.exp2;
    params.max_ctas = simulated() ? 0 : int32_t(options.sm_count);

    fa4_context* fa4 = context(options.sm_count);
    uint64_t workspace_bytes = 0;
    fa4_status status = fa4_workspace_size(fa4, &params, &workspace_bytes);
    if (status != FA4_OK) fail(status);
    staged.add_workspace(workspace_bytes);

    gpu_.start_timer();
    status = fa4_forward(fa4, &params);
    if (status != FA4_OK) fail(status);
    result.seconds = gpu_.stop_timer();
    static_cast<Output&>(result) = staged.read();
  } catch (const AttentionError& error) {
    if (error.status != FA4_ERROR_DRIVER) throw;
    give_up(error.what());
  } catch (
      const std::runtime_error& error) {  // a driver call of ours: the context may carry a kernel's fault
    std::string message = error.what();
    if (simulated() && *gpu_.simulator().last_error())
      message.append("\n").append(gpu_.simulator().last_error());
    give_up(message);
  }
  record("attention: " + describe(problem) + ", inputs " + digest(inputs.q) + digest(inputs.k) +
         digest(inputs.v) + (problem.sinks ? digest(inputs.sinks) : "") +
         (problem.alibi ? digest(inputs.slopes) : "") + ": O " + digest(result.o) + ", LSE " +
         digest(result.lse));
  return result;
}

}  // namespace fa4::support
