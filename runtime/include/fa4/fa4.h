/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fa4: the forward pass of FlashAttention for NVIDIA Hopper (compute capability 9.0) and Blackwell (10.0, 10.3) behind one C
 * ABI. The kernel for Blackwell is FlashAttention-4.
 *
 *     O = softmax(scale * Q K^T + mask) V
 *
 * The library opens the CUDA driver (libcuda.so.1, or a driver library that you name, the simulated one for
 * instance), checks that its built-in image fits the device, and loads the kernels for it once, in fa4_create. A call of
 * fa4_forward then describes tensor maps on the host and launches one kernel: it allocates nothing,
 * synchronises nothing, loads nothing and reads no environment, so that it can be captured in a CUDA graph.
 */
#ifndef FA4_FA4_H
#define FA4_FA4_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FA4_API __attribute__((visibility("default")))
#else
#define FA4_API
#endif

/* Version of the structs below; one of another version is refused. Within a version the params structs only grow: a field keeps
 * its place and its meaning, new ones go behind the last, and zero in a new one is what was before it. So struct_size may be that of
 * an older or a newer header, from 8 to 4096 bytes: a shorter struct is read as if zeros followed, a longer one is taken if what
 * this library does not know of it is zero. */
#define FA4_VERSION 1u

typedef enum fa4_status {
  FA4_OK = 0,
  FA4_ERROR_INVALID_ARGUMENT = -1, /* a field has a value that no kernel accepts */
  FA4_ERROR_UNSUPPORTED = -2,      /* a valid problem that this library has no kernel for */
  FA4_ERROR_VERSION = -3,          /* a params struct of another version, of an impossible size, or with a field that is new to
                                      this library */
  FA4_ERROR_NO_DRIVER = -4,        /* the driver library cannot be opened, lacks a function or is a stub */
  FA4_ERROR_NO_DEVICE = -5, /* the driver has no device, or the thread has no (or another) current context */
  FA4_ERROR_ARCHITECTURE = -6, /* no kernel for this device; the message lists what the image holds */
  FA4_ERROR_DRIVER = -7,       /* a driver call failed; the message has function, code, text and remedy */
  FA4_ERROR_OUT_OF_MEMORY = -8 /* host memory, in fa4_create only */
} fa4_status;

typedef enum fa4_dtype { FA4_FP16 = 0, FA4_BF16 = 1 } fa4_dtype;

/* What computes the exponentials of softmax. A Blackwell of compute capability 10.0 has few units for them, and its FMA pipe room:
 * there a polynomial takes 36 of each 128, as exact as those units are. The bits of O and LSE differ between the two, and do not
 * depend on anything else. Nobody has timed either; see docs/performance.md. */
typedef enum fa4_exp2 {
  FA4_EXP2_AUTO = 0,      /* polynomial on compute capability 10.0, else mufu */
  FA4_EXP2_MUFU = 1,      /* all by the special function unit */
  FA4_EXP2_POLYNOMIAL = 2 /* Blackwell alone */
} fa4_exp2;

/* The order of tasks. Where entries of the batch have lengths of their own it is the library's, whichever of these is asked for. */
typedef enum fa4_scheduler {
  FA4_SCHEDULER_AUTO = 0,   /* linear for full masks without softcap, sinks and ALiBi, LPT otherwise */
  FA4_SCHEDULER_LINEAR = 1, /* tasks in storage order */
  FA4_SCHEDULER_LPT = 2     /* longest processing time first */
} fa4_scheduler;

/* Where the diagonal of causal masks, windows and ALiBi lies when seq_q and seq_kv differ. */
typedef enum fa4_diagonal_alignment {
  FA4_DIAGONAL_BOTTOM_RIGHT = 0, /* through the last query and the last key, as in FlashAttention */
  FA4_DIAGONAL_TOP_LEFT = 1      /* through the first query and the first key, as is_causal of PyTorch */
} fa4_diagonal_alignment;

typedef struct fa4_context fa4_context;

/* What fa4_create needs. Set struct_size = sizeof(fa4_create_params) and version = FA4_VERSION, zero the
 * rest. */
typedef struct fa4_create_params {
  uint32_t struct_size;
  uint32_t version;
  const char* driver_library; /* path or soname for dlopen; NULL: libcuda.so.1 */
  const void* image; /* fatbinary, cubin or NUL-terminated PTX in place of the built-in image; NULL: built-in.
                        Borrowed until fa4_create returns. */
  uint64_t reserved[4]; /* zero */
} fa4_create_params;

