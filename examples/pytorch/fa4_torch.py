# SPDX-License-Identifier: Apache-2.0
"""fa4 as a PyTorch operator, over its C ABI by ctypes: one file, nothing to build.

    from fa4_torch import attention
    o = attention(q, k, v, causal=True)                                # (batch, sequence, heads, head dimension)
    o, lse = attention(q, k, v, layout="bhsd", return_lse=True)        # (batch, heads, sequence, head dimension)

Works eagerly, under torch.compile (the operators are torch.ops.fa4.forward and forward_out) and in CUDA graphs. Forward
only. Tensors are used where they lie, whatever their strides, as far as the library takes them: fp16 or bf16, head
dimensions that are multiples of 8 up to 128, with stride 1, other strides multiples of 8 elements. Fewer K/V heads than query heads are grouped.
`causal` and windows are aligned to the bottom right: query i sees keys j <= i + seq_kv - seq_q. With top_left they are aligned as
scaled_dot_product_attention(is_causal=True) is: j <= i. For equal lengths that is the same.

Batch entries of different lengths are packed one behind the other in tensors of batch 1, with cu_seqlens_q, cu_seqlens_k, or both:

    o = attention(q, k, v, cu_seqlens_q=begins, cu_seqlens_k=begins)   # (1, total, heads, head dimension), begins (entries + 1), int32
    o = attention(q, k, v, seqused_k=lengths)                          # of padded K and V only so many keys, (batch), int32
    o = attention(q, k, v, causal=True, window=(4095, 0), sinks=sinks, softcap=50.0)

libfa4.so is what load() is given, or what FA4_LIBRARY names, or that of this tree's build folder, or the system's.
"""
import ctypes
import functools
import os
import threading
from pathlib import Path
from typing import Optional

import torch

VERSION = 1  # FA4_VERSION of fa4.h
DTYPES = {torch.float16: 0, torch.bfloat16: 1}  # fa4_dtype


class CreateParams(ctypes.Structure):
    """fa4_create_params"""
    _fields_ = [("struct_size", ctypes.c_uint32), ("version", ctypes.c_uint32), ("driver_library", ctypes.c_char_p),
                ("image", ctypes.c_void_p), ("reserved", ctypes.c_uint64 * 4)]


class TensorView(ctypes.Structure):
    """fa4_tensor"""
    _fields_ = [("data", ctypes.c_uint64), ("batch_stride", ctypes.c_int64), ("seq_stride", ctypes.c_int64),
                ("head_stride", ctypes.c_int64)]


class ForwardParams(ctypes.Structure):
    """fa4_forward_params"""
    _fields_ = [("struct_size", ctypes.c_uint32), ("version", ctypes.c_uint32),
                ("dtype", ctypes.c_int32), ("causal", ctypes.c_int32), ("scheduler", ctypes.c_int32), ("exp2", ctypes.c_int32),
                ("batch", ctypes.c_int64), ("seq_q", ctypes.c_int64), ("seq_kv", ctypes.c_int64),
                ("q_heads", ctypes.c_int64), ("kv_heads", ctypes.c_int64), ("head_dim", ctypes.c_int64),
                ("q", TensorView), ("k", TensorView), ("v", TensorView), ("o", TensorView),
                ("lse", ctypes.c_uint64), ("lse_batch_stride", ctypes.c_int64), ("lse_head_stride", ctypes.c_int64),
                ("softmax_scale", ctypes.c_double), ("workspace", ctypes.c_void_p), ("workspace_size", ctypes.c_uint64),
                ("stream", ctypes.c_void_p), ("max_ctas", ctypes.c_int32), ("diagonal_alignment", ctypes.c_int32),
                ("cu_seqlens_q", ctypes.c_uint64), ("cu_seqlens_k", ctypes.c_uint64), ("seqused_q", ctypes.c_uint64),
                ("seqused_k", ctypes.c_uint64), ("total_q", ctypes.c_int64), ("total_k", ctypes.c_int64), ("head_dim_v", ctypes.c_int64),
                ("block_table", ctypes.c_uint64), ("block_table_stride", ctypes.c_int64), ("page_size", ctypes.c_int64),
                ("num_pages", ctypes.c_int64), ("window", ctypes.c_int32), ("num_splits", ctypes.c_int32),
                ("window_left", ctypes.c_int64), ("window_right", ctypes.c_int64), ("softcap", ctypes.c_double),
                ("sinks", ctypes.c_uint64), ("alibi_slopes", ctypes.c_uint64), ("alibi_batch_stride", ctypes.c_int64)]


