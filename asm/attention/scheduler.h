// SPDX-License-Identifier: Apache-2.0
// Which CTA owns which task. Pure functions of integers, the same for device, host and tests; no CUDA needed.
//
// A task is (batch, head group, m_block). The grid is persistent: CTA c of a grid of g takes one task in each
// wave, until its waves are used up. The scheduler only decides which; it never touches how a tile is
// computed.
#pragma once

#include <stdint.h>

#include "host_device.h"

namespace fa4 {

enum class SchedulerKind : uint32_t { linear = 0, lpt = 1 };

struct TaskId {
  int32_t batch;
  int32_t head_group;
  int32_t m_block;
};

// The place in the order of tasks that CTA `cta` takes in wave `wave`, or -1 when it has none in this or any
// later wave. Linear walks each wave from the first CTA to the last. LPT turns round after every wave, so
// that the CTA that got the heaviest task of a wave gets the lightest of the next: a static order that
// balances without a shared counter.
FA4_HOST_DEVICE int32_t task_of(SchedulerKind kind, int32_t cta, int32_t wave, int32_t grid,
                                int32_t task_count) {
  const bool turned = kind == SchedulerKind::lpt && (wave & 1) != 0;
  // Unsigned: the last wave may reach past 2^31 - 1 before it is compared.
  const uint32_t index = static_cast<uint32_t>(wave) * static_cast<uint32_t>(grid) +
                         static_cast<uint32_t>(turned ? grid - 1 - cta : cta);
  return index < static_cast<uint32_t>(task_count) ? static_cast<int32_t>(index) : -1;
}

// The task at place `index` of the order; all_groups = batch * head_groups.
// Linear: batch, then head group, then m_block. LPT (longest processing time first): sections of
// `section_groups` head groups, whose K and V share the L2 cache. In the last section the m_blocks go from the
// last, which sees the most keys under a causal mask, down to the first, in the one before it up, and so on by
// turns: along the whole order the cost of a task changes gradually, so that turning round after each wave
// evens it out also where sections meet within a wave.
FA4_HOST_DEVICE TaskId decode_task(SchedulerKind kind, int32_t index, int32_t all_groups, int32_t head_groups,
                                   int32_t m_blocks, int32_t section_groups) {
  int32_t folded_group, m_block;  // folded_group = batch * head_groups + head_group
  if (kind == SchedulerKind::lpt) {
    const int32_t section_width = section_groups < all_groups ? section_groups : all_groups;
    const int32_t section = index / m_blocks / section_width;
    const int32_t first_group = section * section_width;
    const int32_t groups_left = all_groups - first_group;
    const int32_t groups = groups_left < section_width ? groups_left : section_width;
    const int32_t in_section = index - first_group * m_blocks;
    folded_group = first_group + in_section % groups;
    const bool upwards = ((all_groups - 1) / section_width - section) % 2 != 0;
    m_block = upwards ? in_section / groups : m_blocks - 1 - in_section / groups;
  } else {
    folded_group = index / m_blocks;
    m_block = index % m_blocks;
  }
  return TaskId{folded_group / head_groups, folded_group % head_groups, m_block};
}

}  // namespace fa4
