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


class Binding(unittest.TestCase):
    def test_what_is_valid_is_supported(self):
        fa4_torch.check(LIBRARY.fa4_supported(None, ctypes.byref(valid())))
        size = ctypes.c_uint64(1)
        fa4_torch.check(LIBRARY.fa4_workspace_size(None, ctypes.byref(valid()), ctypes.byref(size)))

    def test_every_field_is_where_the_library_reads_it(self):
        bad = {"struct_size": 4, "version": 99, "dtype": 7, "causal": 2, "scheduler": 9, "exp2": 7, "batch": -3, "seq_q": -3,
               "seq_kv": -3, "q_heads": -3, "kv_heads": -3, "head_dim": 100, "lse": 2, "lse_batch_stride": -3, "lse_head_stride": -3,
               "softmax_scale": math.inf, "max_ctas": -3, "diagonal_alignment": 2, "cu_seqlens_q": 2, "cu_seqlens_k": 2, "seqused_q": 2,
               "seqused_k": 2, "total_q": 1, "total_k": 1, "head_dim_v": 96, "block_table": 4, "block_table_stride": 1, "page_size": 1,
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
