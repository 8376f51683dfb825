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

// A divisor that is known before the launch: a division by it is a multiplication and a shift, where the device takes more
// than a hundred cycles for one by any number.
struct Divisor {
  int32_t value;        // >= 1
  uint32_t shift;       // ceil(log2(value))
  uint32_t multiplier;  // ceil(2^(31 + shift) / value)

  bool operator==(const Divisor&) const = default;

  // Exact for 0 <= n: the multiplier is too large by less than 1, the quotient by less than n / 2^(31 + shift) < 1 / value.
  FA4_HOST_DEVICE int32_t divide(int32_t n) const {
    const uint64_t product = uint64_t{2 * static_cast<uint32_t>(n)} * multiplier;
    return static_cast<int32_t>(static_cast<uint32_t>(product >> 32) >> shift);
  }
};

constexpr Divisor make_divisor(int32_t value) {
  uint32_t shift = 0;
  while (uint64_t{1} << shift < static_cast<uint64_t>(value)) ++shift;
  const uint64_t divisor = static_cast<uint64_t>(value);
  return Divisor{value, shift, static_cast<uint32_t>(((uint64_t{1} << (31 + shift)) + divisor - 1) / divisor)};
}

// The order of all tasks.
struct TaskOrder {
  SchedulerKind kind;
  int32_t task_count;           // batch * head_groups * m_blocks
  Divisor m_blocks;             // of a head group
  Divisor head_groups;          // of a batch entry
  Divisor section_tasks;        // LPT: of a section of head groups that share the L2 cache
  Divisor section_groups;       // its head groups
  Divisor last_section_groups;  // as many, or fewer
  int32_t last_section;

  bool operator==(const TaskOrder&) const = default;
};

// `section_groups` >= 1, of all `batch * head_groups` groups. Products below 2^31.
constexpr TaskOrder make_task_order(SchedulerKind kind, int32_t batch, int32_t head_groups, int32_t m_blocks,
                                    int32_t section_groups) {
  const int32_t all_groups = batch * head_groups;
  const int32_t width = section_groups < all_groups ? section_groups : all_groups;
  const int32_t last_section = (all_groups - 1) / width;
  return TaskOrder{kind,
                   all_groups * m_blocks,
                   make_divisor(m_blocks),
                   make_divisor(head_groups),
                   make_divisor(width * m_blocks),
                   make_divisor(width),
                   make_divisor(all_groups - last_section * width),
                   last_section};
}

// The place in the order of tasks that CTA `cta` takes in wave `wave`, or -1 when it has none in this or any
// later wave. Linear walks each wave from the first CTA to the last. LPT turns round after every wave, so
// that the CTA that got the heaviest task of a wave gets the lightest of the next: a static order that
// balances without a shared counter.
FA4_HOST_DEVICE int32_t task_of(const TaskOrder& order, int32_t cta, int32_t wave, int32_t grid) {
  const bool turned = order.kind == SchedulerKind::lpt && (wave & 1) != 0;
  // Unsigned: the last wave may reach past 2^31 - 1 before it is compared.
  const uint32_t index = static_cast<uint32_t>(wave) * static_cast<uint32_t>(grid) +
                         static_cast<uint32_t>(turned ? grid - 1 - cta : cta);
  return index < static_cast<uint32_t>(order.task_count) ? static_cast<int32_t>(index) : -1;
}

// The task at place `index` of the order.
// Linear: batch, then head group, then m_block. LPT (longest processing time first): sections of
// `section_groups` head groups, whose K and V share the L2 cache. In the last section the m_blocks go from the
// last, which sees the most keys under a causal mask, down to the first, in the one before it up, and so on by
// turns: along the whole order the cost of a task changes gradually, so that turning round after each wave
// evens it out also where sections meet within a wave.
FA4_HOST_DEVICE TaskId decode_task(const TaskOrder& order, int32_t index) {
  int32_t folded_group, m_block;  // folded_group = batch * head_groups + head_group
  if (order.kind == SchedulerKind::lpt) {
    const int32_t section = order.section_tasks.divide(index);
    const int32_t in_section = index - section * order.section_tasks.value;
    const Divisor& groups = section == order.last_section ? order.last_section_groups : order.section_groups;
    const int32_t row = groups.divide(in_section);
    folded_group = section * order.section_groups.value + in_section - row * groups.value;
    const bool upwards = (order.last_section - section) % 2 != 0;
    m_block = upwards ? row : order.m_blocks.value - 1 - row;
  } else {
    folded_group = order.m_blocks.divide(index);
    m_block = index - folded_group * order.m_blocks.value;
  }
  const int32_t batch = order.head_groups.divide(folded_group);
  return TaskId{batch, folded_group - batch * order.head_groups.value, m_block};
}

}  // namespace fa4
