// SPDX-License-Identifier: Apache-2.0
// A timeline as one picture.
#include <algorithm>
#include <cstdio>
#include <set>

#include "timeline.h"

namespace fa4::time {

namespace {

constexpr double kLeft = 104, kTop = 44, kLaneHeight = 34, kBarHeight = 24, kWidth = 1280, kBottom = 46;

const char* css_class(BarKind kind) {
  switch (kind) {
    case BarKind::score0:
      return "s0";
    case BarKind::score1:
      return "s1";
    case BarKind::score2:
      return "s2";
    case BarKind::value0:
      return "o0";
    case BarKind::value1:
      return "o1";
    case BarKind::value2:
      return "o2";
    case BarKind::product:
      return "s0";
    case BarKind::masked:
      return "masked";
    case BarKind::unmasked:
      return "unmasked";
    case BarKind::work:
      return "work";
    case BarKind::rescale:
      return "rescale";
    case BarKind::epilogue:
      return "epilogue";
    case BarKind::load:
      return "load";
    case BarKind::store:
      return "store";
    case BarKind::waiting:
      return "work";
  }
  return "work";
}

const char* legend(BarKind kind) {
  switch (kind) {
    case BarKind::score0:
      return "score MMA, stage 0";
    case BarKind::score1:
      return "score MMA, stage 1";
    case BarKind::score2:
      return "score MMA, stage 2";
    case BarKind::value0:
      return "value MMA, stage 0";
    case BarKind::value1:
      return "value MMA, stage 1";
    case BarKind::value2:
      return "value MMA, stage 2";
    case BarKind::product:
      return "MMA";
    case BarKind::masked:
      return "softmax, masked block";
    case BarKind::unmasked:
      return "softmax";
    case BarKind::work:
      return "other work";
    case BarKind::rescale:
      return "rescale of O";
    case BarKind::epilogue:
      return "epilogue";
    case BarKind::load:
      return "TMA load";
    case BarKind::store:
      return "TMA store";
    case BarKind::waiting:
      return "waits";
  }
  return "";
}

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else
      result += c;
  }
  return result;
}

template <class... T>
void print(std::string& out, const char* format, T... values) {
  char text[512];
  std::snprintf(text, sizeof text, format, values...);
  out += text;
}

