# SPDX-License-Identifier: Apache-2.0
"""The structs of examples/pytorch/fa4_torch.py against the library's: torch_binding_test.py LIBFA4 FA4_TORCH. PyTorch is
not needed: what is of it in the file is replaced, only the C ABI is tested."""
import ctypes
import importlib.util
import math
import sys
import unittest
import unittest.mock

sys.modules["torch"] = unittest.mock.MagicMock()
spec = importlib.util.spec_from_file_location("fa4_torch", sys.argv[2])
fa4_torch = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fa4_torch)
LIBRARY = fa4_torch.load(sys.argv[1])


def valid():
    view = fa4_torch.TensorView(1 << 40, 100 * 4 * 128, 4 * 128, 128)
    return fa4_torch.ForwardParams(struct_size=ctypes.sizeof(fa4_torch.ForwardParams), version=fa4_torch.VERSION, batch=2, seq_q=100,
                                   seq_kv=100, q_heads=4, kv_heads=4, head_dim=128, q=view, k=view, v=view, o=view, lse=1 << 41,
                                   lse_batch_stride=400, lse_head_stride=100)


class Tensor:
    """What of a dense tensor on the GPU the binding asks for."""

    def __init__(self, address, shape, dtype, strides=None):
        self.address, self.shape, self.dtype, self.device, self.is_cuda = address, tuple(shape), dtype, "gpu", True
        self.strides = strides or tuple(math.prod(self.shape[i + 1:]) for i in range(len(self.shape)))

    def dim(self):
        return len(self.shape)

    def numel(self):
        return math.prod(self.shape)

    def stride(self, *i):
        return self.strides[i[0]] if i else self.strides

    def data_ptr(self):
        return self.address


def params_of(q_shape, kv_shape, lse=True, **options):
    torch = sys.modules["torch"]
    tensors = [Tensor((i + 1) << 40, shape, torch.float16) for i, shape in enumerate((q_shape, kv_shape, kv_shape, q_shape))]
    b, s, h, _ = q_shape
    out = Tensor(5 << 40, (b, h, s), torch.float32) if lse else None
    return fa4_torch._params(*tensors, out, options.pop("causal", False), None, "bshd", **options)


