// SPDX-License-Identifier: Apache-2.0
// Where everything of a specialisation lives on a Hopper: warps, registers, shared memory. One place, plain C++, checked
// when compiled.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../config.h"
#include "barrier_table.h"

namespace fa4::hopper {

inline constexpr int kTileRows = 64;  // of a Q tile: M of an MMA

// Softmax keeps a row's old maximum until a lane's probabilities of a block add up to more than this.
inline constexpr float kRescaleSum = 256.0f;

// The choices for a head dimension, measured on an H200; others lost (at 128 blocks of 96, 160 and 176 keys, clusters of 2 with
// multicast). `consumers`: 0 for the best of the head dimension. At 64 it is three warpgroups, which hide MUFU behind
// each other; where their 192 rows overshoot a short Q and its diagonal, two waste less. At 96 three want smaller blocks, for the
// registers (two of 128 or 144 keys lost, three of 112 were no faster). Above 128 there is room for one Q, and O takes turns of
// the ring: four slots of 128 or 80 keys (at 192 blocks of 96 and 112 lost).
constexpr Config make_config(ElementType element, MaskKind mask, int qk_dim, int v_dim, int consumers = 0) {
  Config config{element, mask, qk_dim, v_dim, kTileRows, 2, 128, 5, OPlace::over_q};
  if (qk_dim <= 96) config.q_stages = 3;
  if (qk_dim <= 64) config.kv_slots = 8;
  if (qk_dim > 64 && qk_dim <= 96) config.block_keys = 96;
  if (qk_dim > 128) config.kv_slots = 4;
  if (qk_dim > 128) config.o_place = OPlace::ring;
  if (v_dim > 128) config.block_keys = 80;
  if (consumers != 0) config.q_stages = consumers;
  return config;
}

template <Config config>
struct Layout {
  // The cast: warpgroup 0 moves data, a warp for each job; the others compute, a Q tile each. Warp indices in the CTA.
  static constexpr int load_warp = 0;   // K and V
  static constexpr int query_warp = 1;  // Q
  static constexpr int store_warp = 2;  // O
  static constexpr int scheduler_warp = 3;  // of a general kernel; else idle
  static constexpr int consumer_warp = 4;
  static constexpr int consumers = config.q_stages;
  static constexpr int threads = (1 + consumers) * kWarpgroupThreads;

  // Registers a thread holds once its role starts; at launch all have the same.
  static constexpr int consumer_registers = consumers == 2 ? 232 : 160;
  static constexpr int other_registers = consumers == 2 ? 40 : 32;
  // No more than the CTA is launched with, of which ptxas makes the most: else setmaxnreg.inc waits for ever.
  static constexpr int launch_registers = launch_registers_of(threads);
  static_assert(kWarpgroupThreads * (consumers * consumer_registers + other_registers) <= threads * launch_registers);

  static constexpr int q_piece_bytes = kTileRows * kRowBytes;
  static constexpr int kv_piece_bytes = config.block_keys * kRowBytes;

  // MMA instructions of a product, of K = 16.
  static constexpr int score_steps = config.qk_dim / kMmaK;
  static constexpr int value_steps = config.block_keys / kMmaK;
  // Where there are registers for two P, the next one is made while MMAs read the other. Else softmax awaits them first; as where the
  // other consumer's MMAs take long enough to hide all of it.
  static constexpr bool two_p = consumers == 2 && config.qk_dim <= 128;
  static constexpr int q_tiles = hopper::q_tiles(config);

  // Where K and V tiles are alike they take slots of one ring in turn; else each half of the slots is a ring, K's first.
  static constexpr bool rings_apart = config.k_tile_bytes() != config.v_tile_bytes();
  static constexpr int ring_slots = rings_apart ? config.kv_slots / 2 : config.kv_slots;
  static constexpr int k_ring_bytes = ring_slots * config.k_tile_bytes();
  static constexpr int rings_bytes = k_ring_bytes + (config.kv_slots - ring_slots) * config.v_tile_bytes();
  FA4_HOST_DEVICE static constexpr int k_slot_offset(int slot) { return slot * config.k_tile_bytes(); }
  FA4_HOST_DEVICE static constexpr int v_slot_offset(int slot) {
    return rings_apart ? k_ring_bytes + (slot - ring_slots) * config.v_tile_bytes() : k_slot_offset(slot);
  }
  static_assert(!rings_apart || config.kv_slots % 2 == 0);