/* A (batch, sequence, head, head dimension) view of device memory; the head dimension has stride 1. Strides
 * are in elements, non-negative, below 2^39, and multiples of 8 elements (16 bytes) for every dimension whose
 * extent exceeds 1 (they are ignored for extent 1). Q, K and V may repeat data with stride 0. O may not
 * overlap itself: taken from the smallest stride to the largest, each must step over all that the dimensions
 * before it span. That O and the LSE do not overlap Q, K, V or each other is the caller's duty. */
typedef struct fa4_tensor {
  uint64_t data; /* CUdeviceptr, 16-byte aligned; may be 0 when the tensor has no elements */
  int64_t batch_stride;
  int64_t seq_stride;
  int64_t head_stride;
} fa4_tensor;

/* NaN and infinities in the inputs. seq_kv stands for the length of the batch entry, where it has one of its own:
 * - V must be finite at every key below seq_kv, also at keys that a query does not see. Otherwise O of that
 *   batch entry is unspecified for all query heads that share the KV head: a weight of 0 times NaN is NaN,
 *   and how many rows it reaches depends on how the work is cut into tiles. The LSE does not depend on V.
 * - A NaN in Q makes O and the LSE of its row (batch entry, query head, query) NaN if the row sees a key. A
 *   NaN in K does the same to the rows that see its key, of the query heads that share the KV head.
 * - An infinity in Q or K, like a dot product that leaves the range of fp32, or with ALiBi its product with the scale, gives
 *   infinite or NaN scores. One of NaN, or of +inf with the sign of the scale, makes its row NaN; one of -inf has weight 0, as if
 *   the key were masked, and a row of nothing but -inf has O = 0 and the LSE of one that sees no key. A softcap leaves no
 *   infinities: +inf becomes softcap, -inf becomes -softcap, which has a weight.
 * - A sink of -inf is none. One of NaN makes the LSE of all rows of its query head NaN, and O of those that see a key.
 * - Slopes must be finite; rows of a query head whose slope is not are unspecified.
 * - No other row, head or batch entry changes by a bit. What lies beside the views, at key seq_kv and beyond, between their rows,
 *   in packed tensors before and behind an entry, or behind what is used of one, never matters. */

/* What a query sees, and its score. With
 *
 *     off = seq_kv - seq_q for FA4_DIAGONAL_BOTTOM_RIGHT, 0 for FA4_DIAGONAL_TOP_LEFT
 *
 * query i sees key j when i + off - window_left <= j <= i + off + window_right; a side of -1 has no bound. Causal is a
 * window_right of 0, whatever the window's own. The score of the two is
 *
 *     s = softmax_scale * dot(Q[i], K[j])
 *     s = softcap * tanh(s / softcap)           with a softcap
 *     s = s - slope * |i + off - j|             with ALiBi slopes
 *
 * in fp32. tanh has a relative error below 2^-20; the distance of ALiBi is exact where i + off and j are at most 2^24.
 *
 * A sink is one more logit in the sum of a row, without a value: exp(sink) is added to the denominator of O and to what the LSE is
 * the logarithm of; a row that sees no key then has O = 0 and LSE = sink.
 *
 * With cu_seqlens_q, or cu_seqlens_k, batch entries of different lengths lie one behind the other in that side's tensors: entry b
 * is rows cu_seqlens[b] to cu_seqlens[b + 1] - 1, batch_stride is not used, and seq_q, or seq_kv, is a bound: no entry is longer. The
 * LSE of row r, counted over all entries, is at h * lse_head_stride + r. With seqused_q or seqused_k only the first so many rows of
 * an entry count. The lengths of an entry then take the places of seq_q and seq_kv above. Rows of O and the LSE that are no entry's
 * are not written.
 *
 * With block_table, K and V lie in a pool of num_pages pages of page_size keys: batch_stride is the stride from one page to the next,
 * seq_stride that of the keys inside, and key j of batch entry b is key j % page_size of page
 * block_table[b * block_table_stride + j / page_size].
 *
 * Numbers on the device are not checked. What they say outside of its bounds is cut there: a length at seq_q or seq_kv, one below 0 is
 * 0, cu_seqlens at 0 and at total_q or total_k. cu_seqlens must ascend, and pages of keys that count lie between 0 and num_pages - 1.
 *
 * Built today is all of these but block_table, a num_splits above 1, and softcap together with
 * alibi_slopes, which are refused with FA4_ERROR_UNSUPPORTED. */