class Fa4Error(RuntimeError):
    """The library refused or failed; the text is its sentence, `status` its fa4_status."""

    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status


_lock = threading.Lock()
_library = None
_contexts = {}  # device index -> (fa4_context*, CUcontext): one for each device, for as long as the process lives


def load(path=None):
    """Opens the library, once a process, and returns it; every function below calls this. Raises OSError with the places
    that were tried."""
    global _library
    if _library is not None:
        return _library
    with _lock:
        if _library is None:
            in_tree = Path(__file__).resolve().parents[2] / "build/runtime/libfa4.so"
            named = path or os.environ.get("FA4_LIBRARY")
            places = [named] if named else [in_tree, "libfa4.so.0"]
            failures = []
            for place in places:
                try:
                    library = ctypes.CDLL(str(place))
                    break
                except OSError as error:
                    failures.append(str(error))
            else:
                raise OSError(f"libfa4.so cannot be opened: {'; '.join(failures)}. FA4_LIBRARY names it")
            pointer = ctypes.c_void_p
            for name, arguments in (("fa4_create", [ctypes.POINTER(CreateParams), ctypes.POINTER(pointer)]),
                                    ("fa4_forward", [pointer, ctypes.POINTER(ForwardParams)]),
                                    ("fa4_supported", [pointer, ctypes.POINTER(ForwardParams)]),
                                    ("fa4_workspace_size", [pointer, ctypes.POINTER(ForwardParams),
                                                            ctypes.POINTER(ctypes.c_uint64)])):
                function = getattr(library, name)
                function.argtypes, function.restype = arguments, ctypes.c_int
            library.fa4_last_error.restype = ctypes.c_char_p
            _library = library
    return _library


def check(status):
    if status != 0:
        raise Fa4Error(status, load().fa4_last_error().decode())


@functools.cache
def _driver():
    return ctypes.CDLL("libcuda.so.1")  # the one that PyTorch has opened


def prepare(device=None):
    """Makes the device's context, once: loads the kernels. A call that is captured in a CUDA graph needs it made before."""
    index = torch.cuda._utils._get_device_index(device, optional=True)
    if index in _contexts:
        return _contexts[index]
    library, driver = load(), _driver()
    with _lock:
        if index not in _contexts:
            with torch.cuda.device(index):
                torch.cuda.synchronize()  # the device's primary context is now current for this thread
                context, current = ctypes.c_void_p(), ctypes.c_void_p()
                params = CreateParams(struct_size=ctypes.sizeof(CreateParams), version=VERSION)
                check(library.fa4_create(ctypes.byref(params), ctypes.byref(context)))
                if driver.cuCtxGetCurrent(ctypes.byref(current)) != 0:
                    raise RuntimeError("cuCtxGetCurrent failed")
                _contexts[index] = context, current
    return _contexts[index]


def _extents(x, layout):
    """(batch, sequence, heads, head dimension)"""
    b, s, h, d = x.shape if layout == "bshd" else (x.shape[i] for i in (0, 2, 1, 3))
    return b, s, h, d


def _view(x, layout):
    b, s, h, _ = x.stride() if layout == "bshd" else (x.stride(i) for i in (0, 2, 1, 3))
    return TensorView(x.data_ptr(), b, s, h)


def _require(condition, sentence):
    if not condition:
        raise ValueError(sentence)


def _array(name, x, device, dtype, *shapes):
    """The address of an array that is an option, 0 where it is None."""
    if x is None:
        return 0
    _require(x.device == device and x.dtype == dtype and tuple(x.shape) in shapes and (x.shape[-1] <= 1 or x.stride(-1) == 1),
             f"{name} is {x.dtype} {tuple(x.shape)} with strides {x.stride()} on {x.device}; {dtype} "
             f"{' or '.join(map(str, shapes))} with stride 1 in the last dimension on {device} is accepted")
    return x.data_ptr()


def _entries(name, cu_seqlens, b, data):
    """How many batch entries lie in tensors of batch b."""
    if cu_seqlens is None:
        return b
    _require(b == 1 and cu_seqlens.dim() == 1 and cu_seqlens.numel() > 0,
             f"{name} has shape {tuple(cu_seqlens.shape)} and {data} batch {b}; (entries + 1,) and 1 are accepted")
    return cu_seqlens.numel() - 1