  // Turns of the ring, V's, that O of all consumers takes behind the last V of a task.
  static constexpr bool o_in_ring = config.o_place == OPlace::ring;
  static constexpr int o_of_turn = config.v_tile_bytes() / config.o_tile_bytes();
  static constexpr int o_turns = o_in_ring ? (consumers + o_of_turn - 1) / o_of_turn : 0;
  static constexpr int o_arrivals = 4 * o_turns;  // at kv.empty, for each O
  static_assert(!o_in_ring || consumers % o_turns == 0);

  static_assert(config.tile_rows == kTileRows && config.block_rows() <= kMaxBlockRows);
  static_assert(config.v_dim <= config.qk_dim && config.qk_dim % kMmaK == 0 && config.v_dim % kMmaK == 0);
  static_assert(config.block_keys % kMmaK == 0 && config.block_keys <= 256);
  static_assert(consumers == 2 || consumers == 3);
  static_assert(config.block_keys / 4 < kRescaleSum);  // a row moves only if its maximum grows
  static_assert(config.o_place != OPlace::own);
  static_assert(q_piece_bytes % kSharedAlignment == 0 && kv_piece_bytes % kSharedAlignment == 0);

  // What consumers and store need to know of a task. The query warp hands it over with Q.
  struct QRecord {
    int32_t batch;
    int32_t first_head;      // query head of row 0
    int32_t first_position;  // query position of the first row of the CTA
    int32_t blocks_end;      // behind the last block of keys that the task visits, unless general of those from block 0
  };
  // And of a general kernel besides.
  struct QEntryRecord {
    int32_t seq_q, seq_kv;  // of its entry
    int32_t first_row;      // of it, in packed tensors
    int32_t last;           // 1: the CTA has no task after this one
    int32_t blocks_begin;   // first block of keys that the task visits
    int32_t unused[3];
  };
  static constexpr int q_entry_records = config.general() ? kQSlots : 0;

  // Dynamic shared memory. The tiles come first: the swizzle wants them at multiples of 1024 bytes.
  struct SharedMap {
    uint8_t q[q_tiles][consumers][config.q_tile_bytes()];
    uint8_t kv[rings_bytes];
    uint64_t barriers[barrier_table(config).slots()];
    alignas(16) QRecord task[kQSlots];
  };
  static constexpr int entry_offset = static_cast<int>(sizeof(SharedMap));
  static constexpr int ring_offset = entry_offset + q_entry_records * static_cast<int>(sizeof(QEntryRecord));
  static constexpr int o_slot_offset = ring_offset + task_slots(config) * static_cast<int>(sizeof(TaskRecord));
  static constexpr int o_slots_bytes = o_in_ring ? kQSlots * consumers * 4 : 0;  // which slot O stands in
  static constexpr int q_offset = static_cast<int>(offsetof(SharedMap, q));
  static constexpr int kv_offset = static_cast<int>(offsetof(SharedMap, kv));
  static constexpr int barriers_offset = static_cast<int>(offsetof(SharedMap, barriers));
  static constexpr int barriers_bytes = static_cast<int>(sizeof(SharedMap::barriers));
  static constexpr int task_offset = static_cast<int>(offsetof(SharedMap, task));
  static constexpr int shared_bytes = o_slot_offset + o_slots_bytes;
  static_assert(shared_bytes <= kMaxSharedBytes);
  static_assert(barrier_table(config).consistent());
};

// Byte offset of the first mbarrier of a row from the start of dynamic shared memory, how many they are, and the arrivals
// that complete a phase: the table's numbers as constants that device code may use.
template <Config config, BarrierId id>
inline constexpr uint32_t kBarrierOffset =
    static_cast<uint32_t>(Layout<config>::barriers_offset) + 8 * barrier_table(config).slot(id);
template <Config config, BarrierId id>
inline constexpr uint32_t kBarrierStages = barrier_table(config)[id].stages;
template <Config config, BarrierId id>
inline constexpr uint32_t kBarrierArrivals = barrier_table(config)[id].arrivals;

}  // namespace fa4::hopper