class Binding(unittest.TestCase):
    def test_options_arrive(self):
        torch = sys.modules["torch"]
        plain = params_of((2, 100, 8, 128), (2, 200, 4, 128))
        fa4_torch.check(LIBRARY.fa4_supported(None, ctypes.byref(plain)))
        self.assertEqual([plain.window, plain.softcap, plain.sinks, plain.alibi_slopes, plain.cu_seqlens_q, plain.cu_seqlens_k,
                          plain.seqused_q, plain.seqused_k, plain.total_q, plain.total_k, plain.diagonal_alignment], [0] * 11)

        arrays = {"sinks": Tensor(64, (8,), torch.float32), "seqused_q": Tensor(128, (2,), torch.int32),
                  "seqused_k": Tensor(192, (2,), torch.int32)}
        p = params_of((2, 100, 8, 128), (2, 200, 4, 128), window_left=30, window_right=-1, top_left=True, softcap=20.0, **arrays)
        fa4_torch.check(LIBRARY.fa4_supported(None, ctypes.byref(p)))
        self.assertEqual((p.window, p.window_left, p.window_right, p.diagonal_alignment, p.softcap), (1, 30, -1, 1, 20.0))
        self.assertEqual((p.sinks, p.seqused_q, p.seqused_k), (64, 128, 192))

        for slopes, stride in ((Tensor(64, (8,), torch.float32), 0), (Tensor(64, (2, 8), torch.float32, (24, 1)), 24)):
            p = params_of((2, 100, 8, 128), (2, 200, 4, 128), alibi_slopes=slopes)
            fa4_torch.check(LIBRARY.fa4_supported(None, ctypes.byref(p)))
            self.assertEqual((p.alibi_slopes, p.alibi_batch_stride), (64, stride))

    def test_packed_entries(self):
        torch = sys.modules["torch"]
        begins = Tensor(64, (4,), torch.int32), Tensor(128, (4,), torch.int32)
        for q, kv, options in (((1, 100, 8, 128), (1, 200, 4, 128), {"cu_seqlens_q": begins[0], "cu_seqlens_k": begins[1]}),
                               ((1, 100, 8, 128), (3, 200, 4, 128), {"cu_seqlens_q": begins[0]}),
                               ((3, 100, 8, 128), (1, 200, 4, 128), {"cu_seqlens_k": begins[1]})):
            p = params_of(q, kv, **options)
            fa4_torch.check(LIBRARY.fa4_supported(None, ctypes.byref(p)))
            size = ctypes.c_uint64()
            fa4_torch.check(LIBRARY.fa4_workspace_size(None, ctypes.byref(p), ctypes.byref(size)))
            self.assertEqual(size.value, 4)
            self.assertEqual((p.batch, p.seq_q, p.seq_kv), (3, 100, 200))
            self.assertEqual((p.cu_seqlens_q, p.total_q), (64, 100) if "cu_seqlens_q" in options else (0, 0))
            self.assertEqual((p.cu_seqlens_k, p.total_k), (128, 200) if "cu_seqlens_k" in options else (0, 0))
            self.assertEqual(p.lse_head_stride, 100)

    def test_a_workspace_is_zero(self):
        torch, library = sys.modules["torch"], unittest.mock.MagicMock()
        torch.cuda.current_stream.return_value.cuda_stream = 7
        torch.zeros.return_value.data_ptr.return_value = 4096
        seen = []

        def forward(context, params):
            seen.append((params._obj.workspace, params._obj.workspace_size))
            return 0
        library.fa4_forward.side_effect = forward
        for size, workspace in ((4, (4096, 4)), (0, (None, 0))):
            torch.zeros.reset_mock()
            library.fa4_workspace_size.side_effect = lambda context, params, need: setattr(need._obj, "value", size) or 0
            with unittest.mock.patch.multiple(fa4_torch, load=lambda: library, _driver=unittest.mock.MagicMock(),
                                              prepare=lambda device: (1, ctypes.c_void_p(1))):
                fa4_torch._launch(params_of((2, 100, 8, 128), (2, 200, 4, 128)), "gpu")
            self.assertEqual(seen.pop(), workspace)
            self.assertEqual([call.args[0] for call in torch.zeros.call_args_list], [size] if size else [])

    def test_a_wrong_option_is_refused_by_name(self):
        torch = sys.modules["torch"]
        f32, i32 = torch.float32, torch.int32
        for options, says in (({"sinks": Tensor(64, (7,), f32)}, "sinks is"), ({"sinks": Tensor(64, (8,), i32)}, "sinks is"),
                              ({"sinks": Tensor(64, (8,), f32, (2,))}, "sinks is"),
                              ({"alibi_slopes": Tensor(64, (3, 8), f32)}, "alibi_slopes is"),
                              ({"seqused_q": Tensor(64, (1,), i32)}, "seqused_q is"),
                              ({"seqused_k": Tensor(64, (2,), f32)}, "seqused_k is"),
                              ({"cu_seqlens_q": Tensor(64, (3,), i32)}, "cu_seqlens_q has shape .* and q batch 2"),
                              ({"cu_seqlens_k": Tensor(64, (3,), i32)}, "cu_seqlens_k has shape .* and k batch 2")):
            with self.assertRaisesRegex(ValueError, "^" + says):
                params_of((2, 100, 8, 128), (2, 200, 4, 128), **options)
        with self.assertRaisesRegex(ValueError, "q has 2 batch entries and k 3"):
            params_of((2, 100, 8, 128), (3, 200, 4, 128))
        with self.assertRaisesRegex(ValueError, "^o has shape|^v has shape"):
            fa4_torch._params(Tensor(16, (2, 9, 8, 64), torch.float16), Tensor(16, (2, 9, 8, 64), torch.float16),
                              Tensor(16, (1, 9, 8, 64), torch.float16), Tensor(16, (2, 9, 8, 64), torch.float16), None, False, None, "bshd")

    def test_what_is_valid_is_supported(self):
        fa4_torch.check(LIBRARY.fa4_supported(None, ctypes.byref(valid())))
        size = ctypes.c_uint64(1)
        fa4_torch.check(LIBRARY.fa4_workspace_size(None, ctypes.byref(valid()), ctypes.byref(size)))

    def test_every_field_is_where_the_library_reads_it(self):
        bad = {"struct_size": 4, "version": 99, "dtype": 7, "causal": 2, "scheduler": 9, "exp2": 7, "batch": -3, "seq_q": -3,
               "seq_kv": -3, "q_heads": -3, "kv_heads": -3, "head_dim": 100, "lse": 2, "lse_batch_stride": -3, "lse_head_stride": -3,
               "softmax_scale": math.inf, "max_ctas": -3, "diagonal_alignment": 2, "cu_seqlens_q": 2, "cu_seqlens_k": 2, "seqused_q": 2,
               "seqused_k": 2, "total_q": 1, "total_k": 1, "head_dim_v": 100, "block_table": 4, "block_table_stride": 1, "page_size": 1,
               "num_pages": 1, "window": 2, "num_splits": 2, "window_left": 1, "window_right": 1, "softcap": math.nan, "sinks": 2,
               "alibi_slopes": 2, "alibi_batch_stride": 1}
        checked_elsewhere = {"q", "k", "v", "o", "workspace", "workspace_size", "stream"}  # below, and what nothing is wrong for
        self.assertEqual({name for name, _ in fa4_torch.ForwardParams._fields_}, set(bad) | checked_elsewhere)
        for field, value in bad.items():
            params = valid()
            setattr(params, field, value)
            if field == "block_table":
                params.page_size = params.num_pages = 1
            with self.assertRaises(fa4_torch.Fa4Error) as refusal:
                fa4_torch.check(LIBRARY.fa4_supported(None, ctypes.byref(params)))
            self.assertRegex(str(refusal.exception), f"^(fa4_forward_params has )?{field} ")
        for tensor in "qkvo":
            for field, value in {"data": 8, "batch_stride": -8, "seq_stride": -8, "head_stride": -8}.items():
                params = valid()
                setattr(getattr(params, tensor), field, value)
                with self.assertRaises(fa4_torch.Fa4Error) as refusal:
                    fa4_torch.check(LIBRARY.fa4_supported(None, ctypes.byref(params)))
                self.assertIn(f"{tensor}.{field}", str(refusal.exception))
        # As long as the library's: a longer struct, and only that, has a byte that the library does not know.
        longer = ctypes.create_string_buffer(bytes(valid()) + b"\0\0\0\7", ctypes.sizeof(fa4_torch.ForwardParams) + 4)
        ctypes.c_uint32.from_buffer(longer).value = len(longer)
        with self.assertRaisesRegex(fa4_torch.Fa4Error, f"offset {len(longer) - 1} is 7.*knows the first {len(longer) - 4} bytes"):
            fa4_torch.check(LIBRARY.fa4_supported(None, ctypes.cast(longer, ctypes.POINTER(fa4_torch.ForwardParams))))

    def test_creation(self):
        context = ctypes.c_void_p()
        for field, value, says in (("driver_library", b"/nowhere/libcuda.so.1", "/nowhere"), ("struct_size", 4, "struct_size 4")):
            params = fa4_torch.CreateParams(struct_size=ctypes.sizeof(fa4_torch.CreateParams), version=fa4_torch.VERSION)
            setattr(params, field, value)
            with self.assertRaisesRegex(fa4_torch.Fa4Error, says):
                fa4_torch.check(LIBRARY.fa4_create(ctypes.byref(params), ctypes.byref(context)))


unittest.main(argv=sys.argv[:1])
