// SPDX-License-Identifier: Apache-2.0
// The harness of attention_device.h.
#include "attention_device.h"

#include <algorithm>
#include <bit>

#include "inputs.h"
#include "record.h"

namespace fa4::support {
namespace {

template <typename T>
uint64_t bytes_of(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

// 32-bit numbers on the device between words of poison.
class GuardedWords {
 public:
  GuardedWords(Gpu& gpu, const std::vector<uint32_t>& values, size_t guard)
      : gpu_(gpu),
        guard_(guard),
        words_(values.size() + 2 * guard, kPoison32),
        buffer_(gpu, bytes_of(words_)) {
    std::copy(values.begin(), values.end(), words_.begin() + int64_t(guard));
    gpu_.upload(buffer_.address(), words_.data(), bytes_of(words_));
  }
  uint64_t address() const { return buffer_.address() + guard_ * sizeof(uint32_t); }
  bool unchanged() const {
    std::vector<uint32_t> after(words_.size());
    gpu_.download(after.data(), buffer_.address(), bytes_of(after));
    return after == words_;
  }

 private:
  Gpu& gpu_;
  size_t guard_;
  std::vector<uint32_t> words_;
  DeviceBuffer buffer_;
};
constexpr size_t kArrayGuard = 17;  // words: arrays need only be 4-byte aligned
constexpr size_t kWorkspaceGuard =
    64;  // words: 256 bytes, so that the workspace is as aligned as an allocation

std::vector<uint32_t> words_of(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}
std::vector<uint32_t> words_of(const std::vector<float>& values) {
  std::vector<uint32_t> words;
  for (const float value : values) words.push_back(std::bit_cast<uint32_t>(value));
  return words;
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
  // Rows that do not count stay what lies beside the views.
  const auto scatter = [&](const std::vector<uint16_t>& packed, const Lengths& lengths, int64_t bound,
                           int64_t heads, int64_t dim, const View& view) {
    for_each_row(problem, lengths, bound, [&](int64_t b, int64_t i, int64_t batch, int64_t s) {
      for (int64_t h = 0; h < heads; ++h)
        std::copy_n(packed.begin() + ((b * bound + i) * heads + h) * dim, dim,
                    host[size_t(view.buffer)].begin() + view.at(batch, s, h));
    });
  };
  scatter(inputs.q, problem.q_lengths, problem.seq_q, problem.q_heads, problem.head_dim, placement.q);
  scatter(inputs.k, problem.kv_lengths, problem.seq_kv, problem.kv_heads, problem.head_dim, placement.k);
  scatter(inputs.v, problem.kv_lengths, problem.seq_kv, problem.kv_heads, problem.v_dim(), placement.v);
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
    std::vector<std::pair<const char*, std::unique_ptr<GuardedWords>>> arrays;
    const auto array = [&](const char* name, const std::vector<uint32_t>& words) {
      arrays.emplace_back(name, std::make_unique<GuardedWords>(gpu_, words, kArrayGuard));
      return arrays.back().second->address();
    };

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
    params.head_dim_v = problem.head_dim_v;
    params.diagonal_alignment = problem.top_left ? FA4_DIAGONAL_TOP_LEFT : FA4_DIAGONAL_BOTTOM_RIGHT;
    if (problem.window) {
      params.window = 1;
      params.window_left = problem.window_left;
      params.window_right = problem.window_right;
    }
    if (!problem.q_lengths.packed.empty()) {
      const std::vector<int64_t> rows = problem.q_lengths.cu_seqlens();
      params.cu_seqlens_q = array("cu_seqlens_q", words_of(rows));
      params.total_q = rows.back();
    }
    if (!problem.kv_lengths.packed.empty()) {
      const std::vector<int64_t> rows = problem.kv_lengths.cu_seqlens();
      params.cu_seqlens_k = array("cu_seqlens_k", words_of(rows));
      params.total_k = rows.back();
    }
    if (!problem.q_lengths.used.empty())
      params.seqused_q = array("seqused_q", words_of(problem.q_lengths.used));
    if (!problem.kv_lengths.used.empty())
      params.seqused_k = array("seqused_k", words_of(problem.kv_lengths.used));
    params.softcap = problem.softcap;
    if (problem.sinks) params.sinks = array("sinks", words_of(inputs.sinks));
    if (problem.alibi) {
      params.alibi_slopes = array("alibi_slopes", words_of(inputs.slopes));
      params.alibi_batch_stride = problem.slopes_by_entry ? problem.q_heads : 0;
    }
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
    const std::vector<uint32_t> zeros((workspace_bytes + 3) / 4, 0);
    const GuardedWords workspace(gpu_, zeros, kWorkspaceGuard);
    if (workspace_bytes != 0) params.workspace = reinterpret_cast<void*>(workspace.address());
    params.workspace_size = workspace_bytes;

    gpu_.start_timer();
    status = fa4_forward(fa4, &params);
    if (status != FA4_OK) fail(status);
    result.seconds = gpu_.stop_timer();
    for (size_t i = 0; i < host.size(); ++i) {
      std::vector<uint16_t> after(host[i].size());
      gpu_.download(after.data(), buffers[i]->address(), bytes_of(after));
      if (i == size_t(placement.o.buffer)) {
        const int64_t dim = problem.v_dim();
        result.o.assign(size_t(problem.o_elements()), kPoison16);
        for_each_row(
            problem, problem.q_lengths, problem.seq_q, [&](int64_t b, int64_t s, int64_t batch, int64_t seq) {
              for (int64_t h = 0; h < problem.q_heads; ++h) {
                const auto from = after.begin() + placement.o.at(batch, seq, h);
                std::copy_n(from, dim,
                            result.o.begin() + ((b * problem.seq_q + s) * problem.q_heads + h) * dim);
                std::fill_n(from, dim, kPoison16);  // what is left must be as it was
              }
            });
      }
      const auto changed = std::mismatch(after.begin(), after.end(), host[i].begin());
      if (changed.first != after.end())
        result.damage = "element " + std::to_string(changed.first - after.begin()) + " of buffer " +
                        std::to_string(i) +
                        (i == size_t(placement.o.buffer) ? " (O's, beside the rows of the batch entries)"
                                                         : " (an input)") +
                        " was changed";
    }
    if (options.lse) {
      std::vector<uint32_t> after(host_lse.size());
      gpu_.download(after.data(), lse.address(), bytes_of(after));
      result.lse.assign(size_t(problem.lse_elements()), std::bit_cast<float>(kPoison32));
      for_each_row(
          problem, problem.q_lengths, problem.seq_q, [&](int64_t b, int64_t s, int64_t batch, int64_t seq) {
            for (int64_t h = 0; h < problem.q_heads; ++h) {
              uint32_t& from = after[size_t(placement.lse_offset + batch * placement.lse_batch_stride +
                                            h * placement.lse_head_stride + seq)];
              result.lse[size_t((b * problem.q_heads + h) * problem.seq_q + s)] = std::bit_cast<float>(from);
              from = kPoison32;
            }
          });
      if (after != host_lse)
        result.damage = "an element of the LSE buffer beside the rows of the batch entries was changed";
    }
    for (const auto& [name, words] : arrays)
      if (!words->unchanged()) result.damage = std::string(name) + ", or what lies beside it, was changed";
    if (!workspace.unchanged())
      result.damage = "the workspace is not zero again, or what lies beside it was changed";
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
