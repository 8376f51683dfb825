// SPDX-License-Identifier: Apache-2.0
// The two references. Rows that share a KV head run in blocks of four against 16 (double) or 32 (fp32) keys
// at a time, with K and V cut into panels that are read front to back: K by 16 (32) keys, head dimension by
// head dimension; V by 16 (32) columns, key by key.
#include "reference.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numbers>
#include <memory>
#include <thread>
#include <type_traits>

// The inner loops are compiled for several instruction sets and picked when the program starts.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FA4_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FA4_CLONES
#endif

namespace fa4::support {
namespace {

constexpr int kRows = 4;  // query rows at a time

template <typename T>
struct Vector {  // 64 bytes
  typedef T type __attribute__((vector_size(64)));
  static constexpr int lanes = 64 / int(sizeof(T));
};
constexpr int kVectorsPerStep = 2;
template <typename T>
constexpr int kStep = kVectorsPerStep* Vector<T>::lanes;  // keys, or head-dimension columns, at a time
template <typename T>
constexpr int64_t filled(int64_t count) {  // up to whole steps
  return (count + kStep<T> - 1) / kStep<T> * kStep<T>;
}

// scores[r * pitch + j] = sum over d of q[r][d] * K[j][d], for `keys` keys (a multiple of kStep);
// K[j][d] lies at (j / kStep * dim + d) * kStep + j % kStep.
template <typename T>
inline __attribute__((always_inline)) void score_rows(const T* q, const T* k, T* scores, int dim, int64_t keys,
                                                      int64_t pitch) {
  using V = typename Vector<T>::type;
  for (int64_t j = 0; j < keys; j += kStep<T>) {
    V sum[kRows][kVectorsPerStep] = {};
    const V* panel = reinterpret_cast<const V*>(k + j * dim);
    for (int d = 0; d < dim; ++d, panel += kVectorsPerStep)
      for (int r = 0; r < kRows; ++r)
        for (int v = 0; v < kVectorsPerStep; ++v) sum[r][v] += q[r * dim + d] * panel[v];
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectorsPerStep; ++v) reinterpret_cast<V*>(scores + r * pitch + j)[v] = sum[r][v];
  }
}

// out[r][d] = sum over the first `keys` keys of p[r * pitch + j] * V[j][d], for `dim` columns, a multiple of
// kStep; V[j][d] lies at (d / kStep * rows + j) * kStep + d % kStep.
template <typename T>
inline __attribute__((always_inline)) void value_rows(const T* p, const T* values, int64_t rows, T* out,
                                                      int dim, int64_t keys, int64_t pitch) {
  using V = typename Vector<T>::type;
  for (int d = 0; d < dim; d += kStep<T>) {
    V sum[kRows][kVectorsPerStep] = {};
    const V* panel = reinterpret_cast<const V*>(values + d * rows);
    for (int64_t j = 0; j < keys; ++j, panel += kVectorsPerStep)
      for (int r = 0; r < kRows; ++r)
        for (int v = 0; v < kVectorsPerStep; ++v) sum[r][v] += p[r * pitch + j] * panel[v];
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectorsPerStep; ++v) reinterpret_cast<V*>(out + r * dim + d)[v] = sum[r][v];
  }
}

FA4_CLONES void scores_double(const double* q, const double* k, double* s, int dim, int64_t keys, int64_t pitch) {
  score_rows<double>(q, k, s, dim, keys, pitch);
}
FA4_CLONES void scores_float(const float* q, const float* k, float* s, int dim, int64_t keys, int64_t pitch) {
  score_rows<float>(q, k, s, dim, keys, pitch);
}
FA4_CLONES void values_double(const double* p, const double* v, int64_t rows, double* o, int dim,
                              int64_t keys, int64_t pitch) {
  value_rows<double>(p, v, rows, o, dim, keys, pitch);
}
FA4_CLONES void values_float(const float* p, const float* v, int64_t rows, float* o, int dim, int64_t keys,
                             int64_t pitch) {
  value_rows<float>(p, v, rows, o, dim, keys, pitch);
}

template <typename T>
struct AlignedBuffer {
  explicit AlignedBuffer(size_t count) : storage(count + 64 / sizeof(T)) {
    void* start = storage.data();
    size_t space = storage.size() * sizeof(T);
    data = static_cast<T*>(std::align(64, count * sizeof(T), start, space));
  }
  std::vector<T> storage;
  T* data;
};

// An LSE is a float32: beyond its range, the infinity to which it rounds.
double rounded_lse(double lse) {
  const float rounded = float(lse);
  return std::isinf(rounded) ? double(rounded) : lse;
}