def _params(q, k, v, o, lse, causal, scale, layout, window_left=-1, window_right=-1, top_left=False, softcap=0.0, sinks=None,
            alibi_slopes=None, cu_seqlens_q=None, cu_seqlens_k=None, seqused_q=None, seqused_k=None):
    """What can be said of the tensors here is checked here; extents, strides and alignment are the library's to check."""
    _require(layout in ("bshd", "bhsd"), f"layout is {layout!r}; 'bshd' and 'bhsd' are accepted")
    for name, x in (("q", q), ("k", k), ("v", v), ("o", o)):
        _require(x.dim() == 4, f"{name} has shape {tuple(x.shape)}; 4 dimensions are accepted")
        _require(x.is_cuda and x.device == q.device, f"{name} is on {x.device} and q on {q.device}; one CUDA device is accepted")
        _require(x.dtype in DTYPES and x.dtype == q.dtype, f"{name} is {x.dtype} and q {q.dtype}; torch.float16 and torch.bfloat16 "
                                                           "are accepted, the same for all")
        _require(x.numel() == 0 or x.stride(3) == 1, f"{name} has stride {x.stride(3)} in the head dimension; 1 is accepted")
    b, seq_q, q_heads, head_dim = _extents(q, layout)
    b_kv, seq_kv, kv_heads, _ = _extents(k, layout)
    for name, x, of in (("k", k, (b_kv, seq_kv, kv_heads)), ("v", v, (b_kv, seq_kv, kv_heads)), ("o", o, (b, seq_q, q_heads))):
        _require(_extents(x, layout) == (*of, head_dim),
                 f"{name} has shape {tuple(x.shape)} beside q {tuple(q.shape)} and k {tuple(k.shape)}, layout {layout}")
    entries, entries_kv = _entries("cu_seqlens_q", cu_seqlens_q, b, "q"), _entries("cu_seqlens_k", cu_seqlens_k, b_kv, "k")
    _require(entries == entries_kv, f"q has {entries} batch entries and k {entries_kv}; as many are accepted")
    # 0 means the default to the library; here None does.
    _require(scale is None or scale != 0, "scale is 0; None is accepted for 1 / sqrt(head dimension), or a number other than 0")
    params = ForwardParams(struct_size=ctypes.sizeof(ForwardParams), version=VERSION, dtype=DTYPES[q.dtype], causal=int(causal),
                           batch=entries, seq_q=seq_q, seq_kv=seq_kv, q_heads=q_heads, kv_heads=kv_heads, head_dim=head_dim,
                           q=_view(q, layout), k=_view(k, layout), v=_view(v, layout), o=_view(o, layout),
                           softmax_scale=scale or 0.0, diagonal_alignment=int(top_left), softcap=softcap)
    if (window_left, window_right) != (-1, -1):
        params.window, params.window_left, params.window_right = 1, window_left, window_right
    params.sinks = _array("sinks", sinks, q.device, torch.float32, (q_heads,))
    params.alibi_slopes = _array("alibi_slopes", alibi_slopes, q.device, torch.float32, (q_heads,), (entries, q_heads))
    if alibi_slopes is not None and alibi_slopes.dim() == 2:
        params.alibi_batch_stride = alibi_slopes.stride(0)
    params.cu_seqlens_q = _array("cu_seqlens_q", cu_seqlens_q, q.device, torch.int32, (entries + 1,))
    params.cu_seqlens_k = _array("cu_seqlens_k", cu_seqlens_k, q.device, torch.int32, (entries + 1,))
    params.seqused_q = _array("seqused_q", seqused_q, q.device, torch.int32, (entries,))
    params.seqused_k = _array("seqused_k", seqused_k, q.device, torch.int32, (entries,))
    params.total_q = seq_q if cu_seqlens_q is not None else 0
    params.total_k = seq_kv if cu_seqlens_k is not None else 0
    if lse is not None:
        _require(lse.shape == (b, q_heads, seq_q) and lse.dtype == torch.float32 and lse.device == q.device and
                 (seq_q <= 1 or lse.stride(2) == 1),
                 f"lse is {lse.dtype} {tuple(lse.shape)} with strides {lse.stride()} on {lse.device}; torch.float32 "
                 f"{(b, q_heads, seq_q)} with stride 1 in the last dimension on {q.device} is accepted")
        params.lse, params.lse_batch_stride, params.lse_head_stride = lse.data_ptr(), lse.stride(0), lse.stride(1)
    return params


