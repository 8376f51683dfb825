// SPDX-License-Identifier: Apache-2.0
// A tile to or from shared memory by TMA. The tensor maps' dimensions: columns of the head dimension, heads, sequence, pieces of 64
// columns, batch. Where the head dimension is a multiple of 64 one copy takes all pieces. Where it is not, a map of pieces would let
// the last one reach into the next head: the map then has all columns in its first dimension, which clips them, and each piece is
// a copy of its own (`pieces_apart`, of AttentionParams). The bytes that a load announces are those of the whole tile either way.
#pragma once

#include "../ptx/tma.cuh"
#include "config.h"

namespace fa4 {

template <int pieces, int rows>
__device__ __forceinline__ void load_tile(uint32_t tile, const CUtensorMap& map, int32_t head, int32_t position, int32_t batch,
                                          uint32_t pieces_apart, uint32_t barrier) {
  int32_t coordinates[5] = {0, head, position, 0, batch};
  ptx::cp_async_bulk_tensor_load(tile, &map, coordinates, barrier);
  if constexpr (pieces > 1) {
    if (pieces_apart == 0) return;
#pragma unroll 1
    for (int piece = 1; piece < pieces; ++piece) {
      coordinates[0] = piece * kPieceColumns;
      ptx::cp_async_bulk_tensor_load(tile + piece * rows * kRowBytes, &map, coordinates, barrier);
    }
  }
}

template <int pieces, int rows>
__device__ __forceinline__ void store_tile(const CUtensorMap& map, int32_t head, int32_t position, int32_t batch,
                                           uint32_t pieces_apart, uint32_t tile) {
  int32_t coordinates[5] = {0, head, position, 0, batch};
  ptx::cp_async_bulk_tensor_store(&map, coordinates, tile);
  if constexpr (pieces > 1) {
    if (pieces_apart == 0) return;
#pragma unroll 1
    for (int piece = 1; piece < pieces; ++piece) {
      coordinates[0] = piece * kPieceColumns;
      ptx::cp_async_bulk_tensor_store(&map, coordinates, tile + piece * rows * kRowBytes);
    }
  }
}

}  // namespace fa4
