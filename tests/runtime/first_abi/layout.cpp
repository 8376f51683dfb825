// SPDX-License-Identifier: Apache-2.0
// At compile time: what the first header declared is where today's has it. The first one is read inside a namespace, its functions
// under other names, since a program has one C function of a name.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#define fa4_create first_create
#define fa4_supported first_supported
#define fa4_workspace_size first_workspace_size
#define fa4_forward first_forward
#define fa4_destroy first_destroy
#define fa4_last_error first_last_error
#define fa4_status_name first_status_name
#define fa4_version first_version
namespace first {
#include "fa4/fa4.h"
static_assert(sizeof(fa4_forward_params) == 296, "this is not the first header");
constexpr unsigned kVersion = FA4_VERSION;
}  // namespace first
#undef fa4_create
#undef fa4_supported
#undef fa4_workspace_size
#undef fa4_forward
#undef fa4_destroy
#undef fa4_last_error
#undef fa4_status_name
#undef fa4_version
#undef FA4_FA4_H
#undef FA4_API
#undef FA4_VERSION
#include "../../../runtime/include/fa4/fa4.h"

static_assert(first::kVersion == FA4_VERSION);

#define SAME_NUMBER(name) static_assert(int(first::name) == int(name));
SAME_NUMBER(FA4_OK)
SAME_NUMBER(FA4_ERROR_INVALID_ARGUMENT)
SAME_NUMBER(FA4_ERROR_UNSUPPORTED)
SAME_NUMBER(FA4_ERROR_VERSION)
SAME_NUMBER(FA4_ERROR_NO_DRIVER)
SAME_NUMBER(FA4_ERROR_NO_DEVICE)
SAME_NUMBER(FA4_ERROR_ARCHITECTURE)
SAME_NUMBER(FA4_ERROR_DRIVER)
SAME_NUMBER(FA4_ERROR_OUT_OF_MEMORY)
SAME_NUMBER(FA4_FP16)
SAME_NUMBER(FA4_BF16)
SAME_NUMBER(FA4_EXP2_AUTO)
SAME_NUMBER(FA4_EXP2_MUFU)
SAME_NUMBER(FA4_EXP2_POLYNOMIAL)
SAME_NUMBER(FA4_SCHEDULER_AUTO)
SAME_NUMBER(FA4_SCHEDULER_LINEAR)
SAME_NUMBER(FA4_SCHEDULER_LPT)

// `now` is what a field is called that had another name, or none, in the first header.
#define SAME_PLACE_AS(type, then, now)                                             \
  static_assert(offsetof(first::type, then) == offsetof(type, now) &&              \
                sizeof(first::type::then) == sizeof(type::now) &&                  \
                (std::is_class_v<decltype(type::now)> ||                           \
                 std::is_same_v<std::remove_reference_t<decltype(first::type::then)>, decltype(type::now)>));
#define SAME_PLACE(type, field) SAME_PLACE_AS(type, field, field)

static_assert(sizeof(first::fa4_create_params) == sizeof(fa4_create_params));
SAME_PLACE(fa4_create_params, struct_size)
SAME_PLACE(fa4_create_params, version)
SAME_PLACE(fa4_create_params, driver_library)
SAME_PLACE(fa4_create_params, image)
SAME_PLACE(fa4_create_params, reserved)

static_assert(sizeof(first::fa4_tensor) == sizeof(fa4_tensor));
SAME_PLACE(fa4_tensor, data)
SAME_PLACE(fa4_tensor, batch_stride)
SAME_PLACE(fa4_tensor, seq_stride)
SAME_PLACE(fa4_tensor, head_stride)

SAME_PLACE(fa4_forward_params, struct_size)
SAME_PLACE(fa4_forward_params, version)
SAME_PLACE(fa4_forward_params, dtype)
SAME_PLACE(fa4_forward_params, causal)
SAME_PLACE(fa4_forward_params, scheduler)
SAME_PLACE(fa4_forward_params, exp2)
SAME_PLACE(fa4_forward_params, batch)
SAME_PLACE(fa4_forward_params, seq_q)
SAME_PLACE(fa4_forward_params, seq_kv)
SAME_PLACE(fa4_forward_params, q_heads)
SAME_PLACE(fa4_forward_params, kv_heads)
SAME_PLACE(fa4_forward_params, head_dim)
SAME_PLACE(fa4_forward_params, q)
SAME_PLACE(fa4_forward_params, k)
SAME_PLACE(fa4_forward_params, v)
SAME_PLACE(fa4_forward_params, o)
SAME_PLACE(fa4_forward_params, lse)
SAME_PLACE(fa4_forward_params, lse_batch_stride)
SAME_PLACE(fa4_forward_params, lse_head_stride)
SAME_PLACE(fa4_forward_params, softmax_scale)
SAME_PLACE(fa4_forward_params, workspace)
SAME_PLACE(fa4_forward_params, workspace_size)
SAME_PLACE(fa4_forward_params, stream)
SAME_PLACE(fa4_forward_params, max_ctas)
SAME_PLACE_AS(fa4_forward_params, reserved1, diagonal_alignment)
SAME_PLACE_AS(fa4_forward_params, reserved2[0], cu_seqlens_q)
SAME_PLACE_AS(fa4_forward_params, reserved2[1], cu_seqlens_k)
SAME_PLACE_AS(fa4_forward_params, reserved2[2], seqused_q)
SAME_PLACE_AS(fa4_forward_params, reserved2[3], seqused_k)
static_assert(offsetof(fa4_forward_params, total_q) == sizeof(first::fa4_forward_params), "new fields begin behind the first struct");