def _launch(params, device):
    """On the current stream of the device."""
    context, cuda_context = prepare(device)
    library, driver = load(), _driver()
    with torch.cuda.device(device):
        current = ctypes.c_void_p()
        driver.cuCtxGetCurrent(ctypes.byref(current))
        if current.value != cuda_context.value:  # a thread on which nothing of CUDA has run yet
            driver.cuCtxSetCurrent(cuda_context)
        params.stream = torch.cuda.current_stream(device).cuda_stream
        need = ctypes.c_uint64()
        check(library.fa4_workspace_size(context, ctypes.byref(params), ctypes.byref(need)))
        if need.value:  # the caching allocator keeps it for this stream until the launch has passed
            workspace = torch.zeros(need.value, dtype=torch.uint8, device=device)
            params.workspace, params.workspace_size = workspace.data_ptr(), need.value
        check(library.fa4_forward(context, ctypes.byref(params)))


def _new_lse(q, layout, wanted):
    b, s, h, _ = _extents(q, layout)
    return torch.empty((b, h, s) if wanted else (0,), dtype=torch.float32, device=q.device)


@torch.library.custom_op("fa4::forward", mutates_args=(), device_types="cuda")
def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: Optional[float], layout: str,
            return_lse: bool, window_left: int = -1, window_right: int = -1, top_left: bool = False, softcap: float = 0.0,
            sinks: Optional[torch.Tensor] = None, alibi_slopes: Optional[torch.Tensor] = None,
            cu_seqlens_q: Optional[torch.Tensor] = None, cu_seqlens_k: Optional[torch.Tensor] = None,
            seqused_q: Optional[torch.Tensor] = None,
            seqused_k: Optional[torch.Tensor] = None) -> tuple[torch.Tensor, torch.Tensor]:
    o, lse = torch.empty_like(q), _new_lse(q, layout, return_lse)
    _launch(_params(q, k, v, o, lse if return_lse else None, causal, scale, layout, window_left, window_right, top_left, softcap, sinks,
                    alibi_slopes, cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k), q.device)
    return o, lse


@forward.register_fake
def _(q, k, v, causal, scale, layout, return_lse, *options, **named):
    return torch.empty_like(q), _new_lse(q, layout, return_lse)


@torch.library.custom_op("fa4::forward_out", mutates_args=("o", "lse"), device_types="cuda")
def forward_out(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor, lse: Optional[torch.Tensor], causal: bool,
                scale: Optional[float], layout: str, window_left: int = -1, window_right: int = -1, top_left: bool = False,
                softcap: float = 0.0, sinks: Optional[torch.Tensor] = None, alibi_slopes: Optional[torch.Tensor] = None,
                cu_seqlens_q: Optional[torch.Tensor] = None, cu_seqlens_k: Optional[torch.Tensor] = None,
                seqused_q: Optional[torch.Tensor] = None, seqused_k: Optional[torch.Tensor] = None) -> None:
    _launch(_params(q, k, v, o, lse, causal, scale, layout, window_left, window_right, top_left, softcap, sinks, alibi_slopes,
                    cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k), q.device)


@forward_out.register_fake
def _(q, k, v, o, lse, causal, scale, layout, *options, **named):
    return None


def attention(q, k, v, *, causal=False, scale=None, layout="bshd", return_lse=False, window=(-1, -1), **options):
    """softmax(scale * Q K^T + mask) V, in the type and, where q is dense, the strides of q; with return_lse also the natural
    log-sum-exp, float32 (batch, heads, sequence). scale None: 1 / sqrt(head dimension). window: keys that a query sees before and
    behind its diagonal, -1: all. Options, as in fa4.h: top_left, softcap, sinks (heads), alibi_slopes (heads) or (batch, heads), both
    float32, cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k. What is no entry's of packed or padded rows is not written: what o and lse
    hold there is undefined. Raises ValueError or Fa4Error, whose text says what would be accepted, before anything is launched."""
    o, lse = forward(q, k, v, causal, scale, layout, return_lse, *window, **options)
    return (o, lse) if return_lse else o


def attention_out(q, k, v, o, lse=None, *, causal=False, scale=None, layout="bshd", window=(-1, -1), **options):
    """The same into tensors that are there: o as q, lse float32 (batch, heads, sequence)."""
    forward_out(q, k, v, o, lse, causal, scale, layout, *window, **options)


def make(q, k, v, o, lse, causal, scale):
    """A callable that launches on the current stream, tensors (batch, sequence, heads, head dimension): for timing, and for
    calls that are captured in a CUDA graph. Not to be called from two threads at once."""
    prepare(q.device)
    params = _params(q, k, v, o, lse, causal, scale, "bshd")
    params.tensors = q, k, v, o, lse  # so that they live as long as it
    return lambda: _launch(params, q.device)
