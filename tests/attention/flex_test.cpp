// SPDX-License-Identifier: Apache-2.0
// Variable lengths, windows, top-left alignment, softcap, sinks and ALiBi against PyTorch: sampled rows of
// FlexAttention and scaled_dot_product_attention as a GPU computed them, kept in tests/fixtures with the
// script that made them. The inputs are regenerated here.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include "harness.h"
#include "tools/cli/npy.h"

namespace {

using namespace fa4;
using support::Problem;
using support::Reference;
using Json = nlohmann::json;

Problem problem_of(const Json& c) {
  Problem p;
  const std::string dtype = c.at("dtype");
  REQUIRE((dtype == "fp16" || dtype == "bf16"));
  p.dtype = dtype == "fp16" ? support::Dtype::fp16 : support::Dtype::bf16;
  const std::vector<int64_t> q_rows = c.at("q_rows"), kv_rows = c.at("kv_rows");
  const test::Ragged kind = c.at("packed").get<bool>() ? test::Ragged::packed : test::Ragged::none;
  p.batch = int64_t(q_rows.size());
  test::set_q_rows(p, kind, q_rows);
  test::set_kv_rows(p, kind, kv_rows);
  p.q_heads = c.at("q_heads");
  p.kv_heads = c.at("kv_heads");
  p.head_dim = c.at("head_dim");
  p.scale = c.at("scale");
  p.causal = c.at("causal");
  p.top_left = c.at("top_left");
  p.window = !c.at("window").is_null();
  if (p.window) {
    p.window_left = c.at("window").at(0);
    p.window_right = c.at("window").at(1);
  }
  p.softcap = c.at("softcap");
  p.sinks = c.at("sinks");
  p.alibi = c.at("alibi");
  return p;
}

// What a problem asks for, and the same problem without it.
struct Feature {
  const char* name;
  bool (*used)(const Problem&);
  void (*drop)(Problem&);
};
constexpr std::array<Feature, 7> kFeatures{{
    {"lengths", [](const Problem& p) { return p.kv_lengths.given(); },
     [](Problem& p) { p.q_lengths = p.kv_lengths = {}; }},
    {"causal", [](const Problem& p) { return p.causal; }, [](Problem& p) { p.causal = false; }},
    {"window", [](const Problem& p) { return p.window; }, [](Problem& p) { p.window = false; }},
    {"top-left", [](const Problem& p) { return p.top_left; }, [](Problem& p) { p.top_left = false; }},
    {"softcap", [](const Problem& p) { return p.softcap != 0; }, [](Problem& p) { p.softcap = 0; }},
    {"sinks", [](const Problem& p) { return p.sinks; }, [](Problem& p) { p.sinks = false; }},
    {"ALiBi", [](const Problem& p) { return p.alibi; }, [](Problem& p) { p.alibi = false; }},
}};

// The rows that the fixture keeps of a problem. lse is empty where PyTorch gave none.
struct Rows {
  struct Place {
    int64_t entry, head, position;
  };
  std::vector<Place> places;
  std::vector<uint16_t> o;
  std::vector<float> lse;
};

// How many elements are farther than so much from PyTorch's. An infinity is only near itself.
int64_t outside(double allowed, double ours, double theirs) {
  return !(ours == theirs || std::fabs(ours - theirs) <= allowed);
}
template <typename OursO, typename OursLse>
int64_t outside(const Problem& p, const Rows& rows, const support::Tolerance& allowed, OursO&& ours_o,
                OursLse&& ours_lse) {
  int64_t count = 0;
  for (size_t r = 0; r < rows.places.size(); ++r) {
    const auto& [entry, head, position] = rows.places[r];
    const size_t at = size_t(((entry * p.seq_q + position) * p.q_heads + head) * p.head_dim);
    const size_t lse_at = size_t((entry * p.q_heads + head) * p.seq_q + position);
    for (size_t d = 0; d < size_t(p.head_dim); ++d)
      count +=
          outside(allowed.o, ours_o(at + d), support::to_float(p.dtype, rows.o[r * size_t(p.head_dim) + d]));
    if (!rows.lse.empty()) count += outside(allowed.lse, ours_lse(lse_at), rows.lse[r]);
  }
  return count;
}
int64_t outside(const Problem& p, const Rows& rows, const support::Tolerance& allowed,
                const Reference& reference) {
  return outside(
      p, rows, allowed, [&](size_t i) { return reference.o[i]; }, [&](size_t i) { return reference.lse[i]; });
}

void compare_with_pytorch(const Json& c, const Rows& rows, std::set<std::string>& features) {
  const Problem p = problem_of(c);
  const support::Inputs inputs = support::make_inputs(p, c.at("seed"));
  REQUIRE(inputs.sinks == c.at("sink_values").get<std::vector<float>>());
  REQUIRE(inputs.slopes == c.at("slope_values").get<std::vector<float>>());
  for (const auto& [entry, head, position] : rows.places)
    REQUIRE((entry < p.batch && head < p.q_heads && position < p.length_q(entry)));

  support::RunResult result;
  CHECK(test::verify({p, {}, c.at("seed")}, inputs, &result) == "");
  REQUIRE(result.o.size() == size_t(p.o_elements()));
  const Reference expected = support::reference_double(p, inputs);
  const support::Tolerance strict =
      support::tolerance_of(p, expected, support::reference_same_precision(p, inputs));
  INFO("strict tolerance " << strict.o << ", of the LSE " << strict.lse);
  CHECK(outside(
            p, rows, strict, [&](size_t i) { return support::to_float(p.dtype, result.o[i]); },
            [&](size_t i) { return result.lse[i]; }) == 0);
  CHECK(outside(p, rows, strict, expected) == 0);  // the same inputs, and a fixture that is right

  // The rows kept show what the problem asks for: without it they would be others.
  for (const Feature& feature : kFeatures) {
    if (!feature.used(p)) continue;
    features.insert(feature.name);
    Problem without = p;
    feature.drop(without);
    INFO("without " << feature.name);
    CHECK(outside(p, rows, strict, support::reference_double(without, inputs)) > 0);
  }
}

}  // namespace

