// SPDX-License-Identifier: Apache-2.0
// The small kernels that measure a GPU: on the simulated one, which FA4SIM_GPU names, they run and the
// checker has nothing to say. What they measure there means nothing.
#include <cmath>
#include <set>
#include <string>

#include "support/catch.h"
#include "support/gpu.h"
#include "tools/probe/probe.h"
#include "tools/time/parameters.h"
#include "tools/time/sass.h"

using namespace fa4;

TEST_CASE("probes run, and the model knows what they measure") {
  support::Gpu gpu(FA4SIM_LIBRARY, 0);
  REQUIRE(gpu.simulator().check(1) == 0);
  std::vector<probe::Measured> all;
  try {
    all = probe::measure(gpu);
  } catch (const std::exception& error) {
    FAIL(error.what() << "\n" << gpu.simulator().last_error());
  }
  std::vector<fa4sim_finding> findings(gpu.simulator().count_findings());
  findings.resize(gpu.simulator().take_findings(findings.data(), findings.size()));
  for (const fa4sim_finding& f : findings)
    FAIL_CHECK(f.kernel << ": " << f.memory << "\n" << f.first << "\n" << f.second << "\n" << f.chain);
  CHECK(all.size() > 5);
  std::set<std::string_view> known, seen;
  for (const fa4::time::Parameter& p : fa4::time::parameters()) known.insert(p.name);
  for (const probe::Measured& m : all) {
    INFO(m.name << " " << m.value);
    CHECK(std::isfinite(m.value));
    CHECK(known.contains(m.name));
    CHECK(seen.insert(m.name).second);
  }
}

TEST_CASE("measured numbers replace the table's and lose their range") {
  fa4::time::Gpu gpu = fa4::time::gpu_of("b200");
  fa4::time::set_measured(gpu, "MUFU latency", 19.6);
  CHECK(gpu.mufu_latency == 20);
  CHECK(gpu.replaced != 0);
  const auto refusal = [&](std::string_view name, double value) {
    try {
      fa4::time::set_measured(gpu, name, value);
    } catch (const fa4::time::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal("MUFU latencies", 19) == "the model has no number 'MUFU latencies'");
  CHECK(refusal("EX2", 0.25) == "'EX2' was measured as 0.250000; from 0.5 to below 1000000 is accepted");
  CHECK(refusal("EX2", std::nan("")) == "'EX2' was measured as nan; from 0.5 to below 1000000 is accepted");
  CHECK(gpu.mufu_exp2 == 8);
}
