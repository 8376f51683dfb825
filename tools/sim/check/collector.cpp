// SPDX-License-Identifier: Apache-2.0
#include "collector.h"

#include <algorithm>
#include <tuple>

#include "checker.h"

namespace fa4::sim {

Collector::Collector() : grid_(std::make_unique<check::Grid>()) {}
Collector::~Collector() = default;

Observer* Collector::observer(uint32_t slot) {
  const std::lock_guard lock(mutex_);
  if (checkers_.size() <= slot) checkers_.resize(slot + 1);
  auto& checker = checkers_[slot];
  if (!checker) checker = std::make_unique<check::Checker>(*grid_);
  return checker.get();
}

namespace {

// CTAs of a grid that has no means to talk cannot be ordered: what two of them write must not overlap.
void find_overlaps(std::vector<check::GlobalWrite> writes, std::vector<Finding>& findings) {
  std::sort(writes.begin(), writes.end(), [](const auto& x, const auto& y) { return std::tie(x.launch, x.begin, x.end, x.cta, x.op) < std::tie(y.launch, y.begin, y.end, y.cta, y.op); });
  const check::GlobalWrite* reach = nullptr;  // the write that reaches furthest so far
  for (const check::GlobalWrite& w : writes) {
    if (reach && w.launch != reach->launch) reach = nullptr;
    if (reach && w.begin < reach->end && w.cta != reach->cta) {
      Finding f;
      f.kind = FindingKind::global_overlap;
      f.cta = std::min(w.cta, reach->cta);
      f.first_op = reach->op;
      f.second_op = w.op;
      char text[64];
      std::snprintf(text, sizeof text, "global memory 0x%llx", static_cast<unsigned long long>(w.begin));
      f.memory = text;
      f.first = "CTA " + std::to_string(reach->cta) + ", warp " + std::to_string(reach->warp);
      f.second = "CTA " + std::to_string(w.cta) + ", warp " + std::to_string(w.warp);
      f.chain = "nothing orders CTAs of this grid: each must write memory of its own";
      merge(findings, {f});
    }
    if (!reach || w.end > reach->end) reach = &w;
  }
}

}  // namespace

std::vector<Finding> Collector::take() {
  std::vector<Finding> all;
  std::vector<check::GlobalWrite> writes;
  for (auto& checker : checkers_) {
    if (!checker) continue;
    merge(all, checker->findings());
    axioms_ |= checker->axioms();
    writes.insert(writes.end(), checker->global_writes().begin(), checker->global_writes().end());
    checker.reset();
  }
  find_overlaps(std::move(writes), all);
  std::sort(all.begin(), all.end(), [](const Finding& x, const Finding& y) {
    return std::tie(x.warning, x.cta, x.cycle, x.first_op, x.second_op) < std::tie(y.warning, y.cta, y.cycle, y.first_op, y.second_op);
  });
  return all;
}

}  // namespace fa4::sim
