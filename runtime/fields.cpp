// SPDX-License-Identifier: Apache-2.0
// One row for each number of fa4_forward_params but the head dimensions, in the order of the struct.
#include "fields.h"

namespace fa4 {
namespace {

using P = fa4_forward_params;
using ll = long long;

constexpr fa4_status kInvalid = FA4_ERROR_INVALID_ARGUMENT, kUnsupported = FA4_ERROR_UNSUPPORTED;
constexpr int64_t kNoLimit = INT64_MAX;

// A field that others belong to.
struct Owner {
  const char* name;
  bool (*given)(const P&);
};
constexpr Owner kCuSeqlensQ{"cu_seqlens_q", [](const P& p) { return p.cu_seqlens_q != 0; }};
constexpr Owner kCuSeqlensK{"cu_seqlens_k", [](const P& p) { return p.cu_seqlens_k != 0; }};
constexpr Owner kBlockTable{"block_table", [](const P& p) { return p.block_table != 0; }};
constexpr Owner kWindow{"window", [](const P& p) { return p.window != 0; }};
constexpr Owner kAlibiSlopes{"alibi_slopes", [](const P& p) { return p.alibi_slopes != 0; }};

template <typename Number>
struct Field {
  const char* name;
  Number P::*value;
  Number least, most;
  fa4_status below, above;         // what a value outside is
  const char* accepted = nullptr;  // null: the range in numbers
  const Owner* owner = nullptr;    // without it the field must be 0
};

constexpr Field<int32_t> kChoices[] = {
    {"dtype", &P::dtype, FA4_FP16, FA4_BF16, kUnsupported, kUnsupported, "FA4_FP16 (0) and FA4_BF16 (1) are supported"},
    {"causal", &P::causal, 0, 1, kInvalid, kInvalid, "0 and 1 are accepted"},
    {"scheduler", &P::scheduler, FA4_SCHEDULER_AUTO, FA4_SCHEDULER_LPT, kInvalid, kInvalid,
     "FA4_SCHEDULER_AUTO (0), FA4_SCHEDULER_LINEAR (1) and FA4_SCHEDULER_LPT (2) are accepted"},
    {"exp2", &P::exp2, FA4_EXP2_AUTO, FA4_EXP2_POLYNOMIAL, kInvalid, kInvalid,
     "FA4_EXP2_AUTO (0), FA4_EXP2_MUFU (1) and FA4_EXP2_POLYNOMIAL (2) are accepted"},
    {"max_ctas", &P::max_ctas, 0, INT32_MAX, kInvalid, kInvalid, "0 (one for each SM of the device) or more is accepted"},
    {"diagonal_alignment", &P::diagonal_alignment, FA4_DIAGONAL_BOTTOM_RIGHT, FA4_DIAGONAL_TOP_LEFT, kInvalid, kInvalid,
     "FA4_DIAGONAL_BOTTOM_RIGHT (0) and FA4_DIAGONAL_TOP_LEFT (1) are accepted"},
    {"window", &P::window, 0, 1, kInvalid, kInvalid, "0 (none) and 1 (of window_left and window_right) are accepted"},
    {"num_splits", &P::num_splits, -1, 1, kInvalid, kUnsupported, "-1 (the library chooses), 0 and 1 (one) are supported"},
};

constexpr Field<int64_t> kNumbers[] = {
    {"batch", &P::batch, 0, kMaxBatch, kInvalid, kUnsupported},
    {"seq_q", &P::seq_q, 0, kMaxSequence, kInvalid, kUnsupported},
    {"seq_kv", &P::seq_kv, 0, kMaxSequence, kInvalid, kUnsupported},
    {"q_heads", &P::q_heads, 1, kMaxHeads, kInvalid, kUnsupported},
    {"kv_heads", &P::kv_heads, 1, kMaxHeads, kInvalid, kUnsupported},
    {"total_q", &P::total_q, 0, kMaxSequence, kInvalid, kUnsupported, nullptr, &kCuSeqlensQ},
    {"total_k", &P::total_k, 0, kMaxSequence, kInvalid, kUnsupported, nullptr, &kCuSeqlensK},
    {"block_table_stride", &P::block_table_stride, 0, kNoLimit, kInvalid, kInvalid, "0 or more is accepted", &kBlockTable},
    {"page_size", &P::page_size, 1, kMaxSequence, kInvalid, kUnsupported, nullptr, &kBlockTable},
    {"num_pages", &P::num_pages, 1, kMaxPages, kInvalid, kUnsupported, nullptr, &kBlockTable},
    {"window_left", &P::window_left, -1, kNoLimit, kInvalid, kInvalid, "-1 (no bound) or more is accepted", &kWindow},
    {"window_right", &P::window_right, -1, kNoLimit, kInvalid, kInvalid, "-1 (no bound) or more is accepted", &kWindow},
    {"alibi_batch_stride", &P::alibi_batch_stride, 0, kNoLimit, kInvalid, kInvalid, "0 or more is accepted", &kAlibiSlopes},
};

template <typename Number>
fa4_status refuse(const Field<Number>& field, Number value, Message& message) {
  const fa4_status status = value < field.least ? field.below : field.above;
  if (field.accepted != nullptr) return message.fail(status, "%s is %lld; %s", field.name, static_cast<ll>(value), field.accepted);
  return message.fail(status, "%s is %lld; %lld to %lld are accepted", field.name, static_cast<ll>(value),
                      static_cast<ll>(field.least), static_cast<ll>(field.most));
}

template <typename Number, size_t count>
fa4_status check_all(const Field<Number> (&fields)[count], const P& params, Message& message) {
  for (const Field<Number>& field : fields) {
    const Number value = params.*field.value;
    const bool in_range = value >= field.least && value <= field.most;
    if (in_range && (value == 0 || field.owner == nullptr)) continue;
    if (field.owner != nullptr && !field.owner->given(params)) {
      if (value == 0) continue;
      return message.fail(kInvalid, "%s is %lld and %s is 0; without %s it must be 0", field.name, static_cast<ll>(value),
                          field.owner->name, field.owner->name);
    }
    if (!in_range) return refuse(field, value, message);
  }
  return FA4_OK;
}

}  // namespace

fa4_status check_fields(const fa4_forward_params& params, Message& message) {
  fa4_status status = check_all(kChoices, params, message);
  if (status == FA4_OK) status = check_all(kNumbers, params, message);
  if (status == FA4_OK && params.softcap != 0 && !(params.softcap >= kLeastScale && params.softcap <= kMostScale)) {  // also a NaN
    return message.fail(kInvalid, "softcap is %g; 0 (none) or %.9g to %.9g are accepted", params.softcap, kLeastScale, kMostScale);
  }
  return status;
}

}  // namespace fa4