// Of the reference in the precision of the kernels: keys of a block, no more than theirs have, and how far a maximum may lag, in
// natural-log units (8 in log2, as the kernels' specification says).
constexpr int64_t kReferenceBlock = 64;
constexpr float kRescaleThreshold = float(8 * std::numbers::ln2);

// Scores of a row to P, relative to `shift`, and their sum before they are rounded. P is rounded relative to a maximum that lags
// behind, as blocks come from the last to the first: even the largest P of a row is rounded, unless it lies in its first block.
float round_probabilities(Dtype dtype, float* row, const KeyInterval& seen, float unit, float shift) {
  float lagging = -std::numeric_limits<float>::infinity(), sum = 0;
  for (int64_t end = seen.end; end > seen.begin;) {
    const int64_t begin = std::max(seen.begin, (end - 1) / kReferenceBlock * kReferenceBlock);
    const float highest = *std::max_element(row + begin, row + end);
    if (!((highest - lagging) * unit <= kRescaleThreshold)) lagging = highest;
    const float block_shift = std::isfinite(lagging) ? lagging : shift, factor = std::exp((block_shift - shift) * unit);
    for (int64_t j = begin; j < end; ++j) {
      const float p = std::exp((row[j] - block_shift) * unit);
      sum += p * factor;
      row[j] = to_float(dtype, from_float(dtype, p)) * factor;
    }
    end = begin;
  }
  return sum;
}

// The four rows at first .. first + 3 (positions of one query head; repeats of the last where fewer are
// left).
template <typename T>
void attend_rows(const Problem& problem, const Inputs& inputs, int64_t b, int64_t head, int64_t first,
                 const T* k, const T* values, int64_t pitch, T* q, T* scores, T* out, Reference& result) {
  constexpr bool same_precision = std::is_same_v<T, float>;
  const int dim = int(problem.head_dim), v_dim = int(problem.v_dim());
  const int rows = int(std::min<int64_t>(kRows, problem.length_q(b) - first));
  KeyInterval seen[kRows];
  int64_t begin = problem.length_kv(b), end = 0;  // of the keys that any of the rows sees
  for (int r = 0; r < kRows; ++r) {
    const int64_t position = first + std::min(r, rows - 1);
    seen[r] = problem.visible(b, position);
    if (seen[r].count() == 0)
      seen[r] = {0, 0};
    else
      begin = std::min(begin, seen[r].begin);
    end = std::max(end, seen[r].end);
    const uint16_t* source =
        &inputs.q[size_t(((b * problem.seq_q + position) * problem.q_heads + head) * dim)];
    for (int d = 0; d < dim; ++d) q[r * dim + d] = T(to_float(problem.dtype, source[d]));
  }
  begin = std::min(begin, end) / kStep<T> * kStep<T>;
  const int64_t padded = filled<T>(end - begin);
  if constexpr (std::is_same_v<T, double>) {
    scores_double(q, k + begin * dim, scores + begin, dim, padded, pitch);
  } else {
    scores_float(q, k + begin * dim, scores + begin, dim, padded, pitch);
  }

  // A plain score is times a positive `unit`, which is multiplied after the maximum is subtracted, so that
  // finite scores of any size come out right. Softcap and ALiBi need the score itself.
  T sums[kRows], shifts[kRows];
  const T scale = T(problem.effective_scale()), softcap = T(problem.softcap);
  const bool bent = problem.softcap != 0 || problem.alibi;
  const T unit = bent ? T(1) : std::fabs(scale);
  const T slope = problem.alibi
                      ? T(inputs.slopes[size_t((problem.slopes_by_entry ? b * problem.q_heads : 0) + head)])
                      : T(0);
  constexpr T kInf = std::numeric_limits<T>::infinity();
  const T sink = problem.sinks ? T(inputs.sinks[size_t(head)]) : -kInf;
  for (int r = 0; r < kRows; ++r) {
    T* row = scores + r * pitch;
    const int64_t diagonal = first + std::min(r, rows - 1) + problem.off(b);
    T maximum = sink / unit;
    for (int64_t j = seen[r].begin; j < seen[r].end; ++j) {
      if (bent)
        row[j] *= scale;
      else if (scale < 0)
        row[j] = -row[j];
      if (problem.softcap != 0) row[j] = softcap * std::tanh(row[j] / softcap);
      if (problem.alibi) row[j] -= slope * T(std::abs(diagonal - j));
      maximum = std::max(maximum, row[j]);
    }
    const T shift = maximum == -kInf ? T(0) : maximum;
    T sum = problem.sinks ? std::exp(sink - shift * unit) : T(0);
    if constexpr (same_precision) {
      sum += round_probabilities(problem.dtype, row, seen[r], unit, shift);
    } else {
      for (int64_t j = seen[r].begin; j < seen[r].end; ++j) sum += row[j] = std::exp((row[j] - shift) * unit);
    }
    std::fill(row + begin, row + std::max(begin, seen[r].begin), T(0));
    std::fill(row + std::max(begin, seen[r].end), row + begin + padded, T(0));
    sums[r] = sum;
    shifts[r] = shift;
  }

  const int64_t keys = end - begin;
  const int width = int(filled<T>(v_dim));  // of a row of `out`
  if constexpr (std::is_same_v<T, double>) {
    values_double(scores + begin, values + begin * kStep<T>, problem.length_kv(b), out, width, keys, pitch);
  } else {
    values_float(scores + begin, values + begin * kStep<T>, problem.length_kv(b), out, width, keys, pitch);
  }
  for (int r = 0; r < rows; ++r) {
    const int64_t position = first + r;
    double* o = &result.o[size_t(((b * problem.seq_q + position) * problem.q_heads + head) * v_dim)];
    for (int d = 0; d < v_dim; ++d) {
      const T normalised = sums[r] == 0 ? T(0) : out[r * width + d] / sums[r];
      o[d] = same_precision ? double(to_float(problem.dtype, from_float(problem.dtype, float(normalised))))
                            : double(normalised);
    }
    result.lse[size_t((b * problem.q_heads + head) * problem.seq_q + position)] =
        sums[r] == 0 ? -std::numeric_limits<double>::infinity()
                     : rounded_lse(double(shifts[r] * unit + std::log(sums[r])));
  }
}