/* One attention problem. Set struct_size = sizeof(fa4_forward_params) and version = FA4_VERSION, zero the
 * rest. A field that belongs to another, as total_q to cu_seqlens_q, must be zero without it. */
typedef struct fa4_forward_params {
  uint32_t struct_size;
  uint32_t version;

  int32_t dtype;     /* fa4_dtype of Q, K, V and O */
  int32_t causal;    /* 0, or 1: query i sees keys j <= i + off, off being seq_kv - seq_q unless diagonal_alignment says otherwise */
  int32_t scheduler; /* fa4_scheduler */
  int32_t exp2;      /* fa4_exp2 */

  /* Extents. A batch, seq_q or total_q of 0 is a successful no-op; every field is checked all the same. Lengths and the batch are at
   * most 2^31 - 257, the others 2^31 - 1. With p = gcd(q_heads / kv_heads, t) and t = 128 rows of a Q tile on Blackwell, 64 on
   * Hopper, the number of tasks, q_heads / p times batch * ceil(seq_q * p / r), is at most 2^31 - 1; r is 256 on Blackwell, 128 or
   * 192 on Hopper. With cu_seqlens_q the second factor is floor(total_q * p / r) + batch where that is less. Where all batch entries
   * have seq_q and seq_kv rows the order of tasks is static, without counter and workspace; else CTAs count, in the workspace, the
   * tasks that they take.
   *
   * With any mask but full and bottom-right causal ones, softcap, sinks, ALiBi or lengths of entries, no entry may be longer than 2^30:
   * seq_q and seq_kv, or total_q and total_k of packed tensors where these are less, are at most that. And with g, the greatest common
   * divisor of a tensor's batch_stride and seq_stride, ((batch - 1) * batch_stride + seq * seq_stride) / g must be less than 2^31 - 1,
   * seq being seq_q or seq_kv. g is seq_stride where batch entries lie whole numbers of rows apart, as those of dense tensors do. */
  int64_t batch;    /* entries, >= 0 */
  int64_t seq_q;    /* >= 0 */
  int64_t seq_kv;   /* >= 0; 0 gives O = 0 and LSE = -inf */
  int64_t q_heads;  /* >= 1, a multiple of kv_heads */
  int64_t kv_heads; /* >= 1 */
  int64_t head_dim; /* of Q and K, a multiple of 8 from 8 to 256. With V's it costs as much as the next of 64, 96, 128, 192 with V 128,
                     * and 256 that has room for both */

  fa4_tensor q; /* (batch, seq_q, q_heads, head_dim) */
  fa4_tensor k; /* (batch, seq_kv, kv_heads, head_dim) */
  fa4_tensor v; /* (batch, seq_kv, kv_heads, head_dim_v) */
  fa4_tensor o; /* (batch, seq_q, q_heads, head_dim_v), written */

  /* Optional: natural-log sum of exponentials, fp32, element (b, h, i) at b * lse_batch_stride + h *
   * lse_head_stride + i, written. A query that sees no key has -inf; beyond the range of fp32 it is an
   * infinity. 0: not wanted, the strides are then ignored. 4-byte aligned; strides are non-negative and may
   * not make it overlap itself. */
  uint64_t lse;
  int64_t lse_batch_stride; /* elements */
  int64_t lse_head_stride;  /* elements */

  double softmax_scale; /* 0: 1 / sqrt(head_dim). May be negative; its magnitude, also times log2(e), is a
                           normal float */

  /* Device memory of fa4_workspace_size() bytes, 4-byte aligned; may be NULL when that is 0, and is not looked at then. Zeroed by the
   * caller, once, before the first call that uses it: every call leaves it zero. One call at a time may use it: those that may run
   * at the same time, on several streams for instance, need one each. After a call that failed on the device, zero it again. */
  void* workspace;
  uint64_t workspace_size; /* bytes */

  void* stream; /* CUstream; NULL: the default stream of the current context */

  int32_t
      max_ctas; /* at most so many CTAs, never more than one for each SM of the device; 0: one for each SM */
  int32_t diagonal_alignment; /* fa4_diagonal_alignment */

  /* Lengths of batch entries: addresses of int32 on the device, 4-byte aligned; 0: every entry has seq_q, or seq_kv, rows. With any of
   * them a workspace is needed. They are read when the kernel runs. */
  uint64_t cu_seqlens_q; /* batch + 1 elements, ascending from 0: where each entry begins, and where the last one ends */
  uint64_t cu_seqlens_k; /* the same for K and V; not with block_table, which says where keys lie */
  uint64_t seqused_q;    /* batch elements */
  uint64_t seqused_k;    /* batch elements */
  int64_t total_q;       /* with cu_seqlens_q: rows of Q, O and, (q_heads, total_q), of the LSE; no more than a length may be */
  int64_t total_k;       /* with cu_seqlens_k: rows of K and V; no more than a length may be */

  int64_t head_dim_v; /* head dimension of V and O, a multiple of 8 from 8 to 256; 0: head_dim */

  /* Pages of K and V. */
  uint64_t block_table;       /* int32 on the device, 4-byte aligned, (batch, ceil(seq_kv / page_size)); 0: no pages */
  int64_t block_table_stride; /* elements from one batch entry to the next, >= 0 */
  int64_t page_size;          /* keys of a page, >= 1 */
  int64_t num_pages;          /* of the pool, >= 1 */

  int32_t window;       /* 0: none. 1: of window_left and window_right */
  int32_t num_splits;   /* into how many parts the keys are cut at most, to be merged; 0: one. -1: the library chooses */
  int64_t window_left;  /* keys before the diagonal, >= 0; -1: all */
  int64_t window_right; /* keys behind the diagonal, >= 0; -1: all */

  double softcap;             /* positive; it, its product with log2(e), and |softmax_scale| / softcap are normal floats. 0: none */
  uint64_t sinks;             /* fp32 on the device, 4-byte aligned, q_heads elements; 0: none */
  uint64_t alibi_slopes;      /* fp32 on the device, 4-byte aligned, (batch, q_heads); not with softcap; 0: none */
  int64_t alibi_batch_stride; /* elements, >= 0; 0: the same slopes for every batch entry */
} fa4_forward_params;

