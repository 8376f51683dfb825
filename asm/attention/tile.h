// SPDX-License-Identifier: Apache-2.0
// The shape of a tile and where everything lies: warps, registers, shared memory, TMEM columns. One place,
// plain C++, checked when compiled.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "barrier_table.h"

namespace fa4 {

// The tile. A CTA works on two Q stages of 128 rows against blocks of 128 keys.
inline constexpr int kTileRows = 128;   // rows of a Q tile: query positions times packed heads
inline constexpr int kBlockKeys = 128;  // keys of a K/V block
inline constexpr int kHeadDim = 128;
inline constexpr int kQStages = 2;   // two, so that the softmax of one runs under the MMAs of the other
inline constexpr int kKvStages = 3;  // K and V blocks share one ring
inline constexpr int kElementBytes = 2;

// A tile in shared memory is two halves of the head dimension, each [128 rows][64 elements] with 128-byte
// swizzle: the box of a rank-5 tensor map, dense.
inline constexpr int kHalfColumns = 64;
inline constexpr int kRowBytes = kHalfColumns * kElementBytes;
inline constexpr int kHalfBytes = kTileRows * kRowBytes;
inline constexpr int kTileBytes = 2 * kHalfBytes;
static_assert(kRowBytes == 128 && kTileBytes == 32768);

// Longest sequence: row positions of the last m_block still fit into 32 bits.
inline constexpr int32_t kMaxSequence = INT32_MAX - kQStages * kTileRows;

// The cast: four warpgroups, split by function. Warp indices in the CTA.
inline constexpr int kThreads = 512;
inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kSoftmaxWarp = 0;     // 0..3 stage 0, 4..7 stage 1
inline constexpr int kCorrectionWarp = 8;  // 8..11
inline constexpr int kMmaWarp = 12;        // drives both MMAs, owns TMEM
inline constexpr int kLoadWarp = 13;
inline constexpr int kStoreWarp = 14;
inline constexpr int kIdleWarp = 15;

// Registers a thread holds once its role starts; at launch everybody has 128.
inline constexpr int kSoftmaxRegisters = 192;
inline constexpr int kCorrectionRegisters = 80;
inline constexpr int kOtherRegisters = 48;
inline constexpr int kRegistersPerSm = 65536;
static_assert(kWarpgroupThreads * (kQStages * kSoftmaxRegisters + kCorrectionRegisters + kOtherRegisters) ==
              kRegistersPerSm);

// Correction rescales O, and the epilogue reads it, in chunks of this many columns.
inline constexpr int kRescaleTile = 16;

// Softmax keeps a row's old maximum until it has moved by this much in log2: P then stays below 2^8.
inline constexpr float kRescaleThreshold = 8.0f;

// TMEM, in columns of 32 bits. P (16 bit) lies in the upper half of the S it came from.
inline constexpr uint32_t kTmemColumns = 512;
inline constexpr uint32_t kTmemS = 0;
inline constexpr uint32_t kTmemP = 64;
inline constexpr uint32_t kTmemO = 256;
inline constexpr uint32_t kTmemStage = 128;  // from stage 0 to stage 1 of each
inline constexpr uint32_t kPColumns = kBlockKeys * kElementBytes / 4;
static_assert(kTmemP + kPColumns <= kTmemS + kTmemStage && kTmemO >= kTmemS + kQStages * kTmemStage &&
              kTmemO + kQStages * kTmemStage <= kTmemColumns && kHeadDim <= kTmemStage &&
              kBlockKeys <= kTmemStage);

// P is handed over in two parts: the value MMA starts on the first three quarters.
inline constexpr int kMmaK = 16;
inline constexpr int kMmaSteps = kBlockKeys / kMmaK;
inline constexpr int kMmaStepsBeforeTail = kMmaSteps * 3 / 4;
static_assert(kHeadDim / kMmaK == kMmaSteps);

// Dynamic shared memory. The tiles come first: the swizzle wants them at multiples of 1024 bytes.
struct SharedMap {
  uint8_t q[kQStages][kTileBytes];
  uint8_t kv[kKvStages][kTileBytes];
  uint8_t o[kQStages][kTileBytes];
  float scale_or_sum[kQStages]
                    [kTileRows];  // softmax to correction: acc_scale of a block, at the end the row's sum
  float row_max[kQStages][kTileRows];  // at the end: the maximum that the sum refers to, in score units
  uint64_t barriers[kBarrierSlots];
  uint32_t tmem_base;  // written by tcgen05.alloc
};
inline constexpr uint32_t kSharedAlignment = 1024;
inline constexpr uint32_t kDynamicSharedBytes = sizeof(SharedMap);
inline constexpr uint32_t kMaxSharedBytes = 232448;  // what a CTA of compute capability 10.x may ask for
static_assert(kDynamicSharedBytes <= kMaxSharedBytes);
static_assert(offsetof(SharedMap, kv) % kSharedAlignment == 0 &&
              offsetof(SharedMap, o) % kSharedAlignment == 0);
static_assert(offsetof(SharedMap, barriers) % 8 == 0);
static_assert(barrier_row(BarrierId::q_full).stages == kQStages &&
              barrier_row(BarrierId::kv_full).stages == kKvStages &&
              barrier_row(BarrierId::q_full).bytes == kTileBytes &&
              barrier_row(BarrierId::kv_full).bytes == kTileBytes);

// Byte offset of one mbarrier from the start of dynamic shared memory.
constexpr uint32_t barrier_offset(BarrierId id, uint32_t stage) {
  return static_cast<uint32_t>(offsetof(SharedMap, barriers)) + 8 * (barrier_slot(id) + stage);
}

}  // namespace fa4
