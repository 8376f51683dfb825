/* SPDX-License-Identifier: Apache-2.0 */
/* A C program that links the installed library: forward DRIVER_LIBRARY. The context is made as an engine
 * makes its own, with driver functions from the same library. */
#include <cuda.h>
#include <dlfcn.h>
#include <fa4/fa4.h>
#include <stdlib.h>

#include "small_attention.h"

static void* driver;

static void require(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "%s failed; last error of fa4: %s\n", what, fa4_last_error());
  exit(1);
}

static void* symbol(const char* name) {
  void* address = dlsym(driver, name);
  require(address != NULL, name);
  return address;
}

#define TEXT(name) #name
#define SYMBOL(name) TEXT(name) /* cuda.h renames some functions first */
#define CALL(name, ...) require(((__typeof__(&name))symbol(SYMBOL(name)))(__VA_ARGS__) == CUDA_SUCCESS, #name)

static CUdeviceptr upload(const void* host, size_t bytes) {
  CUdeviceptr device = 0;
  CALL(cuMemAlloc, &device, bytes);
  CALL(cuMemcpyHtoD, device, host, bytes);
  return device;
}

int main(int argc, char** argv) {
  if (argc != 2 || (driver = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) == NULL) {
    fprintf(stderr, "usage: %s DRIVER_LIBRARY\n", argv[0]);
    return 2;
  }
  CUdevice device;
  CUcontext cuda_context;
  CALL(cuInit, 0);
  CALL(cuDeviceGet, &device, 0);
  CALL(cuDevicePrimaryCtxRetain, &cuda_context, device);
  CALL(cuCtxSetCurrent, cuda_context);

  fa4_create_params create = {
      .struct_size = sizeof create, .version = FA4_VERSION, .driver_library = argv[1]};
  fa4_context* context;
  require(fa4_create(&create, &context) == FA4_OK, "fa4_create");

  fill_inputs();
  fa4_forward_params params = {.struct_size = sizeof params, .version = FA4_VERSION};
  params.dtype = FA4_FP16;
  params.causal = 1;
  params.batch = BATCH;
  params.seq_q = SEQ_Q;
  params.seq_kv = SEQ_KV;
  params.q_heads = Q_HEADS;
  params.kv_heads = KV_HEADS;
  params.head_dim = HEAD_DIM;
  const fa4_tensor dense_q = {0, SEQ_Q * Q_HEADS * HEAD_DIM, Q_HEADS * HEAD_DIM, HEAD_DIM};
  const fa4_tensor dense_kv = {0, SEQ_KV * KV_HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM, HEAD_DIM};
  params.q = params.o = dense_q;
  params.k = params.v = dense_kv;
  params.q.data = upload(q_host, sizeof q_host);
  params.k.data = upload(k_host, sizeof k_host);
  params.v.data = upload(v_host, sizeof v_host);
  params.o.data = upload(o_host, sizeof o_host);
  params.lse = upload(lse_host, sizeof lse_host);
  params.lse_batch_stride = Q_HEADS * SEQ_Q;
  params.lse_head_stride = SEQ_Q;

  uint64_t workspace;
  require(fa4_workspace_size(context, &params, &workspace) == FA4_OK && workspace == 0, "fa4_workspace_size");
  require(fa4_forward(context, &params) == FA4_OK, "fa4_forward");
  CALL(cuCtxSynchronize);
  CALL(cuMemcpyDtoH, o_host, params.o.data, sizeof o_host);
  CALL(cuMemcpyDtoH, lse_host, params.lse, sizeof lse_host);
  const int differs = compare();

  fa4_destroy(context);
  CALL(cuDevicePrimaryCtxRelease, device);
  return differs;
}
