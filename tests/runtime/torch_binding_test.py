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
        bad = {"struct_size": 8, "version": 99, "dtype": 7, "causal": 2, "scheduler": 9, "exp2": 7, "batch": -3, "seq_q": -3,
               "seq_kv": -3, "q_heads": -3, "kv_heads": -3, "head_dim": 96, "lse": 2, "lse_batch_stride": -3, "lse_head_stride": -3,
               "softmax_scale": math.inf, "max_ctas": -3, "reserved1": 1}
        for field, value in bad.items():
            params = valid()
            setattr(params, field, value)
            with self.assertRaises(fa4_torch.Fa4Error) as refusal:
                fa4_torch.check(LIBRARY.fa4_supported(None, ctypes.byref(params)))
            self.assertIn(field, str(refusal.exception))
        for tensor in "qkvo":
            for field, value in {"data": 8, "batch_stride": -8, "seq_stride": -8, "head_stride": -8}.items():
                params = valid()
                setattr(getattr(params, tensor), field, value)
                with self.assertRaises(fa4_torch.Fa4Error) as refusal:
                    fa4_torch.check(LIBRARY.fa4_supported(None, ctypes.byref(params)))
                self.assertIn(f"{tensor}.{field}", str(refusal.exception))
        params = valid()
        params.reserved2[3] = 1
        with self.assertRaisesRegex(fa4_torch.Fa4Error, r"reserved2\[3\]"):
            fa4_torch.check(LIBRARY.fa4_supported(None, ctypes.byref(params)))

    def test_creation(self):
        context = ctypes.c_void_p()
        for field, value, says in (("driver_library", b"/nowhere/libcuda.so.1", "/nowhere"), ("struct_size", 8, "struct_size 8")):
            params = fa4_torch.CreateParams(struct_size=ctypes.sizeof(fa4_torch.CreateParams), version=fa4_torch.VERSION)
            setattr(params, field, value)
            with self.assertRaisesRegex(fa4_torch.Fa4Error, says):
                fa4_torch.check(LIBRARY.fa4_create(ctypes.byref(params), ctypes.byref(context)))


unittest.main(argv=sys.argv[:1])
