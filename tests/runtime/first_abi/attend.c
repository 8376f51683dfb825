/* SPDX-License-Identifier: Apache-2.0 */
/* A caller of the C ABI that compiles with its first header and with today's. Prints the size of its params struct, then as raw bytes
 * O and the LSE of a problem for each type, mask and head dimension, from seeded inputs. */
#include <cuda.h>
#include <fa4/fa4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, SEQ_Q = 70, SEQ_KV = 150, Q_HEADS = 4, KV_HEADS = 2, MOST_DIM = 128 };
enum { Q_MOST = BATCH * SEQ_Q * Q_HEADS * MOST_DIM, KV_MOST = BATCH * SEQ_KV * KV_HEADS * MOST_DIM, LSE = BATCH * Q_HEADS * SEQ_Q };

static uint16_t q[Q_MOST], k[KV_MOST], v[KV_MOST], o[Q_MOST];
static float lse[LSE];

static void die(const char* sentence) {
  fprintf(stderr, "%s\n", sentence);
  exit(1);
}

static void check(CUresult result, const char* function) {
  if (result != CUDA_SUCCESS) die(function);
}

/* Magnitudes from 1/8 to 2, either sign. */
static void fill(uint16_t* elements, int count, int dtype, uint32_t seed) {
  uint32_t state = seed;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const uint32_t random = state >> 8;
    elements[i] = (uint16_t)(dtype == FA4_FP16 ? (random & 0x8000) | (12 + (random >> 16) % 4) << 10 | (random & 0x3ff)
                                               : (random & 0x8000) | (124 + (random >> 16) % 4) << 7 | (random & 0x7f));
  }
}

static CUdeviceptr upload(const void* host, size_t bytes) {
  CUdeviceptr device = 0;
  check(cuMemAlloc(&device, bytes), "cuMemAlloc");
  check(cuMemcpyHtoD(device, host, bytes), "cuMemcpyHtoD");
  return device;
}

static void attend(const fa4_context* fa4, int dtype, int causal, int dim) {
  fill(q, Q_MOST, dtype, 1);
  fill(k, KV_MOST, dtype, 2);
  fill(v, KV_MOST, dtype, 3);
  memset(o, 0xff, sizeof o);
  memset(lse, 0xff, sizeof lse);
  CUdeviceptr device[] = {upload(q, sizeof q), upload(k, sizeof k), upload(v, sizeof v), upload(o, sizeof o), upload(lse, sizeof lse)};
  fa4_forward_params p = {.struct_size = sizeof p,
                          .version = FA4_VERSION,
                          .dtype = dtype,
                          .causal = causal,
                          .batch = BATCH,
                          .seq_q = SEQ_Q,
                          .seq_kv = SEQ_KV,
                          .q_heads = Q_HEADS,
                          .kv_heads = KV_HEADS,
                          .head_dim = dim,
                          .q = {device[0], SEQ_Q * Q_HEADS * dim, Q_HEADS * dim, dim},
                          .k = {device[1], SEQ_KV * KV_HEADS * dim, KV_HEADS * dim, dim},
                          .v = {device[2], SEQ_KV * KV_HEADS * dim, KV_HEADS * dim, dim},
                          .o = {device[3], SEQ_Q * Q_HEADS * dim, Q_HEADS * dim, dim},
                          .lse = device[4],
                          .lse_batch_stride = Q_HEADS * SEQ_Q,
                          .lse_head_stride = SEQ_Q,
                          .softmax_scale = 0.07,
                          .max_ctas = 3};
  uint64_t workspace = 0;
  if (fa4_supported(fa4, &p) != FA4_OK || fa4_workspace_size(fa4, &p, &workspace) != FA4_OK || workspace != 0 ||
      fa4_forward(fa4, &p) != FA4_OK)
    die(fa4_last_error());
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  check(cuMemcpyDtoH(o, device[3], sizeof o), "cuMemcpyDtoH");
  check(cuMemcpyDtoH(lse, device[4], sizeof lse), "cuMemcpyDtoH");
  fwrite(o, sizeof *o, (size_t)(BATCH * SEQ_Q * Q_HEADS * dim), stdout);
  fwrite(lse, sizeof *lse, LSE, stdout);
  for (int i = 0; i < 5; ++i) check(cuMemFree(device[i]), "cuMemFree");
}

int main(void) {
  CUdevice device;
  CUcontext context;
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  fa4_create_params create = {.struct_size = sizeof create, .version = FA4_VERSION};
  fa4_context* fa4 = NULL;
  if (fa4_create(&create, &fa4) != FA4_OK) die(fa4_last_error());
  printf("%d\n", (int)sizeof(fa4_forward_params));
  for (int dtype = FA4_FP16; dtype <= FA4_BF16; ++dtype)
    for (int causal = 0; causal <= 1; ++causal)
      for (int dim = 64; dim <= 128; dim += 64) attend(fa4, dtype, causal, dim);
  fa4_destroy(fa4);
  return ferror(stdout) != 0;
}