/* Opens the driver and loads the image into the current CUDA context of the calling thread, which must exist
 * and must outlive the fa4_context. On success *context is owned by the caller and freed with fa4_destroy. On
 * failure *context is NULL. Thread-safe. */
FA4_API fa4_status fa4_create(const fa4_create_params* params, fa4_context** context);

/* Checks a problem as fa4_forward does, without launching: all but the workspace, which it does not look at. FA4_OK, or the code
 * and fa4_last_error() that fa4_forward would give. Pure function of its arguments; context may be NULL: FA4_OK then if any device
 * that there are kernels for takes it. Thread-safe. */
FA4_API fa4_status fa4_supported(const fa4_context* context, const fa4_forward_params* params);

/* Bytes of device workspace that fa4_forward needs for this problem, in *size: 4 with any of cu_seqlens_q, cu_seqlens_k, seqused_q
 * and seqused_k, 0 without them or with nothing to compute. What fa4_supported refuses is refused alike. Thread-safe. */
FA4_API fa4_status fa4_workspace_size(const fa4_context* context, const fa4_forward_params* params,
                                      uint64_t* size);

/* Launches the problem on params->stream and returns at once. Tensors, arrays and workspace must stay valid until the stream
 * has passed it. If the result is not FA4_OK nothing was launched and nothing is written. Safe to call from
 * several threads with several streams on one context; the calling thread's current CUDA context must be the
 * one given at creation. */
FA4_API fa4_status fa4_forward(const fa4_context* context, const fa4_forward_params* params);

/* Unloads the image. Work that was launched must have finished, and the CUDA context must still exist. NULL
 * is accepted. */
FA4_API void fa4_destroy(fa4_context* context);

/* A sentence about the last failure on the calling thread, "" if there was none; a success does not clear it.
 * Valid until the next call on this thread. */
FA4_API const char* fa4_last_error(void);

/* A short name of a status code, e.g. "FA4_ERROR_UNSUPPORTED". Static storage. */
FA4_API const char* fa4_status_name(fa4_status status);

/* Version of the structs that the library was built with (FA4_VERSION). */
FA4_API uint32_t fa4_version(void);

#ifdef __cplusplus
}
#endif
#endif
