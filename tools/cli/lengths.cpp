// SPDX-License-Identifier: Apache-2.0
// Lists of lengths, and whether they fit.
#include "lengths.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "npy.h"
#include "tensors.h"

namespace fa4::cli {
namespace {

constexpr int64_t kMostLength = std::numeric_limits<int32_t>::max();

// Of `text`, the value of an option: a list such as 100,2000,7, or the name of an .npy file.
std::vector<int64_t> read_numbers(const std::string& option, const std::string& text) {
  std::vector<int64_t> numbers;
  if (text.ends_with(".npy")) {
    const NpyArray array = read_npy(text);
    if (array.type != NpyType::int32 || array.shape.size() != 1)
      throw Refusal(fmt::format("{} {}: holds {} of shape {}; int32 of rank 1 is accepted", option, text,
                                name_of(array.type), shape_text(array.shape)));
    std::vector<int32_t> values(size_t(array.elements()));
    if (!values.empty()) std::memcpy(values.data(), array.data.data(), array.data.size());
    numbers.assign(values.begin(), values.end());
  } else {
    const char* at = text.data();
    const char* const end = at + text.size();
    for (bool more = true; more;) {
      int64_t number = 0;
      const auto [behind, error] = std::from_chars(at, end, number);
      more = error == std::errc() && behind != end && *behind == ',';
      if (error != std::errc() || (behind != end && !more))
        throw Refusal(
            fmt::format("{} {}: a list such as 100,2000,7 is accepted, or a file whose name ends with .npy",
                        option, text));
      numbers.push_back(number);
      at = behind + more;
    }
  }
  if (numbers.empty())
    throw Refusal(fmt::format("{} {}: holds no number; one for each batch entry is accepted", option, text));
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] < 0 || numbers[i] > kMostLength)
      throw Refusal(
          fmt::format("{}: number {} is {}; 0 to {} is accepted", option, i, numbers[i], kMostLength));
  return numbers;
}

std::vector<int64_t> lengths_of_sums(const std::string& option, const std::vector<int64_t>& sums) {
  if (sums.size() < 2 || sums.front() != 0)
    throw Refusal(fmt::format(
        "{}: {} numbers from {}; one more than there are batch entries is accepted, ascending from 0", option,
        sums.size(), sums.front()));
  std::vector<int64_t> lengths;
  for (size_t i = 1; i < sums.size(); ++i) {
    if (sums[i] < sums[i - 1])
      throw Refusal(fmt::format("{}: number {} is {}, behind {}; numbers that ascend from 0 are accepted",
                                option, i, sums[i], sums[i - 1]));
    lengths.push_back(sums[i] - sums[i - 1]);
  }
  return lengths;
}

SideLengths read_side(const LengthOptions& given, char side) {
  SideLengths result;
  const std::string lengths = fmt::format("--lengths-{}", side), sums = fmt::format("--cu-seqlens-{}", side);
  if (!given.lengths.empty() && !given.cu_seqlens.empty())
    throw Refusal(fmt::format("{} {} is given beside {} {}; one of them is accepted", lengths, given.lengths,
                              sums, given.cu_seqlens));
  if (!given.lengths.empty()) {
    result.lengths.packed = read_numbers(lengths, given.lengths);
    result.packed_by = lengths;
  }
  if (!given.cu_seqlens.empty()) {
    result.lengths.packed = lengths_of_sums(sums, read_numbers(sums, given.cu_seqlens));
    result.packed_by = sums;
  }
  if (!given.seqused.empty()) {
    result.used_by = fmt::format("--seqused-{}", side);
    result.lengths.used = read_numbers(result.used_by, given.seqused);
  }
  return result;
}

// `bound` is set already where entries are not packed, or where an option has it.
void check_side(const SideLengths& side, const char* bound_option, bool bound_given, int64_t& bound) {
  const std::vector<int64_t>&packed = side.lengths.packed, &used = side.lengths.used;
  if (!packed.empty()) {
    const auto longest = std::ranges::max_element(packed);
    if (bound_given && bound < *longest)
      throw Refusal(
          fmt::format("{} is {}, but entry {} of {} has {} rows; {} or more is accepted, or leave it out",
                      bound_option, bound, longest - packed.begin(), side.packed_by, *longest, *longest));
    if (!bound_given) bound = *longest;
  }
  for (size_t b = 0; b < used.size(); ++b) {
    const int64_t rows = packed.empty() ? bound : packed[b];
    if (used[b] > rows)
      throw Refusal(fmt::format("{}: entry {} is {}, but has {} rows; 0 to {} is accepted", side.used_by, b,
                                used[b], rows, rows));
  }
}

}  // namespace

void BatchLengths::pack_kv_as_q() {
  kv.lengths.packed = q.lengths.packed;
  kv.packed_by = q.packed_by;
}

BatchLengths read_lengths(const RunRequest& request) {
  BatchLengths batch{read_side(request.q_lengths, 'q'), read_side(request.kv_lengths, 'k'), 0, ""};
  const auto count = [&](const std::vector<int64_t>& list, const std::string& option) {
    if (list.empty()) return;
    const int64_t entries = int64_t(list.size());
    if (batch.given_by.empty()) {
      batch.entries = entries;
      batch.given_by = option;
    }
    if (entries != batch.entries)
      throw Refusal(fmt::format("{} has {} batch entries, but {} has {}; equal numbers are accepted", option,
                                entries, batch.given_by, batch.entries));
  };
  for (const SideLengths* side : {&batch.q, &batch.kv}) {
    count(side->lengths.packed, side->packed_by);
    count(side->lengths.used, side->used_by);
  }
  return batch;
}

void set_lengths(const BatchLengths& batch, const RunRequest& request, support::Problem& problem) {
  check_side(batch.q, "--seq-q", request.seq_q_given, problem.seq_q);
  check_side(batch.kv, "--seq-kv", request.seq_kv_given, problem.seq_kv);
  problem.q_lengths = batch.q.lengths;
  problem.kv_lengths = batch.kv.lengths;
}

}  // namespace fa4::cli