// All query heads of one KV head of one batch entry.
template <typename T>
void attend_kv_head(const Problem& problem, const Inputs& inputs, int64_t b, int64_t kv_head,
                    Reference& result) {
  const int dim = int(problem.head_dim), v_dim = int(problem.v_dim());
  const int64_t keys = problem.length_kv(b);
  const int64_t pitch = std::max(filled<T>(keys), int64_t(kStep<T>)), width = filled<T>(v_dim);
  AlignedBuffer<T> k(size_t(pitch * dim)), values(size_t(pitch * width));
  AlignedBuffer<T> q(size_t(kRows * dim)), scores(size_t(kRows * pitch)), out(size_t(kRows * width));
  for (int64_t j = 0; j < keys; ++j) {
    const size_t row = size_t((b * problem.seq_kv + j) * problem.kv_heads + kv_head);
    for (int d = 0; d < dim; ++d)
      k.data[(j / kStep<T> * dim + d) * kStep<T> + j % kStep<T>] =
          T(to_float(problem.dtype, inputs.k[row * size_t(dim) + size_t(d)]));
    for (int d = 0; d < v_dim; ++d)
      values.data[(d / kStep<T> * keys + j) * kStep<T> + d % kStep<T>] =
          T(to_float(problem.dtype, inputs.v[row * size_t(v_dim) + size_t(d)]));
  }
  for (int64_t head = kv_head * problem.ratio(); head < (kv_head + 1) * problem.ratio(); ++head)
    for (int64_t first = 0; first < problem.length_q(b); first += kRows)
      attend_rows<T>(problem, inputs, b, head, first, k.data, values.data, pitch, q.data, scores.data,
                     out.data, result);
}

// Reference::unspecified.
std::vector<uint8_t> heads_of_infinite_v(const Problem& problem, const Inputs& inputs) {
  std::vector<uint8_t> result(size_t(problem.batch * problem.kv_heads), 0);
  for (int64_t b = 0; b < problem.batch; ++b)
    for (int64_t i = 0; i < problem.length_kv(b) * problem.kv_heads; ++i) {
      const uint16_t* row = &inputs.v[size_t((b * problem.seq_kv * problem.kv_heads + i) * problem.v_dim())];
      result[size_t(b * problem.kv_heads + i % problem.kv_heads)] |=
          std::any_of(row, row + problem.v_dim(),
                      [&](uint16_t bits) { return !std::isfinite(to_float(problem.dtype, bits)); });
    }
  return result;
}

template <typename T>
Reference attend(const Problem& problem, const Inputs& inputs) {
  Reference result;
  result.unspecified = heads_of_infinite_v(problem, inputs);
  result.o.resize(size_t(problem.o_elements()));
  result.lse.resize(size_t(problem.lse_elements()));
  const int64_t jobs = problem.batch * problem.kv_heads;
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t job = next++; job < jobs; job = next++)
      attend_kv_head<T>(problem, inputs, job / problem.kv_heads, job % problem.kv_heads, result);
  };
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (int64_t t = 1; t < std::min(cores, jobs); ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return result;
}

}  // namespace

Reference reference_double(const Problem& problem, const Inputs& inputs) {
  return attend<double>(problem, inputs);
}
Reference reference_same_precision(const Problem& problem, const Inputs& inputs) {
  return attend<float>(problem, inputs);
}

}  // namespace fa4::support
