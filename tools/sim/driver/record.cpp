// SPDX-License-Identifier: Apache-2.0
// Recording of what chosen CTAs do to synchronise: fa4sim_record and fa4sim_take_sync.
#include <algorithm>

#include "state.h"

using namespace fa4::sim;
using namespace fa4::sim::driver;

extern "C" {

int fa4sim_record(const uint64_t* ctas, uint64_t count) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    if (count != 0 && ctas == nullptr)
      return fail(CUDA_ERROR_INVALID_VALUE, "fa4sim_record: the list of CTAs is null");
    State& s = state();
    const std::lock_guard guard(s.device_lock);
    if (s.collector)
      return fail(CUDA_ERROR_NOT_SUPPORTED,
                  "fa4sim_record: the checker watches launches; fa4sim_check(0) turns it off");
    s.recorder = count == 0 ? nullptr : std::make_unique<Recorder>();
    Recorder* const recorder = s.recorder.get();
    if (recorder)
      s.device->set_observers([=](uint32_t slot) { return recorder->observer(slot); });
    else
      s.device->set_observers(nullptr);
    s.device->select_ctas(count == 0 ? std::vector<uint64_t>{} : std::vector<uint64_t>(ctas, ctas + count));
    return CUDA_SUCCESS;
  });
}

uint64_t fa4sim_take_sync(uint64_t cta, fa4sim_sync* records, uint64_t capacity) {
  uint64_t count = 0;
  api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    State& s = state();
    const std::lock_guard guard(s.device_lock);
    if (!s.recorder) return CUDA_SUCCESS;
    count = s.recorder->count(cta);
    if (records == nullptr) return CUDA_SUCCESS;
    const std::vector<fa4sim_sync> taken = s.recorder->take(cta);
    std::copy_n(taken.begin(), std::min<uint64_t>(capacity, taken.size()), records);
    return CUDA_SUCCESS;
  });
  return count;
}

}  // extern "C"
