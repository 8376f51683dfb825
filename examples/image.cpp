// SPDX-License-Identifier: Apache-2.0
// The image without the library: image FATBIN. Loads the file with cuModuleLoad, describes four tensor maps,
// fills AttentionParams and launches the entry. What fa4_forward decides by the problem is decided here by
// hand.
#include <fa4/kernel/kernels.h>
#include <fa4/kernel/params.h>

#include <algorithm>
#include <cmath>

#include "example.h"

namespace {

// A dense (batch, seq, heads, 128) tensor as (64, heads, seq, 2, batch), `packed_heads` of them in a box of
// `rows`.
void encode(CUtensorMap& map, CUdeviceptr data, unsigned seq, unsigned heads, int rows, unsigned packed_heads) {
  const cuuint64_t extents[] = {64, heads, seq, 2, BATCH};
  const cuuint64_t strides[] = {256, 256ull * heads, 128, 256ull * heads * seq};  // bytes
  const cuuint32_t box[] = {64, packed_heads, static_cast<unsigned>(rows) / packed_heads, 2, 1};
  const cuuint32_t ones[] = {1, 1, 1, 1, 1};
  CHECK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 5, reinterpret_cast<void*>(data),
                               extents, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
                               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) die("usage: image FATBIN");
  const CUdevice device = enter_context();
  CUmodule module;
  CUfunction kernel;
  CHECK(cuModuleLoad(&module, argv[1]));
  int major = 0, minor = 0;
  CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  CHECK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  const fa4::KernelList* kernels = fa4::kernels_for(static_cast<uint32_t>(10 * major + minor));
  if (kernels == nullptr) die("the image has no kernels for this GPU");
  constexpr unsigned packed_heads = Q_HEADS / KV_HEADS;  // 2: a power of two up to the rows of a tile packs entirely
  const fa4::Kernel& about =
      *kernels->find(fa4::ElementType::f16, fa4::MaskKind::causal, 128, 128, SEQ_Q * packed_heads);
  CHECK(cuModuleGetFunction(&kernel, module, about.entry));
  CHECK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                           static_cast<int>(about.shared_bytes)));

  fill_host();
  const CUdeviceptr o = upload(o_host, sizeof o_host), lse = upload(lse_host, sizeof lse_host);
  const int block_positions = about.config.block_rows() / static_cast<int>(packed_heads);
  fa4::AttentionParams params{};
  encode(params.q, upload(q_host, sizeof q_host), SEQ_Q, Q_HEADS, about.config.tile_rows, packed_heads);
  encode(params.k, upload(k_host, sizeof k_host), SEQ_KV, KV_HEADS, about.config.block_keys, 1);
  encode(params.v, upload(v_host, sizeof v_host), SEQ_KV, KV_HEADS, about.config.block_keys, 1);
  encode(params.o, o, SEQ_Q, Q_HEADS, about.config.tile_rows, packed_heads);
  params.lse = reinterpret_cast<float*>(lse);
  params.lse_batch_stride = Q_HEADS * SEQ_Q;
  params.lse_head_stride = SEQ_Q;
  params.seq_q = SEQ_Q;
  params.seq_kv = SEQ_KV;
  params.packed_heads_log2 = 1;
  params.groups_per_kv_head = fa4::make_divisor(1);
  params.order = fa4::make_task_order(fa4::SchedulerKind::linear, BATCH, Q_HEADS / packed_heads,
                                      (SEQ_Q + block_positions - 1) / block_positions, 1);
  params.scale = static_cast<float>(1 / std::sqrt(128.0));
  params.scale_log2 = static_cast<float>(1.4426950408889634 / std::sqrt(128.0));

  void* arguments[] = {&params};
  CHECK(cuLaunchKernel(kernel, std::min(params.order.task_count, 3), 1, 1, about.threads, 1, 1,
                       about.shared_bytes, nullptr, arguments, nullptr));
  CHECK(cuCtxSynchronize());
  const int differs = compare(o, lse);
  CHECK(cuModuleUnload(module));
  CHECK(cuDevicePrimaryCtxRelease(device));
  return differs;
}
