// SPDX-License-Identifier: Apache-2.0
// A timeline in Chrome's trace format.
#include <nlohmann/json.hpp>

#include "timeline.h"

namespace fa4::time {

std::string chrome_trace(const Timeline& timeline, const Timing& timing, const Names& names) {
  using nlohmann::json;
  json events = json::array();
  const auto track = [&](int process, size_t thread, const std::string& name) {
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", process},
                      {"tid", thread},
                      {"args", {{"name", name}}}});
    events.push_back({{"ph", "M"},
                      {"name", "thread_sort_index"},
                      {"pid", process},
                      {"tid", thread},
                      {"args", {{"sort_index", thread}}}});
  };
  const auto slice = [&](int process, size_t thread, const std::string& name, const std::string& title,
                         uint64_t begin, uint64_t end) {
    events.push_back({{"ph", "X"},
                      {"name", name},
                      {"pid", process},
                      {"tid", thread},
                      {"ts", double(begin) / 1000},
                      {"dur", double(end - begin) / 1000},
                      {"args", {{"what", title}}}});
  };
  events.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", 0}, {"args", {{"name", "SM"}}}});
  events.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", 1}, {"args", {{"name", "warps"}}}});
  for (size_t i = 0; i < timeline.lanes.size(); ++i) {
    track(0, i, timeline.lanes[i].name);
    for (const Bar& bar : timeline.lanes[i].bars)
      slice(0, i, bar.label.empty() ? bar.title : bar.label, bar.title, bar.begin, bar.end);
  }
  for (uint32_t w = 0; w < timing.warps.size(); ++w) {
    track(1, w, "warp " + std::to_string(w) + ", " + names.role_of(w));
    uint64_t since = 0;
    const auto work = [&](uint64_t until) {
      if (until > since) slice(1, w, "runs", "", since, until);
    };
    for (const Blocked& blocked : timing.blocked[w]) {
      work(blocked.begin);
      slice(1, w, "waits for " + names.barrier(blocked.address), "", blocked.begin, blocked.end);
      since = blocked.end;
    }
    work(timing.warps[w].end);
  }
  return json({{"displayTimeUnit", "ns"}, {"traceEvents", events}}).dump();
}

}  // namespace fa4::time
