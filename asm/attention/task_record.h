// SPDX-License-Identifier: Apache-2.0
// The ring through which the scheduler warp of a general kernel tells the other roles which tasks are the CTA's: what lies in it.
// Plain C++, no device code.
#pragma once

#include "task.h"

namespace fa4 {

inline constexpr int kTaskSlots = 4;
static_assert((kTaskSlots & (kTaskSlots - 1)) == 0);
constexpr int task_slots(const Config& config) {
  return config.general() ? kTaskSlots : 0;
}

struct alignas(16) TaskRecord {
  TaskId id;
  int32_t last;  // 1: the CTA has no other after this one
  Entry entry;
};
static_assert(sizeof(TaskRecord) == 32);

}  // namespace fa4
