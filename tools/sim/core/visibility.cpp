// SPDX-License-Identifier: Apache-2.0
#include "visibility.h"

#include <algorithm>
#include <cstring>

#include "shared_memory.h"

namespace fa4::sim {

namespace {

constexpr uint64_t kHeldCycles = 500, kUnfencedCycles = 2000;  // drawn around these

// Into memory. `fenced`: the asynchronous proxy sees it as well.
void perform(Cta& cta, const HeldStore& store, bool fenced) {
  if (!fenced) {
    UnfencedBytes bytes{store.at, store.due + delay(cta, kUnfencedCycles), store.bytes, store.owner != nullptr, {}};
    std::memcpy(bytes.other, store.at, store.bytes);
    (store.owner ? *store.owner : cta).unfenced.push_back(bytes);
  }
  std::memcpy(store.at, store.data, store.bytes);
  if (store.owner) set_shared_valid(*store.owner, uint32_t(store.at - store.owner->shared.data()), store.bytes, true);
}

// Performs those that `which` says; others stay.
template <class Which>
void perform_some(Warp& w, bool fenced, Which which) {
  size_t left = 0;
  for (HeldStore& store : w.held) {
    if (which(store))
      perform(*w.cta, store, fenced);
    else
      w.held[left++] = store;
  }
  w.held.resize(left);
}

}  // namespace

bool holds_back(Warp& w, const Op* op, uint32_t bytes) {
  Cta& cta = *w.cta;
  if (cta.launch->model != Model::isa || (op->order & kStrong) || bytes > sizeof HeldStore::data)
    return false;
  return drawn(cta, 4) != 0;
}

void hold_back(Warp& w, int lane, std::byte* at, Cta* owner, const std::byte* data, uint32_t bytes) {
  publish_overlapping(w, lane, at, bytes);
  HeldStore store{at, owner, w.time + delay(*w.cta, kHeldCycles), uint8_t(lane), uint8_t(bytes), {}};
  std::memcpy(store.data, data, bytes);
  w.held.push_back(store);
}

void publish_overlapping(Warp& w, int lane, const std::byte* at, uint32_t bytes) {
  perform_some(w, false, [&](const HeldStore& store) {
    return store.lane == lane && store.at < at + bytes && at < store.at + store.bytes;
  });
}

void publish_all(Warp& w, Mask lanes) {
  perform_some(w, false, [&](const HeldStore& store) { return lanes >> store.lane & 1; });
}

void publish_to_async(Warp& w, Mask lanes, FenceKind kind) {
  Cta& cta = *w.cta;
  // .shared::cta covers the own CTA's memory, .shared::cluster that of the others too.
  const bool own = kind != FenceKind::proxy_async_global, others = kind == FenceKind::proxy_async || kind == FenceKind::proxy_async_cluster;
  const bool global = kind == FenceKind::proxy_async || kind == FenceKind::proxy_async_global;
  std::erase_if(cta.unfenced, [&](const UnfencedBytes& bytes) { return bytes.shared ? own : global; });
  for (uint32_t rank = 0; others && rank < cta.cluster->size; ++rank) {
    Cta& other = *cta.cluster->ctas[rank];
    if (&other != &cta) std::erase_if(other.unfenced, [&](const UnfencedBytes& bytes) { return bytes.shared; });
  }
  perform_some(w, true, [&](const HeldStore& store) {
    return (lanes >> store.lane & 1) && (store.owner == nullptr ? global : store.owner == &cta ? own : others);
  });
}

void publish_due(Cta& cta, uint64_t now) {
  for (Warp& w : cta.warps) {
    if (!w.held.empty()) perform_some(w, false, [&](const HeldStore& store) { return store.due <= now; });
  }
  if (!cta.unfenced.empty())
    std::erase_if(cta.unfenced, [&](const UnfencedBytes& bytes) { return bytes.due <= now; });
}

void publish_everything(Cta& cta) {
  for (Warp& w : cta.warps) publish(w, kAllLanes);
  cta.unfenced.clear();
}

AsyncView::AsyncView(Cta& cta) : cta_(cta) {
  if (cta.unfenced.empty() || drawn(cta, 2) == 0) return;
  for (; exchanged_ < cta.unfenced.size(); ++exchanged_) {
    UnfencedBytes& bytes = cta.unfenced[cta.unfenced.size() - 1 - exchanged_];
    std::swap_ranges(bytes.other, bytes.other + bytes.bytes, bytes.at);
  }
}

AsyncView::~AsyncView() {
  for (; exchanged_ > 0; --exchanged_) {
    UnfencedBytes& bytes = cta_.unfenced[cta_.unfenced.size() - exchanged_];
    std::swap_ranges(bytes.other, bytes.other + bytes.bytes, bytes.at);
  }
}

}  // namespace fa4::sim
