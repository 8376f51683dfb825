// SPDX-License-Identifier: Apache-2.0
// A tile to or from shared memory by TMA. The tensor maps' dimensions: columns of the head dimension, heads, sequence, pieces of 64
// columns, batch. Where the head dimension is a multiple of 64 one copy takes all pieces. Where it is not, a map of pieces would let
// the last one reach into the next head: the map then has all columns in its first dimension, which clips them, and each piece is
// a copy of its own (`pieces_apart`, of AttentionParams). The bytes that a load announces are those of the whole tile either way.
#pragma once

#include "../ptx/tma.cuh"
#include "params.h"

namespace fa4 {

// Calls copy(coordinates, shared::cta address) for the boxes of a tile of `pieces` times 64 columns and `rows` rows at `tile`.
template <Config config, int pieces, int rows, typename Copy>
__device__ __forceinline__ void copy_tile(uint32_t tile, int32_t head, int32_t position, int32_t plane, uint32_t pieces_apart,
                                          const Copy& copy) {
  int32_t coordinates[5] = {0, head, position, config.general() ? kMapRows : 0, plane};
  copy(coordinates, tile);
  if constexpr (pieces > 1) {
    if (!config.general() && pieces_apart == 0) return;
#pragma unroll 1
    for (int piece = 1; piece < pieces; ++piece) {
      coordinates[0] = piece * kPieceColumns;
      copy(coordinates, tile + piece * rows * kRowBytes);
    }
  }
}

template <Config config, int pieces, int rows>
__device__ __forceinline__ void load_tile(uint32_t tile, const CUtensorMap& map, int32_t head, int32_t position, int32_t plane,
                                          uint32_t pieces_apart, uint32_t barrier) {
  copy_tile<config, pieces, rows>(tile, head, position, plane, pieces_apart, [&](const int32_t(&coordinates)[5], uint32_t piece) {
    ptx::cp_async_bulk_tensor_load(piece, &map, coordinates, barrier);
  });
}

template <Config config, int pieces, int rows>
__device__ __forceinline__ void store_tile(const CUtensorMap& map, int32_t head, int32_t position, int32_t plane,
                                           uint32_t pieces_apart, uint32_t tile) {
  copy_tile<config, pieces, rows>(tile, head, position, plane, pieces_apart, [&](const int32_t(&coordinates)[5], uint32_t piece) {
    ptx::cp_async_bulk_tensor_store(&map, coordinates, piece);
  });
}

}  // namespace fa4
