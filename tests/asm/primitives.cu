// SPDX-License-Identifier: Apache-2.0
// Every primitive of asm/ptx once, so that the assembler sees all of them; never run. check_primitives.py
// holds this file to completeness.
#include "ptx/fence.cuh"
#include "ptx/ldst.cuh"
#include "ptx/math.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/sync.cuh"
#include "ptx/tcgen05.cuh"
#include "ptx/tma.cuh"

using namespace fa4::ptx;

extern "C" __global__ void use_mbarrier(uint32_t barrier, uint32_t n, uint32_t* out) {
  mbarrier_init(barrier, n);
  mbarrier_expect_tx(barrier, n);
  mbarrier_arrive(barrier);
  mbarrier_arrive_if(barrier, n != 0);
  mbarrier_arrive(barrier, n);
  mbarrier_arrive_expect_tx(barrier, n);
  out[0] = mbarrier_try_wait_parity(barrier, n);
  out[1] = mbarrier_test_wait_parity(barrier, n);
  mbarrier_inval(barrier);
}

extern "C" __global__ void use_tma(const void* map, uint32_t shared, uint32_t barrier, int32_t x) {
  const int32_t coordinates[5] = {0, x, x + 1, x + 2, x + 3};
  prefetch_tensormap(map);
  cp_async_bulk_tensor_load(shared, map, coordinates, barrier);
  cp_async_bulk_tensor_store(map, coordinates, shared);
  cp_async_bulk_commit_group();
  cp_async_bulk_wait_group_read<1>();
  cp_async_bulk_wait_group<0>();
}

extern "C" __global__ void use_shared(uint32_t shared) {
  int32_t x[4];
  ld_shared_v4(x[0], x[1], x[2], x[3], shared);
  st_shared_v4(shared, x[3], x[2], x[1], x[0]);
  st_shared_b32(shared, x[1] + ld_shared_b32(shared + 4));
  const uint32_t r[4] = {shared, shared + 1, shared + 2, shared + 3};
  stmatrix_x4(shared, r);
}

extern "C" __global__ void use_counter(uint32_t* counter, uint32_t* out) {
  out[0] = atom_add_relaxed_gpu(counter, out[1]);
  st_relaxed_gpu(counter, out[2]);
}

extern "C" __global__ void use_fence() {
  fence_mbarrier_init();
  fence_proxy_async_shared_cta();
  fence_proxy_async();
  fence_acq_rel_cta();
}

extern "C" __global__ void __launch_bounds__(512, 1) use_sync(uint32_t* out) {
  setmaxnreg_dec<24>();
  setmaxnreg_inc<240>();
  out[0] = elect_sync();
  bar_warp_sync();
  bar_sync<0>();
  bar_sync<1, 64>();
  bar_arrive<2, 64>();
  bar_sync<64>(static_cast<int>(out[3]));
  bar_arrive<64>(static_cast<int>(out[4]));
  out[1] = vote_sync_any(out[2] != 0);
  out[5] = tid_x_again();
}

extern "C" __global__ void use_math(float* f, uint64_t* p, uint32_t* u) {
  f[0] = ex2_approx_ftz(f[0]);
  f[12] = lg2_approx_ftz(f[12]);
  f[13] = rcp_approx_ftz(f[13]);
  p[0] = mov_pack_f32x2(f[4], f[5]);
  mov_unpack_f32x2(f[6], f[7], p[1]);
  p[2] = add_rn_f32x2(p[2], p[3]);
  p[9] = add_rm_f32x2(p[9], p[3]);
  f[1] = max_nan(f[1], f[2], f[3]);
  p[4] = mul_rn_f32x2(p[4], p[5]);
  p[6] = fma_rn_f32x2(p[6], p[7], p[8]);
  u[0] = cvt_rn_f16x2(f[8], f[9]);
  u[1] = cvt_rn_bf16x2(f[10], f[11]);
  u[2] = shl_b32(shr_u32(u[2], u[3]), u[4]);
}

extern "C" __global__ void use_tcgen05(uint32_t shared, uint64_t a, uint64_t b, uint32_t idesc,
                                       bool accumulate, float* f, uint32_t* u) {
  tcgen05_alloc<512>(shared);
  tcgen05_relinquish_alloc_permit();
  tcgen05_mma_f16_ss(0, a, b, idesc, accumulate);
  tcgen05_mma_f16_ts(128, 64, b, idesc, accumulate);
  tcgen05_commit(shared);
  tcgen05_fence_before_thread_sync();
  tcgen05_fence_after_thread_sync();
  float f16[16], f32[32];
  uint32_t u16[16], u8[8];
  tcgen05_ld_32x32b(f16, 0);
  tcgen05_ld_32x32b(f32, 16);
  tcgen05_wait_ld();
  delivered(f16);
  delivered(f32);
  for (int i = 0; i < 32; ++i) f[i] = f32[i];
  for (int i = 0; i < 16; ++i) u16[i] = u[i];
  tcgen05_st_32x32b(48, f16);
  tcgen05_st_32x32b(64, u16);
  for (int i = 0; i < 8; ++i) u8[i] = u[16 + i];
  tcgen05_st_32x32b(80, u8);
  tcgen05_wait_st();
  tcgen05_dealloc<512>(0);
}
