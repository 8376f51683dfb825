// SPDX-License-Identifier: Apache-2.0
// Attention through the C++ interface. C++20.
#include <fa4/fa4.hpp>

#include "example.h"

int main() try {
  const CUdevice device = enter_context();
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  fill_host();
  const CUdeviceptr q = upload(q_host, sizeof q_host), k = upload(k_host, sizeof k_host),
                    v = upload(v_host, sizeof v_host), o = upload(o_host, sizeof o_host),
                    lse = upload(lse_host, sizeof lse_host);
  {
    fa4::Context context;  // in the current CUDA context
    fa4::Problem problem(
        FA4_FP16,
        {.batch = BATCH, .seq_q = SEQ_Q, .seq_kv = SEQ_KV, .q_heads = Q_HEADS, .kv_heads = KV_HEADS});
    problem.set_q(q).set_k(k).set_v(v).set_o(o).set_lse(lse).set_causal().set_stream(stream);
    context.forward(problem);  // throws fa4::Error with a sentence

    CHECK(cuStreamSynchronize(stream));
  }
  const int differs = compare(o, lse);
  CHECK(cuDevicePrimaryCtxRelease(device));
  return differs;
} catch (const fa4::Error& error) {
  die(error.what());
}
