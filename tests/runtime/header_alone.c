/* SPDX-License-Identifier: Apache-2.0 */
/* The C header compiles alone, and its structs have the layout that version 1 promises. */
#include "fa4/fa4.h"

typedef char create_params_layout[sizeof(fa4_create_params) == 56 ? 1 : -1];
typedef char tensor_layout[sizeof(fa4_tensor) == 32 ? 1 : -1];
typedef char forward_params_layout[sizeof(fa4_forward_params) == 408 ? 1 : -1];
typedef char forward_params_stream[offsetof(fa4_forward_params, stream) == 248 ? 1 : -1];
/* No padding: the last field ends the struct, and each field begins where the one before it ends. */
#define FOLLOWS(before, field)                                                                    \
  typedef char field##_follows[offsetof(fa4_forward_params, field) ==                             \
                                       offsetof(fa4_forward_params, before) +                     \
                                           sizeof(((fa4_forward_params*)0)->before)               \
                                   ? 1                                                            \
                                   : -1]
FOLLOWS(max_ctas, diagonal_alignment);
FOLLOWS(diagonal_alignment, cu_seqlens_q);
FOLLOWS(cu_seqlens_q, cu_seqlens_k);
FOLLOWS(cu_seqlens_k, seqused_q);
FOLLOWS(seqused_q, seqused_k);
FOLLOWS(seqused_k, total_q);
FOLLOWS(total_q, total_k);
FOLLOWS(total_k, head_dim_v);
FOLLOWS(head_dim_v, block_table);
FOLLOWS(block_table, block_table_stride);
FOLLOWS(block_table_stride, page_size);
FOLLOWS(page_size, num_pages);
FOLLOWS(num_pages, window);
FOLLOWS(window, num_splits);
FOLLOWS(num_splits, window_left);
FOLLOWS(window_left, window_right);
FOLLOWS(window_right, softcap);
FOLLOWS(softcap, sinks);
FOLLOWS(sinks, alibi_slopes);
FOLLOWS(alibi_slopes, alibi_batch_stride);
typedef char alibi_batch_stride_ends[offsetof(fa4_forward_params, alibi_batch_stride) + 8 == sizeof(fa4_forward_params) ? 1 : -1];
