// SPDX-License-Identifier: Apache-2.0
// The harness of attention_device.h.
#include "attention_device.h"

#include <algorithm>
#include <bit>

#include "inputs.h"
#include "record.h"

namespace fa4::support {
namespace {

// Calls visit(buffer element of the row's first column, packed element of the same).
template <typename Visit>
void for_each_row(const Problem& p, int64_t seq, int64_t heads, const View& view, const Visit& visit) {
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t s = 0; s < seq; ++s)
      for (int64_t h = 0; h < heads; ++h)
        visit(size_t(view.at(b, s, h)), size_t(((b * seq + s) * heads + h) * p.head_dim));
}

template <typename T>
uint64_t bytes_of(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

fa4_tensor tensor(const View& view, const DeviceBuffer& buffer) {
  return {buffer.address() + uint64_t(view.offset) * sizeof(uint16_t), view.batch_stride, view.seq_stride,
          view.head_stride};
}

}  // namespace

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
  const Placement placement = place(problem, options.layout);
  std::vector<std::vector<uint16_t>> host;
  for (const int64_t elements : placement.buffer_elements)
    host.emplace_back(size_t(elements), options.beside);
  std::fill(host.back().begin(), host.back().end(), kPoison16);  // O's
  const auto scatter = [&](const std::vector<uint16_t>& packed, int64_t seq, int64_t heads,
                           const View& view) {
    for_each_row(problem, seq, heads, view, [&](size_t to, size_t from) {
      std::copy_n(packed.begin() + int64_t(from), problem.head_dim, host[size_t(view.buffer)].begin() + int64_t(to));
    });
  };
  scatter(inputs.q, problem.seq_q, problem.q_heads, placement.q);
  scatter(inputs.k, problem.seq_kv, problem.kv_heads, placement.k);
  scatter(inputs.v, problem.seq_kv, problem.kv_heads, placement.v);
  std::vector<uint32_t> host_lse(options.lse ? size_t(placement.lse_elements) : 0, kPoison32);

  RunResult result;
  try {
    std::vector<std::unique_ptr<DeviceBuffer>> buffers;
    for (const std::vector<uint16_t>& values : host) {
      buffers.push_back(std::make_unique<DeviceBuffer>(gpu_, bytes_of(values)));
      gpu_.upload(buffers.back()->address(), values.data(), bytes_of(values));
    }
    DeviceBuffer lse(gpu_, bytes_of(host_lse));
    gpu_.upload(lse.address(), host_lse.data(), bytes_of(host_lse));

    fa4_forward_params params{};
    params.struct_size = sizeof params;
    params.version = FA4_VERSION;
    params.dtype = problem.dtype == Dtype::fp16 ? FA4_FP16 : FA4_BF16;
    params.causal = problem.causal;
    params.scheduler = options.scheduler;
    params.exp2 = options.exp2;
    params.batch = problem.batch;
    params.seq_q = problem.seq_q;
    params.seq_kv = problem.seq_kv;
    params.q_heads = problem.q_heads;
    params.kv_heads = problem.kv_heads;
    params.head_dim = problem.head_dim;
    params.q = tensor(placement.q, *buffers[size_t(placement.q.buffer)]);
    params.k = tensor(placement.k, *buffers[size_t(placement.k.buffer)]);
    params.v = tensor(placement.v, *buffers[size_t(placement.v.buffer)]);
    params.o = tensor(placement.o, *buffers[size_t(placement.o.buffer)]);
    if (options.lse) {
      params.lse = lse.address() + uint64_t(placement.lse_offset) * sizeof(float);
      params.lse_batch_stride = placement.lse_batch_stride;
      params.lse_head_stride = placement.lse_head_stride;
    }
    params.softmax_scale = problem.scale;
    params.max_ctas = simulated() ? 0 : int32_t(options.sm_count);

    fa4_context* fa4 = context(options.sm_count);
    uint64_t workspace_bytes = 0;
    fa4_status status = fa4_workspace_size(fa4, &params, &workspace_bytes);
    if (status != FA4_OK) fail(status);
    DeviceBuffer workspace(gpu_, workspace_bytes);
    params.workspace = reinterpret_cast<void*>(workspace.address());
    params.workspace_size = workspace_bytes;

    gpu_.start_timer();
    status = fa4_forward(fa4, &params);
    if (status != FA4_OK) fail(status);
    result.seconds = gpu_.stop_timer();
    for (size_t i = 0; i < host.size(); ++i) {
      std::vector<uint16_t> after(host[i].size());
      gpu_.download(after.data(), buffers[i]->address(), bytes_of(after));
      if (i == size_t(placement.o.buffer)) {
        result.o.resize(size_t(problem.q_elements()));
        for_each_row(problem, problem.seq_q, problem.q_heads, placement.o, [&](size_t from, size_t to) {
          std::copy_n(after.begin() + int64_t(from), problem.head_dim, result.o.begin() + int64_t(to));
          std::fill_n(after.begin() + int64_t(from), problem.head_dim, kPoison16);  // what is left must be as it was
        });
      }
      const auto changed = std::mismatch(after.begin(), after.end(), host[i].begin());
      if (changed.first != after.end())
        result.damage =
            "element " + std::to_string(changed.first - after.begin()) + " of buffer " + std::to_string(i) +
            (i == size_t(placement.o.buffer) ? " (O's, beside the view)" : " (an input)") + " was changed";
    }
    if (options.lse) {
      std::vector<uint32_t> after(host_lse.size());
      gpu_.download(after.data(), lse.address(), bytes_of(after));
      result.lse.resize(size_t(problem.lse_elements()));
      for (int64_t row = 0; row < problem.batch * problem.q_heads; ++row)
        for (int64_t i = 0; i < problem.seq_q; ++i) {
          const int64_t from = placement.lse_offset + row / problem.q_heads * placement.lse_batch_stride +
                               row % problem.q_heads * placement.lse_head_stride + i;
          result.lse[size_t(row * problem.seq_q + i)] = std::bit_cast<float>(after[size_t(from)]);
          after[size_t(from)] = kPoison32;
        }
      if (after != host_lse) result.damage = "an element of the LSE buffer beside the view was changed";
    }
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
  record("attention: " + describe(problem) + ", inputs " + digest(inputs.q) + digest(inputs.k) + digest(inputs.v) +
         ": O " + digest(result.o) + ", LSE " + digest(result.lse));
  return result;
}

}  // namespace fa4::support
