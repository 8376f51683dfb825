// SPDX-License-Identifier: Apache-2.0
// The two references. Rows that share a KV head run in blocks of four against 16 (double) or 32 (fp32) keys
// at a time, with K and V cut into panels that are read front to back: K by 16 (32) keys, head dimension by
// head dimension; V by 16 (32) columns, key by key.
#include "reference.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
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

// out[r][d] = sum over the first `keys` keys of p[r * pitch + j] * V[j][d], for `dim` columns, a multiple of kStep;
// V[j][d] lies at (d / kStep * seq_kv + j) * kStep + d % kStep.
template <typename T>
inline __attribute__((always_inline)) void value_rows(const T* p, const T* values, int64_t seq_kv, T* out,
                                                      int dim, int64_t keys, int64_t pitch) {
  using V = typename Vector<T>::type;
  for (int d = 0; d < dim; d += kStep<T>) {
    V sum[kRows][kVectorsPerStep] = {};
    const V* panel = reinterpret_cast<const V*>(values + d * seq_kv);
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
FA4_CLONES void values_double(const double* p, const double* v, int64_t seq_kv, double* o, int dim, int64_t keys,
                              int64_t pitch) {
  value_rows<double>(p, v, seq_kv, o, dim, keys, pitch);
}
FA4_CLONES void values_float(const float* p, const float* v, int64_t seq_kv, float* o, int dim, int64_t keys,
                              int64_t pitch) {
  value_rows<float>(p, v, seq_kv, o, dim, keys, pitch);
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

// The four rows at q0 .. q0 + 3 (positions of one query head; repeats of the last where fewer are left).
template <typename T>
void attend_rows(const Problem& problem, const Inputs& inputs, int64_t b, int64_t head, int64_t first,
                 const T* k, const T* values, int64_t pitch, T* q, T* scores, T* out, Reference& result) {
  const bool same_precision = std::is_same_v<T, float>;
  const int dim = int(problem.head_dim);
  const int rows = int(std::min<int64_t>(kRows, problem.seq_q - first));
  int64_t keys = 0;
  for (int r = 0; r < kRows; ++r) {
    const int64_t position = first + std::min(r, rows - 1);
    keys = std::max(keys, problem.visible_keys(position));
    const uint16_t* source =
        &inputs.q[size_t(((b * problem.seq_q + position) * problem.q_heads + head) * dim)];
    for (int d = 0; d < dim; ++d) q[r * dim + d] = T(to_float(problem.dtype, source[d]));
  }
  const int64_t padded = filled<T>(keys);
  if constexpr (std::is_same_v<T, double>) {
    scores_double(q, k, scores, dim, padded, pitch);
  } else {
    scores_float(q, k, scores, dim, padded, pitch);
  }

  // The maximum is subtracted before scaling, so that finite scores of any size come out right.
  T sums[kRows], maxima[kRows];
  const T scale = T(std::fabs(problem.effective_scale()));
  const bool negative = problem.effective_scale() < 0;
  for (int r = 0; r < kRows; ++r) {
    T* row = scores + r * pitch;
    const int64_t visible = problem.visible_keys(first + std::min(r, rows - 1));
    T maximum = -std::numeric_limits<T>::infinity();
    for (int64_t j = 0; j < visible; ++j) {
      if (negative) row[j] = -row[j];
      maximum = std::max(maximum, row[j]);
    }
    const T shift = maximum == -std::numeric_limits<T>::infinity() ? T(0) : maximum;
    T sum = 0;
    for (int64_t j = 0; j < visible; ++j) {
      const T p = std::exp((row[j] - shift) * scale);
      sum += p;
      row[j] = same_precision ? T(to_float(problem.dtype, from_float(problem.dtype, float(p)))) : p;
    }
    for (int64_t j = visible; j < padded; ++j) row[j] = 0;
    sums[r] = sum;
    maxima[r] = maximum;
  }

  const int width = int(filled<T>(dim));  // of a row of `out`
  if constexpr (std::is_same_v<T, double>) {
    values_double(scores, values, problem.seq_kv, out, width, keys, pitch);
  } else {
    values_float(scores, values, problem.seq_kv, out, width, keys, pitch);
  }
  for (int r = 0; r < rows; ++r) {
    const int64_t position = first + r;
    double* o = &result.o[size_t(((b * problem.seq_q + position) * problem.q_heads + head) * dim)];
    for (int d = 0; d < dim; ++d) {
      const T normalised = sums[r] == 0 ? T(0) : out[r * width + d] / sums[r];
      o[d] = same_precision ? double(to_float(problem.dtype, from_float(problem.dtype, float(normalised))))
                            : double(normalised);
    }
    result.lse[size_t((b * problem.q_heads + head) * problem.seq_q + position)] =
        sums[r] == 0 ? -std::numeric_limits<double>::infinity() : rounded_lse(double(maxima[r] * scale + std::log(sums[r])));
  }
}

// All query heads of one KV head of one batch entry.
template <typename T>
void attend_kv_head(const Problem& problem, const Inputs& inputs, int64_t b, int64_t kv_head,
                    Reference& result) {
  const int dim = int(problem.head_dim);
  const int64_t pitch = std::max(filled<T>(problem.seq_kv), filled<T>(1)), width = filled<T>(dim);
  AlignedBuffer<T> k(size_t(pitch * dim)), values(size_t(pitch * width));
  AlignedBuffer<T> q(size_t(kRows * dim)), scores(size_t(kRows * pitch)), out(size_t(kRows * width));
  for (int64_t j = 0; j < problem.seq_kv; ++j) {
    const size_t source = size_t(((b * problem.seq_kv + j) * problem.kv_heads + kv_head) * dim);
    for (int d = 0; d < dim; ++d) {
      k.data[(j / kStep<T> * dim + d) * kStep<T> + j % kStep<T>] =
          T(to_float(problem.dtype, inputs.k[source + size_t(d)]));
      values.data[(d / kStep<T> * problem.seq_kv + j) * kStep<T> + d % kStep<T>] =
          T(to_float(problem.dtype, inputs.v[source + size_t(d)]));
    }
  }
  for (int64_t head = kv_head * problem.ratio(); head < (kv_head + 1) * problem.ratio(); ++head)
    for (int64_t first = 0; first < problem.seq_q; first += kRows)
      attend_rows<T>(problem, inputs, b, head, first, k.data, values.data, pitch, q.data, scores.data,
                     out.data, result);
}

// Reference::unspecified.
std::vector<uint8_t> heads_of_infinite_v(const Problem& problem, const Inputs& inputs) {
  std::vector<uint8_t> result(size_t(problem.batch * problem.kv_heads), 0);
  for (int64_t row = 0; row < problem.batch * problem.seq_kv * problem.kv_heads; ++row) {
    uint8_t& unspecified =
        result[size_t(row / (problem.seq_kv * problem.kv_heads) * problem.kv_heads + row % problem.kv_heads)];
    for (int d = 0; d < int(problem.head_dim); ++d)
      unspecified |= !std::isfinite(to_float(problem.dtype, inputs.v[size_t(row * problem.head_dim + d)]));
  }
  return result;
}

template <typename T>
Reference attend(const Problem& problem, const Inputs& inputs) {
  Reference result;
  result.unspecified = heads_of_infinite_v(problem, inputs);
  result.o.resize(size_t(problem.q_elements()));
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