TEST_CASE("general kernels equal FlexAttention and scaled_dot_product_attention", "[flex]") {
  const std::string folder = std::string(FA4_FIXTURES) + "/";
  std::ifstream file(folder + "flex.json");
  REQUIRE(file.good());
  const Json about = Json::parse(file);
  const cli::NpyArray places = cli::read_npy(folder + "flex_rows.npy");
  const cli::NpyArray outputs = cli::read_npy(folder + "flex_o.npy"),
                      lses = cli::read_npy(folder + "flex_lse.npy");
  REQUIRE(places.type == cli::NpyType::uint16);
  REQUIRE(outputs.type == cli::NpyType::uint16);
  REQUIRE(lses.type == cli::NpyType::float32);
  int64_t all_rows = 0, all_elements = 0;
  for (const Json& c : about.at("cases")) {
    all_rows += c.at("rows").get<int64_t>();
    all_elements += c.at("rows").get<int64_t>() * c.at("head_dim").get<int64_t>();
  }
  REQUIRE(places.shape == std::vector<int64_t>{all_rows, 3});
  REQUIRE(outputs.shape == std::vector<int64_t>{all_elements});
  REQUIRE(lses.shape == std::vector<int64_t>{all_rows});

  const std::byte *place = places.data.data(), *o = outputs.data.data(), *lse = lses.data.data();
  std::set<std::string> features;
  for (const Json& c : about.at("cases")) {
    INFO(c.at("name") << " by " << c.at("call") << ", PyTorch " << about.at("torch") << " on "
                      << about.at("device"));
    const size_t count = c.at("rows");
    REQUIRE(count >= 32);
    Rows rows;
    rows.places.resize(count);
    for (auto& [entry, head, position] : rows.places) {
      std::array<uint16_t, 3> numbers;
      std::memcpy(numbers.data(), place, sizeof numbers);
      place += sizeof numbers;
      entry = numbers[0], head = numbers[1], position = numbers[2];
    }
    rows.o.resize(count * c.at("head_dim").get<size_t>());
    std::memcpy(rows.o.data(), o, 2 * rows.o.size());
    o += 2 * rows.o.size();
    if (c.at("lse")) {
      rows.lse.resize(count);
      std::memcpy(rows.lse.data(), lse, 4 * count);
    }
    lse += 4 * count;
    compare_with_pytorch(c, rows, features);
  }
  CHECK(features.size() == kFeatures.size());
}
