// SPDX-License-Identifier: Apache-2.0
// Registers that an asynchronous instruction will write or still reads: shadow state of a warp, kept only
// where the builder saw that it may matter.
#pragma once

#include <cstdint>
#include <span>

#include "machine.h"

namespace fa4::sim {

// A wgmma.mma_async is issued: its accumulators may be those of another one in flight, its A registers A of
// another one, and a wgmma.fence must stand between any other access to them and here. From now on they are
// its own.
void issue_wgmma_registers(Warp& warp, const Op* op, std::span<const uint16_t> accumulators,
                           std::span<const uint16_t> inputs);
// A tcgen05.ld of these columns will write these registers.
void issue_tmem_load(Warp& warp, uint32_t column, uint32_t columns, std::span<const uint16_t> destinations);
// wait::ld: all that have been issued are complete.
void wait_tmem_loads(Warp& warp);

}  // namespace fa4::sim
