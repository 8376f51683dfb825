// SPDX-License-Identifier: Apache-2.0
// The problem of work.h.
#include "work.h"

#include <algorithm>
#include <bit>

namespace fa4::test {
namespace {

using support::kPoison16;
using support::kPoison32;

uint64_t bytes(int64_t elements) {
  return uint64_t(elements) * sizeof(uint16_t);
}

}  // namespace

Work::Work(support::Gpu& gpu, const support::Problem& problem)
    : gpu_(gpu),
      problem_(problem),
      q_(gpu, bytes(problem.q_elements())),
      k_(gpu, bytes(problem.k_elements())),
      v_(gpu, bytes(problem.v_elements())),
      o_(gpu, bytes(problem.o_elements())),
      lse_(gpu, uint64_t(problem.lse_elements()) * sizeof(float)) {}

void Work::refill(uint64_t seed) {
  inputs_ = support::make_inputs(problem_, seed);
  gpu_.upload(q_.address(), inputs_.q.data(), q_.bytes());
  gpu_.upload(k_.address(), inputs_.k.data(), k_.bytes());
  gpu_.upload(v_.address(), inputs_.v.data(), v_.bytes());
  const std::vector<uint16_t> o(size_t(problem_.o_elements()), kPoison16);
  const std::vector<uint32_t> lse(size_t(problem_.lse_elements()), kPoison32);
  gpu_.upload(o_.address(), o.data(), o_.bytes());
  gpu_.upload(lse_.address(), lse.data(), lse_.bytes());
  gpu_.synchronize();
}

fa4_forward_params Work::params(CUstream stream) const {
  fa4_forward_params p{};
  p.struct_size = sizeof p;
  p.version = FA4_VERSION;
  p.dtype = problem_.dtype == support::Dtype::fp16 ? FA4_FP16 : FA4_BF16;
  p.causal = problem_.causal;
  p.batch = problem_.batch;
  p.seq_q = problem_.seq_q;
  p.seq_kv = problem_.seq_kv;
  p.q_heads = problem_.q_heads;
  p.kv_heads = problem_.kv_heads;
  p.head_dim = problem_.head_dim;
  const auto tensor = [&](const support::DeviceBuffer& buffer, int64_t seq, int64_t heads) {
    return fa4_tensor{buffer.address(), seq * heads * p.head_dim, heads * p.head_dim, p.head_dim};
  };
  p.q = tensor(q_, p.seq_q, p.q_heads);
  p.k = tensor(k_, p.seq_kv, p.kv_heads);
  p.v = tensor(v_, p.seq_kv, p.kv_heads);
  p.o = tensor(o_, p.seq_q, p.q_heads);
  p.lse = lse_.address();
  p.lse_batch_stride = p.q_heads * p.seq_q;
  p.lse_head_stride = p.seq_q;
  p.stream = stream;
  return p;
}

std::vector<uint16_t> Work::o() const {
  gpu_.synchronize();
  std::vector<uint16_t> o(size_t(problem_.o_elements()));
  gpu_.download(o.data(), o_.address(), o_.bytes());
  return o;
}

bool Work::untouched() const {
  const std::vector<uint16_t> o = this->o();
  std::vector<uint32_t> lse(size_t(problem_.lse_elements()));
  gpu_.download(lse.data(), lse_.address(), lse_.bytes());
  return std::ranges::all_of(o, [](uint16_t x) { return x == kPoison16; }) &&
         std::ranges::all_of(lse, [](uint32_t x) { return x == kPoison32; });
}

std::string Work::verdict() const {
  std::vector<float> lse(size_t(problem_.lse_elements()));
  const std::vector<uint16_t> o = this->o();
  gpu_.download(lse.data(), lse_.address(), lse_.bytes());
  const support::Reference expected = support::reference_double(problem_, inputs_);
  const support::Tolerance tolerance =
      support::tolerance_of(problem_, expected, support::reference_same_precision(problem_, inputs_));
  const support::Comparison got_o = support::compare_o(problem_, o, expected);
  const support::Comparison got_lse = support::compare_lse(problem_, lse, expected);
  std::string wrong;
  if (tolerance.vacuous) wrong += "the tolerance would let zeros pass; ";
  if (!(got_o.max_error <= tolerance.o)) wrong += "O: " + support::describe(got_o) + "; ";
  if (!(got_lse.max_error <= tolerance.lse)) wrong += "LSE: " + support::describe(got_lse) + "; ";
  return wrong.empty() ? "" : support::describe(problem_) + ": " + wrong;
}

}  // namespace fa4::test
