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
  if (!checker) {
    checker = std::make_unique<check::Checker>(*grid_);
    if (explains_) checker->explain(pairs_);
  }
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
      std::snprintf(text, sizeof text, "global memory 0x%llx: ", static_cast<unsigned long long>(w.begin));
      f.memory = text + w.memory->describe(w.begin);
      const auto who = [](const check::GlobalWrite& write) {  // in a cluster the writer names its CTA
        return write.writer->starts_with("CTA ") ? *write.writer : "CTA " + std::to_string(write.cta) + ", " + *write.writer;
      };
      f.first = who(*reach);
      f.second = who(w);
      f.chain = "nothing orders CTAs of this grid: each must write memory of its own";
      merge(findings, {f});
    }
    if (!reach || w.end > reach->end) reach = &w;
  }
}

}  // namespace

void Collector::explain(std::set<std::pair<uint32_t, uint32_t>> pairs) {
  explains_ = true;
  pairs_ = std::move(pairs);
}

std::vector<Ordering> Collector::take_orderings() { return std::exchange(orderings_, {}); }

std::vector<Finding> Collector::take() {
  std::vector<Finding> all;
  std::vector<check::GlobalWrite> writes;
  for (auto& checker : checkers_) {
    if (!checker) continue;
    merge(all, checker->findings());
    axioms_ |= checker->axioms();
    orderings_.insert(orderings_.end(), checker->orderings().begin(), checker->orderings().end());
    writes.insert(writes.end(), checker->global_writes().begin(), checker->global_writes().end());
  }
  find_overlaps(std::move(writes), all);
  for (auto& checker : checkers_) checker.reset();
  std::sort(all.begin(), all.end(), [](const Finding& x, const Finding& y) {
    return std::tie(x.warning, x.cta, x.cycle, x.first_op, x.second_op) < std::tie(y.warning, y.cta, y.cycle, y.first_op, y.second_op);
  });
  return all;
}

}  // namespace fa4::sim
