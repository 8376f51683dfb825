// SPDX-License-Identifier: Apache-2.0
// What a specialisation of the Hopper kernel is, and what follows from it: the shape of a tile, where
// everything lies in shared memory, the registers of the roles. Plain C++, checked when compiled.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../config.h"
#include "barrier_table.h"

namespace fa4::hopper {

struct Config {
  int head_dim;    // 64 or 128
  bool causal;     // bottom-right aligned
  int consumers;   // warpgroups that compute, 64 rows of Q each
  int block_keys;  // keys of a K/V block
  int kv_slots;    // K and V blocks share one ring
};

inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kWarpgroupRows = 64;  // rows of wgmma
inline constexpr int kMmaK = 16;
inline constexpr int kQSlots = 2;  // Q of this task and of the next; O leaves through the slot its Q came in

// Softmax keeps a row's old maximum until a lane's probabilities of a block add up to more than this.
inline constexpr float kRescaleSum = 256.0f;

inline constexpr uint32_t kSharedAlignment = 1024;   // of the 128-byte swizzle
inline constexpr uint32_t kMaxSharedBytes = 232448;  // what a CTA of compute capability 9.0 may ask for
inline constexpr int kRegistersPerSm = 65536;

// The cast. Warpgroup 0 moves data, the others compute.
inline constexpr int kLoadWarp = 0;   // K and V
inline constexpr int kQueryWarp = 1;  // Q
inline constexpr int kStoreWarp = 2;  // O

template <Config c>
struct Tile {
  static constexpr int kThreads = (1 + c.consumers) * kWarpgroupThreads;
  static constexpr int kHalves = c.head_dim / kPieceColumns;
  static constexpr int kTaskRows = c.consumers * kWarpgroupRows;  // query positions times packed heads

  static constexpr int kQHalfBytes = kWarpgroupRows * kRowBytes;
  static constexpr int kQBytes = kHalves * kQHalfBytes;  // of one warpgroup
  static constexpr int kKvHalfBytes = c.block_keys * kRowBytes;
  static constexpr int kKvBytes = kHalves * kKvHalfBytes;

  static constexpr int kScoreSteps = c.head_dim / kMmaK;
  static constexpr int kValueSteps = c.block_keys / kMmaK;
  // Where there are registers for two P, the next one is made while MMAs read the other. Else softmax awaits
  // them first.
  static constexpr bool kTwoP = c.consumers == 2;

  // Registers of a thread once its role starts; the launch gives everybody the same share.
  static constexpr int kConsumerRegisters = c.consumers == 2 ? 232 : 160;
  static constexpr int kProducerRegisters = c.consumers == 2 ? 40 : 32;
  static_assert(kWarpgroupThreads * (c.consumers * kConsumerRegisters + kProducerRegisters) <=
                kRegistersPerSm);

  static_assert(c.head_dim % kPieceColumns == 0 && c.block_keys % kMmaK == 0 && c.block_keys <= 256);
  static_assert(c.consumers == 2 || c.consumers == 3);
  static_assert(c.block_keys / 4 < kRescaleSum);  // a row moves only if its maximum grows
  static_assert(kQHalfBytes % kSharedAlignment == 0 && kKvHalfBytes % kSharedAlignment == 0);

  // What everybody needs to know of a task. The query warp hands it over with Q.
  struct TaskRecord {
    int32_t batch, head_group;
    int32_t first_position;  // query position of the first row of the CTA
    int32_t blocks;          // of keys, that the task visits
  };

  // Dynamic shared memory. The tiles come first: the swizzle wants them at multiples of 1024 bytes.
  struct SharedMap {
    uint8_t q[kQSlots][c.consumers][kQBytes];
    uint8_t kv[c.kv_slots][kKvBytes];
    uint64_t barriers[barrier_slots(c.consumers * kQSlots, c.kv_slots)];
    alignas(16) TaskRecord task[kQSlots];
  };
  static constexpr uint32_t kSharedBytes = sizeof(SharedMap);
  static_assert(kSharedBytes <= kMaxSharedBytes);

  // Byte offset of the first mbarrier of a row from the start of dynamic shared memory.
  template <BarrierId id>
  static constexpr uint32_t kBarrierOffset = static_cast<uint32_t>(offsetof(SharedMap, barriers)) +
                                             8 * barrier_slot(id, c.consumers* kQSlots, c.kv_slots);
};

}  // namespace fa4::hopper
