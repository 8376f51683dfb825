// SPDX-License-Identifier: Apache-2.0
// The seed's configuration against PyTorch: sampled rows of scaled_dot_product_attention as a GPU computed
// them, kept in tests/fixtures with the script that made them. The inputs are regenerated here.
#include <cmath>
#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

#include "harness.h"
#include "tools/cli/npy.h"

namespace {

using namespace fa4;

void compare_with_pytorch(bool causal) {
  const std::string folder = std::string(FA4_FIXTURES) + "/";
  std::ifstream file(folder + "sdpa.json");
  REQUIRE(file.good());
  const nlohmann::json about = nlohmann::json::parse(file);
  REQUIRE(about.at("dtype") == "fp16");
  const support::Problem problem{
      support::Dtype::fp16, causal, about.at("batch"), about.at("seq"), about.at("seq"), about.at("q_heads"),
      about.at("kv_heads"), 0};
  const cli::NpyArray rows = cli::read_npy(folder + (causal ? "sdpa_causal.npy" : "sdpa_full.npy"));
  const cli::NpyArray places = cli::read_npy(folder + "sdpa_rows.npy");  // (rows, 2): head, position
  REQUIRE(rows.type == cli::NpyType::float16);
  REQUIRE(places.type == cli::NpyType::uint16);
  const int64_t count = places.shape.at(0);
  REQUIRE(count >= 64);
  REQUIRE(rows.shape == std::vector<int64_t>{count, problem.head_dim});
  REQUIRE(places.shape == std::vector<int64_t>{count, 2});
  std::vector<uint16_t> torch(rows.data.size() / 2), place(places.data.size() / 2);
  std::memcpy(torch.data(), rows.data.data(), rows.data.size());
  std::memcpy(place.data(), places.data.data(), places.data.size());

  const support::Inputs inputs = support::make_inputs(problem, about.at("seed"));
  const test::Case c{problem, {}, about.at("seed")};
  support::RunResult result;
  CHECK(test::verify(c, inputs, &result) == "");
  REQUIRE(result.o.size() == size_t(problem.o_elements()));

  const support::Reference expected = support::reference_double(problem, inputs);
  const double strict =
      support::tolerance_of(problem, expected, support::reference_same_precision(problem, inputs)).o;
  int64_t outside_1e2 = 0, outside_strict = 0, torch_outside_strict = 0;
  for (int64_t r = 0; r < count; ++r) {
    const int64_t head = place[size_t(2 * r)], position = place[size_t(2 * r + 1)];
    for (int64_t d = 0; d < problem.head_dim; ++d) {
      const size_t at = size_t((position * problem.q_heads + head) * problem.head_dim + d);
      const double theirs = support::fp16_to_float(torch[size_t(r * problem.head_dim + d)]);
      const double ours = support::fp16_to_float(result.o[at]);
      outside_1e2 += !(std::fabs(ours - theirs) <= 1e-2 + 1e-2 * std::fabs(theirs));
      outside_strict += !(std::fabs(ours - theirs) <= strict);
      torch_outside_strict += !(std::fabs(theirs - expected.o[at]) <= strict);
    }
  }
  INFO("strict tolerance " << strict << ", PyTorch " << about.at("torch") << " on " << about.at("device"));
  CHECK(outside_1e2 == 0);
  CHECK(outside_strict == 0);
  CHECK(torch_outside_strict == 0);  // the same inputs, and a fixture that is right
}

}  // namespace

TEST_CASE("the seed's configuration equals PyTorch, full", "[sdpa]") {
  compare_with_pytorch(false);
}
TEST_CASE("the seed's configuration equals PyTorch, causal", "[sdpa]") {
  compare_with_pytorch(true);
}
