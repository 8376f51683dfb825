// SPDX-License-Identifier: Apache-2.0
// What every attention test shares: the device under test and the one judgement of an output.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "asm/attention/kernel.h"
#include "support/attention_device.h"
#include "support/catch.h"
#include "support/compare.h"
#include "support/inputs.h"

namespace fa4::test {

// The device that FA4_TEST_DEVICE names ("sim" or "gpu"); opened by main().
support::AttentionDevice& device();

// The kernels that the device runs.
const KernelList& kernels();

// Head dimensions, of Q and K and of V and O.
struct HeadDims {
  int64_t qk, v;
};
// Those that have kernels of their own; and these one after the other, for problems that turn.
std::vector<HeadDims> head_dims();
HeadDims head_dims_at(uint64_t turn);

// The tiles of the kernel for a problem of these kinds, with few rows.
const Config& config_of(support::Dtype dtype, MaskKind mask, const HeadDims& dims);

struct Case {
  support::Problem problem;
  support::RunOptions options;
  uint64_t seed = 1;
};
std::string describe(const Case& c);

// Runs the case on the device and judges O and LSE against the double-precision reference: within twice the
// error of the same-precision reference plus a small atol, within rtol = atol = 1e-2, every element written,
// nothing beside them changed. Returns "" or the case and what is wrong with it.
std::string verify(const Case& c);
std::string verify(const Case& c, const support::Inputs& inputs, support::RunResult* result = nullptr);

// Pairs (query stage, KV block) that a problem costs when nothing is skipped: the unit of simulation time.
int64_t stage_blocks(const support::Problem& problem);

// A small generator: what matters is that the choice is fixed and spread.
struct Picker {
  uint64_t state;
  size_t operator()(size_t count) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return size_t((state >> 33) % count);
  }
};

// How one side says the lengths of its entries.
enum class Ragged { none, packed, used, both };
inline constexpr std::array kRagged{Ragged::none, Ragged::packed, Ragged::used, Ragged::both};

// Gives each side its bound, and its entries so many rows: all of them the most where the side is not ragged.
// Where packed entries are used in part, rows that do not count lie between them.
void set_q_rows(support::Problem& problem, Ragged kind, const std::vector<int64_t>& rows);
void set_kv_rows(support::Problem& problem, Ragged kind, const std::vector<int64_t>& rows);

}  // namespace fa4::test
