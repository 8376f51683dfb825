/* SPDX-License-Identifier: Apache-2.0 */
/* Attention through the C interface, in the caller's CUDA context and on the caller's stream. */
#include <fa4/fa4.h>

#include "example.h"

int main(void) {
  const CUdevice device = enter_context();
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  fill_host();
  const CUdeviceptr q = upload(q_host, sizeof q_host), k = upload(k_host, sizeof k_host),
                    v = upload(v_host, sizeof v_host), o = upload(o_host, sizeof o_host),
                    lse = upload(lse_host, sizeof lse_host);

  fa4_create_params create = {.struct_size = sizeof create, .version = FA4_VERSION};
  fa4_context* fa4; /* in the current CUDA context */
  if (fa4_create(&create, &fa4) != FA4_OK) die(fa4_last_error());

  fa4_forward_params p = {.struct_size = sizeof p,
                          .version = FA4_VERSION,
                          .dtype = FA4_FP16,
                          .causal = 1,
                          .batch = BATCH,
                          .seq_q = SEQ_Q,
                          .seq_kv = SEQ_KV,
                          .q_heads = Q_HEADS,
                          .kv_heads = KV_HEADS,
                          .head_dim = HEAD_DIM,
                          .q = {q, SEQ_Q * Q_HEADS * HEAD_DIM, Q_HEADS * HEAD_DIM, HEAD_DIM},
                          .k = {k, SEQ_KV * KV_HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM, HEAD_DIM},
                          .v = {v, SEQ_KV * KV_HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM, HEAD_DIM},
                          .o = {o, SEQ_Q * Q_HEADS * HEAD_DIM, Q_HEADS * HEAD_DIM, HEAD_DIM},
                          .lse = lse,
                          .lse_batch_stride = Q_HEADS * SEQ_Q,
                          .lse_head_stride = SEQ_Q,
                          .stream = stream};
  if (fa4_forward(fa4, &p) != FA4_OK) die(fa4_last_error()); /* no allocation, no synchronisation */

  CHECK(cuStreamSynchronize(stream));
  const int differs = compare(o, lse);
  fa4_destroy(fa4);
  CHECK(cuDevicePrimaryCtxRelease(device));
  return differs;
}
