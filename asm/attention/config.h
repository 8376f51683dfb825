// SPDX-License-Identifier: Apache-2.0
// What a specialisation of an attention kernel is, as one value, and the tiles that follow from it. Plain C++, no device
// code. Memory maps and register budgets follow from it too: layout.h of each architecture.
#pragma once

#include <stdint.h>

#include "host_device.h"
#include "mask.h"

namespace fa4 {

// Of Q, K, V and O: 16 bits. The values are their codes in the instruction descriptor of tcgen05.mma.kind::f16.
enum class ElementType : uint32_t { f16 = 0, bf16 = 1 };

// Where a finished O tile is staged for its store: in shared memory of its own, over the Q tile of its stage, which the last score MMA
// of the task has read, or in slots of the K/V ring, where it takes a turn.
enum class OPlace : uint32_t { own, over_q, ring };

// What computes the exponentials of softmax: MUFU all of them, or the FMA pipe a share, by a polynomial (exp2_polynomial.h).
enum class Exp2 : uint32_t { mufu, polynomial };

inline constexpr int kElementBytes = 2;

// A tile in shared memory is cut along the head dimension into pieces of 64 columns, each [rows][64 elements] with 128-byte
// swizzle: the box of a rank-5 tensor map, dense.
inline constexpr int kPieceColumns = 64;
inline constexpr int kRowBytes = kPieceColumns * kElementBytes;
static_assert(kRowBytes == 128);
inline constexpr int kSharedAlignment = 1024;  // of the tiles: the swizzle wants it

// What compute capability 9.0 and 10.x have in common.
inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kRegistersPerSm = 65536;
// Of a thread, when a CTA of so many begins: what setmaxnreg shares out. The rest is nobody's.
constexpr int launch_registers_of(int threads) {
  return kRegistersPerSm / threads / 8 * 8;
}
inline constexpr int kMaxSharedBytes = 232448;  // what a CTA may ask for
inline constexpr int kMmaK = 16;                // of an MMA instruction of 16-bit elements

struct Config {
  ElementType element;
  MaskKind mask;
  int qk_dim;      // head dimension of Q and K that the MMAs compute, a multiple of 16
  int v_dim;       // head dimension of V and O that they compute, a multiple of 16
  int tile_rows;   // rows of a Q tile: query positions times packed heads; those of the architecture's MMA
  int q_stages;    // Q tiles of a task. Blackwell: two, so that the softmax of one runs under the MMAs of the other, or one.
                   // Hopper: one for each warpgroup that computes
  int block_keys;  // keys of a K/V block
  int kv_slots;    // K and V blocks, in turn, share one ring of so many
  OPlace o_place;
  Exp2 exp2 = Exp2::mufu;

  FA4_HOST_DEVICE constexpr int qk_pieces() const { return (qk_dim + kPieceColumns - 1) / kPieceColumns; }
  FA4_HOST_DEVICE constexpr int v_pieces() const { return (v_dim + kPieceColumns - 1) / kPieceColumns; }
  FA4_HOST_DEVICE constexpr int q_tile_bytes() const { return tile_rows * qk_pieces() * kRowBytes; }
  FA4_HOST_DEVICE constexpr int k_tile_bytes() const { return block_keys * qk_pieces() * kRowBytes; }
  FA4_HOST_DEVICE constexpr int v_tile_bytes() const { return block_keys * v_pieces() * kRowBytes; }
  FA4_HOST_DEVICE constexpr int o_tile_bytes() const { return tile_rows * v_pieces() * kRowBytes; }

  // The general kernel of a head dimension: a band is its mask, each entry of a batch may have lengths of its own, scores may be
  // capped or biased, and rows may have sinks, all as values of the launch (GeneralParams). A warp of it hands out the tasks.
  FA4_HOST_DEVICE constexpr bool general() const { return mask == MaskKind::band; }

  // Whether a task visits a block also if it sees no key: who fills shared memory that another role's O may still lie in counts on it.
  FA4_HOST_DEVICE constexpr bool always_visits() const { return general() || o_place != OPlace::own; }

  // Rows of an m_block, the query side of a task.
  FA4_HOST_DEVICE constexpr int block_rows() const { return q_stages * tile_rows; }
};

// Longest sequence: row positions of the last m_block, of at most 256 rows, still fit into 32 bits.
inline constexpr int32_t kMaxBlockRows = 256;
inline constexpr int32_t kMaxSequence = INT32_MAX - kMaxBlockRows;

// Softmax keeps a row's old maximum until it has moved by this much in log2: P then stays below 2^8.
inline constexpr float kRescaleThreshold = 8.0f;

}  // namespace fa4