// The palette keeps lightness apart, so that it reads without colour, too.
constexpr const char* kStyle = R"(<style>
svg { font: 12px system-ui, sans-serif; }
.s0 { fill: #2f6fbf; } .s1 { fill: #7fb2e6; } .s2 { fill: #c3dcf5; }
.o0 { fill: #c8641a; } .o1 { fill: #f2b27a; } .o2 { fill: #fadcc0; }
.unmasked { fill: #3f9a6b; } .masked { fill: #8a6fc0; } .work { fill: #a9b3bf; } .rescale { fill: #c62f3b; }
.epilogue { fill: #1f8f9c; } .load { fill: #7d8896; } .store { fill: #505a66; }
.paper { fill: #ffffff; } text { fill: #1c2430; } .soft { fill: #6b7684; } .line { stroke: #d8dee6; }
.arrow { stroke: #c2185b; stroke-width: 1.4; fill: none; marker-end: url(#tip); } .tip { fill: #c2185b; }
@media (prefers-color-scheme: dark) {
  .paper { fill: #12161c; } text { fill: #e6ebf2; } .soft { fill: #97a3b2; } .line { stroke: #323b47; }
  .arrow { stroke: #ff6aa2; } .tip { fill: #ff6aa2; }
}
.in { fill: #fff; font-size: 10px; pointer-events: none; } .dark { fill: #1c2430; } rect:hover { opacity: .75; }
</style>
)";

// Of 1, 2 or 5 times a power of ten: about ten marks.
uint64_t tick(uint64_t cycles) {
  uint64_t step = 1;
  for (;;) {
    for (uint64_t m : {1, 2, 5})
      if (cycles / (step * m) <= 12) return step * m;
    step *= 10;
  }
}

}  // namespace

std::string svg(const Timeline& timeline, uint64_t begin, uint64_t end, const std::string& title) {
  const double plot = kWidth - kLeft - 16;
  const auto x = [&](uint64_t cycle) {
    return kLeft + plot * double(std::clamp(cycle, begin, end) - begin) / double(end - begin);
  };
  const auto y = [&](size_t lane) { return kTop + kLaneHeight * double(lane); };
  std::set<BarKind> used;
  for (const Lane& lane : timeline.lanes)
    for (const Bar& bar : lane.bars)
      if (bar.end > begin && bar.begin < end) used.insert(bar.kind);
  const double bottom = y(timeline.lanes.size());
  const double height = bottom + kBottom + 18 * double((used.size() + 6) / 7);
  std::string out;
  print(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n", kWidth,
        height);
  out += "<title>" + escaped(title) + "</title>\n" + kStyle;
  out +=
      "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" "
      "markerHeight=\"6\" orient=\"auto\"><path class=\"tip\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n";
  print(out, "<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n", kWidth, height);
  print(out, "<text x=\"12\" y=\"20\">%s</text>\n", escaped(title).substr(0, 400).c_str());
  const uint64_t step = tick(end - begin);
  for (uint64_t c = (begin + step - 1) / step * step; c <= end; c += step) {
    print(out, "<path class=\"line\" d=\"M%.1f %.1fV%.1f\"/>", x(c), kTop - 6, bottom);
    print(out, "<text class=\"soft\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%llu</text>\n", x(c),
          bottom + 14, static_cast<unsigned long long>(c));
  }
  print(out, "<text class=\"soft\" x=\"12\" y=\"%.1f\">cycles</text>\n", bottom + 14);
  for (size_t i = 0; i < timeline.lanes.size(); ++i) {
    const Lane& lane = timeline.lanes[i];
    print(out, "<text x=\"12\" y=\"%.1f\">%s</text>\n", y(i) + 16, escaped(lane.name).c_str());
    for (const Bar& bar : lane.bars) {
      if (bar.end <= begin || bar.begin >= end) continue;
      const double from = x(bar.begin), width = std::max(0.8, x(bar.end) - from - 0.5);
      print(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" rx=\"1.5\"><title>",
            css_class(bar.kind), from, y(i), width, kBarHeight);
      out += escaped(bar.title) + "</title></rect>";
      if (!bar.label.empty() && width > 5.6 * double(bar.label.size()) + 2) {
        const bool light = bar.kind == BarKind::score1 || bar.kind == BarKind::value1 ||
                           bar.kind == BarKind::score2 || bar.kind == BarKind::value2;
        print(out, "<text class=\"in%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>",
              light ? " dark" : "", from + width / 2, y(i) + 15.5, bar.label.c_str());
      }
      out += '\n';
    }
  }
  for (const Arrow& arrow : timeline.arrows) {
    if (arrow.begin < begin || arrow.end > end) continue;
    const bool down = arrow.to > arrow.from;
    const double y0 = y(arrow.from) + (down ? kBarHeight : 0), y1 = y(arrow.to) + (down ? 0 : kBarHeight);
    print(out, "<path class=\"arrow\" d=\"M%.1f %.1fL%.1f %.1f\"><title>", x(arrow.begin), y0, x(arrow.end),
          y1);
    out += escaped(arrow.title) + "</title></path>\n";
  }
  size_t n = 0;
  for (BarKind kind : used) {
    const double lx = kLeft + double(n % 7) * (plot / 7), ly = bottom + 32 + 18 * double(n / 7);
    print(out,
          "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"1.5\"/><text x=\"%.1f\" "
          "y=\"%.1f\">%s</text>\n",
          css_class(kind), lx, ly, lx + 17, ly + 10, legend(kind));
    ++n;
  }
  if (!timeline.arrows.empty()) {
    const double lx = kLeft + double(n % 7) * (plot / 7), ly = bottom + 32 + 18 * double(n / 7);
    print(
        out,
        "<path class=\"arrow\" d=\"M%.1f %.1fh14\"/><text x=\"%.1f\" y=\"%.1f\">what waits for what</text>\n",
        lx - 2, ly + 6, lx + 17, ly + 10);
  }
  return out + "</svg>\n";
}

}  // namespace fa4::time
