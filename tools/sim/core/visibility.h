// SPDX-License-Identifier: Apache-2.0
// When an ordinary store can be seen, under adversarial timing: by its own lane at once; by other threads
// when the lane has released it, or some time later by itself; by the asynchronous proxy when it has also
// been fenced for it. A store is held back until others may see it, and what it overwrote is remembered until
// the asynchronous proxy must see it.
#pragma once

#include "machine.h"

namespace fa4::sim {

// Whether this store, which is `bytes` long, is held back.
bool holds_back(Warp& w, const Op* op, uint32_t bytes);
// `owner`: the CTA whose shared memory it is in, null for global memory.
void hold_back(Warp& w, int lane, std::byte* at, Cta* owner, const std::byte* data, uint32_t bytes);
// The lane accesses [at, at + bytes): it sees its own stores, in their order.
void publish_overlapping(Warp& w, int lane, const std::byte* at, uint32_t bytes);
// The lanes release: all that they stored is there for other threads.
void publish_all(Warp& w, Mask lanes);
// fence.proxy.async: all that the lanes stored, and all that others may have released to them, is there for
// the asynchronous proxy as well.
void publish_to_async(Warp& w, Mask lanes, FenceKind kind);
// What has been held back long enough.
void publish_due(Cta& cta, uint64_t now);
void publish_everything(Cta& cta);

inline void publish(Warp& w, Mask lanes) {
  if (!w.held.empty()) publish_all(w, lanes);
}

// While it lives, memory holds what the asynchronous proxy may see: of every store that was not fenced for
// it, the new bytes or the old ones, as drawn.
class AsyncView {
 public:
  explicit AsyncView(Cta& cta);
  ~AsyncView();
  AsyncView(const AsyncView&) = delete;
  AsyncView& operator=(const AsyncView&) = delete;

 private:
  Cta& cta_;
  size_t exchanged_ = 0;  // of Cta::unfenced, from the newest
};

}  // namespace fa4::sim
