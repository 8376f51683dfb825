/* SPDX-License-Identifier: Apache-2.0 */
/* The C header compiles alone, and its structs have the layout that version 1 promises. */
#include "fa4/fa4.h"

typedef char create_params_layout[sizeof(fa4_create_params) == 56 ? 1 : -1];
typedef char tensor_layout[sizeof(fa4_tensor) == 32 ? 1 : -1];
typedef char forward_params_layout[sizeof(fa4_forward_params) == 296 ? 1 : -1];
typedef char forward_params_stream[offsetof(fa4_forward_params, stream) == 248 ? 1 : -1];
