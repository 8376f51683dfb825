# SPDX-License-Identifier: Apache-2.0
"""The command line end to end on the simulated GPU: cli_test.py FA4 LIBFA4SIM PTX STUB_DRIVER GRAPH_DRIVER [CLASS...]. Plain Python, no NumPy."""

import json
import math
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.dom.minidom
from pathlib import Path

FA4, SIMULATOR, PTX, STUB, GRAPHS = sys.argv[1:6]
D = 128


def fa4(*arguments, expect=0):
    """Runs fa4 and returns its output and error text together."""
    result = subprocess.run([FA4, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            timeout=120)
    if result.returncode != expect:
        raise AssertionError(f"fa4 {' '.join(map(str, arguments))}: exit code {result.returncode}, {expect} expected:\n"
                             f"{result.stdout}")
    return result.stdout


def run(*arguments, expect=0):
    return fa4("run", "--device", "sim", "--driver", SIMULATOR, *arguments, expect=expect)


def pack_npy(descr, shape, data, fortran=False, long=""):
    extents = ", ".join(f"{extent}{long}" for extent in shape)
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({extents},), }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def read_npy(path):
    raw = Path(path).read_bytes()
    length = struct.unpack_from("<H", raw, 8)[0]
    header = eval(raw[10:10 + length])  # our own file
    code = {"<f2": "e", "<f4": "f", "<u2": "H", "<i4": "i"}[header["descr"]]
    count = math.prod(header["shape"])
    return header, struct.unpack(f"<{count}{code}", raw[10 + length:])


def values(count, salt):
    """Multiples of 1/64 in [-2, 2): exact in fp16, bf16 and fp32."""
    state, result = salt, []
    for _ in range(count):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        result.append(((state >> 16) % 256 - 128) / 64)
    return result


class Files:
    """Q, K and V of one problem as files of any type and layout."""

    def __init__(self, folder, batch, seq_q, seq_kv, heads, kv_heads):
        self.folder, self.shape_q, self.shape_kv = Path(folder), (batch, seq_q, heads, D), (batch, seq_kv, kv_heads, D)
        self.q = values(math.prod(self.shape_q), 1)
        self.k = values(math.prod(self.shape_kv), 2)
        self.v = values(math.prod(self.shape_kv), 3)

    @staticmethod
    def encode(descr, numbers):
        if descr == "<f2":
            return struct.pack(f"<{len(numbers)}e", *numbers)
        floats = struct.pack(f"<{len(numbers)}f", *numbers)
        if descr == "<f4":
            return floats
        return b"".join(floats[i + 2:i + 4] for i in range(0, len(floats), 4))

    def write(self, descr="<f2", bhsd=False, long=""):
        arguments = []
        for name, shape, numbers in (("q", self.shape_q, self.q), ("k", self.shape_kv, self.k), ("v", self.shape_kv, self.v)):
            if bhsd:
                b, s, h, d = shape
                numbers = [x for bi in range(b) for hi in range(h) for si in range(s)
                           for x in numbers[((bi * s + si) * h + hi) * d:][:d]]
                shape = (b, h, s, d)
            path = self.folder / f"{name}.npy"
            path.write_bytes(pack_npy(descr, shape, self.encode(descr, numbers), long=long))
            arguments += [f"--{name}", path]
        return arguments + (["--layout", "bhsd"] if bhsd else [])

    def expected(self, b, i, h, causal):
        """O and LSE of one query, from the formula."""
        _, seq_q, heads, _ = self.shape_q
        _, seq_kv, kv_heads, _ = self.shape_kv
        kv = h // (heads // kv_heads)
        row = lambda x, s, n, j, hh: x[((b * s + j) * n + hh) * D:][:D]
        q = row(self.q, seq_q, heads, i, h)
        keys = range(min(seq_kv, i + seq_kv - seq_q + 1) if causal else seq_kv)
        scores = [sum(x * y for x, y in zip(q, row(self.k, seq_kv, kv_heads, j, kv))) / math.sqrt(D) for j in keys]
        p = [math.exp(s) for s in scores]
        o = [0.0] * D
        for j in keys:
            for d, x in enumerate(row(self.v, seq_kv, kv_heads, j, kv)):
                o[d] += p[j] / sum(p) * x
        return o, math.log(sum(p))


class Run(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def test_a_shape_with_check(self):
        text = run("--seq-q", 130, "--seq-kv", 200, "--heads", 4, "--kv-heads", 2, "--causal", "--check", "--sms", 3)
        for part in ("fp16 causal B=1 Sq=130 Skv=200 Hq=4 Hkv=2 D=128", "3 SMs\n            asked for", "fa4_forward_f16_d128_causal",
                     "LPT scheduler", "simulated on", "softmax 0", "correction", "max error", "worst at batch", "PASS"):
            self.assertIn(part, text)
        text = run("--dtype", "bf16", "--seq-q", 5, "--heads", 1, "--kv-heads", 1, "--scheduler", "lpt", "--scale", "-0.5", "--check")
        for part in ("bf16 full", "148 SMs", "fa4_forward_bf16_d128_full", "LPT", "scale -0.5", "PASS"):
            self.assertIn(part, text)

    def test_another_simulated_gpu(self):
        for gpu, sms in (("sm_90", 132), ("sm_103", 148)):
            text = run("--seq-q", 64, "--heads", 1, "--kv-heads", 1, "--gpu", gpu, "--check")
            self.assertIn(f"({gpu}), {sms} SMs", text)
            self.assertIn("PASS", text)
        self.assertIn("leave one of them out", fa4("run", "--device", "gpu", "--gpu", "sm_100", expect=2))

    def test_nothing_to_compute(self):
        self.assertIn("nothing to compute", run("--batch", 0, "--check"))
        self.assertIn("PASS", run("--seq-q", 3, "--seq-kv", 0, "--check"))

    def test_files_of_every_type_and_layout_agree(self):
        files = Files(self.folder, 2, 3, 70, 4, 2)
        o_path, lse_path = self.folder / "o.npy", self.folder / "lse.npy"
        outputs = {}
        for descr, dtype in (("<f2", "fp16"), ("<f4", "fp16"), ("<u2", "bf16"), ("<f4", "bf16")):
            for bhsd in (False, True):
                run(*files.write(descr, bhsd), "--dtype", dtype, "--causal", "--out", o_path, "--lse", lse_path, "--check")
                header, o = read_npy(o_path)
                self.assertEqual(header["descr"], "<f2" if dtype == "fp16" else "<u2")
                self.assertEqual(header["shape"], (2, 4, 3, D) if bhsd else (2, 3, 4, D))
                lse_header, lse = read_npy(lse_path)
                self.assertEqual((lse_header["descr"], lse_header["shape"]), ("<f4", (2, 4, 3)))
                if bhsd:
                    o = [x for b in range(2) for s in range(3) for h in range(4) for x in o[((b * 4 + h) * 3 + s) * D:][:D]]
                outputs.setdefault(dtype, []).append((list(o), lse))
        for runs in outputs.values():
            for other in runs[1:]:
                self.assertEqual(other, runs[0])
        o, lse = outputs["fp16"][0]
        for b, i, h in ((0, 0, 0), (1, 2, 3), (1, 1, 1)):
            expected, expected_lse = files.expected(b, i, h, causal=True)
            got = o[((b * 3 + i) * 4 + h) * D:][:D]
            self.assertLess(max(abs(x - y) for x, y in zip(got, expected)), 2e-3)
            self.assertLess(abs(lse[(b * 4 + h) * 3 + i] - expected_lse), 1e-4)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["k.npy", "lse.npy", "o.npy", "q.npy", "v.npy"])

    def test_files_of_ml_dtypes_and_of_python_2(self):
        files = Files(self.folder, 1, 3, 70, 4, 2)
        outputs = []
        for descr, long in (("<u2", ""), ("<V2", ""), ("|V2", ""), ("<u2", "L")):
            run(*files.write(descr, long=long), "--dtype", "bf16", "--out", self.folder / "o.npy", "--check")
            outputs.append((self.folder / "o.npy").read_bytes())
        self.assertEqual(len(set(outputs)), 1)
        self.refused(*files.write("<V2"), says=["ml_dtypes", "--dtype bf16"])
        self.refused(*files.write("<V2"), "--dtype", "fp16", says=["ml_dtypes", "--dtype bf16", "not --dtype fp16"])

    def test_a_pipe_is_refused(self):
        arguments = Files(self.folder, 1, 3, 70, 4, 2).write()
        command = " ".join(map(shlex.quote, map(str, [FA4, "run", "--device", "sim", "--driver", SIMULATOR, *arguments[2:]])))
        result = subprocess.run(["bash", "-c", f"{command} --q <(cat {arguments[1]})"], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 2)
        self.assertIn("is a pipe", result.stderr)

    def test_neither_sms_nor_threads_change_a_bit(self):
        outputs = []
        for sms, threads in ((1, 1), (3, 2), (148, 4)):
            run("--seq-q", 200, "--heads", 4, "--kv-heads", 1, "--sms", sms, "--threads", threads, "--out", self.folder / "o.npy")
            outputs.append((self.folder / "o.npy").read_bytes())
        self.assertEqual(outputs[0], outputs[1])
        self.assertEqual(outputs[0], outputs[2])

    def test_values_that_would_become_infinite_are_refused(self):
        files = Files(self.folder, 1, 2, 3, 2, 1)
        files.q[5], files.q[300], files.v[2] = 65520.0, -3e6, 65519.0  # the first that rounds to inf; far; the last
        self.refused(*files.write("<f4"), "--dtype", "fp16",
                     says=["q.npy", "2 of 512 values", "fp16", "3e+06", "65504", "--dtype bf16"])
        run(*files.write("<f4"), "--dtype", "bf16", "--check")
        files.q[5] = files.q[300] = 1.0
        run(*files.write("<f4"), "--dtype", "fp16", "--check")
        files.v[2] = 3.4e38
        self.refused(*files.write("<f4"), "--dtype", "bf16", says=["v.npy", "1 of 384 values", "bf16", "3.38953e+38"])
        files.v[2], files.k[4], files.q[1] = 1.0, math.inf, math.nan  # in the file already
        for dtype in ("fp16", "bf16"):
            self.assertIn("NaN, as the reference", run(*files.write("<f4"), "--dtype", dtype, "--check"))

    def test_a_nan_in_the_inputs_excuses_no_other_row(self):
        files = Files(self.folder, 1, 5, 70, 2, 1)
        files.q[(2 * 2 + 1) * D + 9] = math.nan  # position 2, head 1
        arguments = files.write()
        wrong = self.folder / "wrong.ptx"
        wrong.write_text(Path(PTX).read_text().replace("ex2.approx.ftz.f32", "cos.approx.ftz.f32"))
        text = run(*arguments, "--check")
        self.assertIn("128 elements are NaN, as the reference is", text)
        self.assertIn("PASS", text)
        self.assertNotIn("allowed inf", text)
        text = run(*arguments, "--image", wrong, "--check", expect=1)
        self.assertIn("FAIL", text)
        self.assertNotIn("allowed inf", text)

    def test_rows_that_a_nan_in_v_leaves_unspecified_are_counted(self):
        files = Files(self.folder, 1, 5, 70, 4, 2)
        files.v[(69 * 2 + 1) * D + 3] = math.inf  # key 69, which only the last query sees, of KV head 1
        arguments = files.write() + ["--causal", "--check"]
        text = run(*arguments)
        self.assertIn("10 of 20 rows of O are unspecified", text)
        self.assertIn("PASS, as far as O is specified", text)
        wrong = self.folder / "wrong.ptx"
        wrong.write_text(Path(PTX).read_text().replace("ex2.approx.ftz.f32", "cos.approx.ftz.f32"))
        self.assertIn("FAIL", run(*arguments, "--image", wrong, expect=1))

    def test_a_check_that_could_not_fail_is_no_pass(self):
        # The score of key 0 is 2^25 + 2^-3 - 2^25, of key 1 it is 0: fp32 sums cannot tell them apart, the scale
        # makes all the difference of it.
        files = Files(self.folder, 1, 1, 2, 1, 1)
        files.q = [2.0 ** 10, 1.0, 2.0 ** 10] + [0.0] * (D - 3)
        files.k = [2.0 ** 15, 2.0 ** -3, -2.0 ** 15] + [0.0] * (D - 3) + [0.0] * D
        files.v = [1.0] * D + [-1.0] * D
        text = run(*files.write(), "--scale", "1e6", "--check", expect=1)
        self.assertIn("inconclusive", text)

    def refused(self, *arguments, says):
        """Exit code 2, every part of the sentence, and outputs as they were."""
        o_path, lse_path = self.folder / "o.npy", self.folder / "lse.npy"
        o_path.write_bytes(b"as it was")
        text = run(*arguments, "--out", o_path, "--lse", lse_path, expect=2)
        for part in says:
            self.assertIn(part, text)
        self.assertNotIn("simulated on", text)
        self.assertEqual(o_path.read_bytes(), b"as it was")
        self.assertFalse(lse_path.exists())

    def test_bad_shapes_are_refused(self):
        self.refused("--heads", 5, "--kv-heads", 2, says=["q_heads", "5", "multiple"])
        self.refused("--heads", 0, says=["q_heads", "0"])
        self.refused("--seq-q", -3, says=["seq_q", "-3"])
        self.refused("--seq-kv", 1 << 40, says=["seq_kv", str(1 << 40)])
        self.refused("--batch", 1 << 62, says=["batch"])
        self.refused("--scale", "nan", says=["scale"])
        self.refused("--scale", "0", says=["--scale"])

    def test_bad_options_are_refused(self):
        for arguments in (["--dtype", "fp8"], ["--layout", "sbhd"], ["--sms", "0"], ["--scheduler", "random"], ["--batch", "two"],
                          ["--nonsense"], ["--device", "tpu"]):
            self.assertIn(arguments[0], fa4("run", *arguments, expect=2))
        fa4(expect=2)
        files = Files(self.folder, 1, 1, 1, 1, 1).write()
        self.refused(*files, "--batch", 1, says=["--batch", "files have the shape"])
        self.refused(*files[:2], says=["--q needs --"])

    def test_bad_files_are_refused(self):
        files = Files(self.folder, 1, 2, 3, 4, 2)

        def spoil(name, data, says):
            arguments = files.write()
            (self.folder / f"{name}.npy").write_bytes(data)
            self.refused(*arguments, says=[f"{name}.npy", *says])

        kv = math.prod(files.shape_kv)
        good_kv = pack_npy("<f2", files.shape_kv, bytes(2 * kv))
        spoil("q", b"", ["truncated"])
        spoil("k", good_kv[:-1], ["truncated"])
        spoil("k", good_kv + b"x", ["1 bytes follow"])
        spoil("v", pack_npy("<f8", files.shape_kv, bytes(8 * kv)), ["<f8", "float64", "array.astype(numpy.float32)"])
        spoil("v", pack_npy(">f2", files.shape_kv, bytes(2 * kv)), [">f2", "array.astype('<f2')"])
        spoil("k", pack_npy("<f2", files.shape_kv, bytes(2 * kv), fortran=True), ["Fortran order", "numpy.ascontiguousarray"])
        spoil("k", pack_npy("<u2", files.shape_kv, bytes(2 * kv)), ["uint16", "float16", "one type"])
        spoil("q", pack_npy("<f2", (2, 4, D), bytes(4 * 2 * 4 * D)[:2 * 2 * 4 * D]), ["rank 3", "rank 4"])
        spoil("k", pack_npy("<f2", (2, 3, 2, D), bytes(4 * kv)), ["batch 2"])
        spoil("v", pack_npy("<f2", (1, 4, 2, D), bytes(2 * 8 * D)), ["sequence length 4"])
        spoil("v", pack_npy("<f2", (1, 3, 1, D), bytes(2 * 3 * D)), ["heads 1"])
        spoil("k", pack_npy("<f2", (1, 3, 2, 64), bytes(2 * 6 * 64)), ["head dimension 64"])
        spoil("k", pack_npy("<i4", files.shape_kv, bytes(4 * kv)), ["int32", "one type"])
        self.refused("--q", self.folder / "absent", "--k", self.folder / "absent", "--v", self.folder / "absent", says=["absent", "cannot be opened"])
        self.refused(*files.write("<f4"), says=["float32", "--dtype"])
        self.refused(*files.write("<u2"), "--dtype", "fp16", says=["uint16", "bfloat16"])
        self.refused(*files.write("<f2"), "--dtype", "bf16", says=["float16"])

    def test_a_head_dimension_without_kernel_is_refused(self):
        arguments = []
        for name in "qkv":
            (self.folder / f"{name}.npy").write_bytes(pack_npy("<f2", (1, 2, 1, 84), bytes(336)))
            arguments += [f"--{name}", self.folder / f"{name}.npy"]
        self.refused(*arguments, says=["head_dim is 84", "multiples of 8 from 8 to 256 are supported"])

    def test_an_output_that_cannot_be_written_is_refused_first(self):
        text = run("--out", self.folder / "absent" / "o.npy", expect=2)
        self.assertIn("absent", text)
        self.assertNotIn("simulated on", text)

    def test_devices(self):
        self.assertIn("absent.so", fa4("run", "--driver", self.folder / "absent.so", expect=3))
        self.assertIn("is a simulated GPU", fa4("run", "--device", "gpu", "--driver", SIMULATOR, expect=3))
        for text in (fa4("run", "--driver", STUB, "--seq-q", 16, expect=3), fa4("run", "--device", "gpu", "--driver", STUB, expect=3),
                     fa4("info", "--driver", STUB)):
            for part in (STUB, "CUDA_ERROR_STUB_LIBRARY", "lib64/stubs out of LD_LIBRARY_PATH"):
                self.assertIn(part, text)
        # Found under the driver's name, it is no GPU: the simulated one is taken, and the reason is said.
        os.symlink(os.path.abspath(STUB), self.folder / "libcuda.so.1")
        result = subprocess.run([FA4, "run", "--seq-q", "1", "--heads", "1", "--kv-heads", "1"], capture_output=True, text=True,
                                env={**os.environ, "LD_LIBRARY_PATH": str(self.folder)}, timeout=60)
        self.assertEqual(result.returncode, 0)
        self.assertIn("no GPU to use: cuInit failed with error 34, CUDA_ERROR_STUB_LIBRARY", result.stdout)
        self.assertIn(str(self.folder / "libcuda.so.1"), result.stdout)  # the file behind the soname
        if not os.path.exists("/dev/nvidiactl"):
            self.assertIn("libcuda.so.1", fa4("run", "--device", "gpu", expect=3))
            text = fa4("run", "--seq-q", 1, "--heads", 1, "--kv-heads", 1)
            self.assertIn("no GPU to use", text)
            self.assertIn("libcuda.so.1", text)


class General(unittest.TestCase):
    """Windows, alignment, scores and lengths: what the general kernels take, on both architectures."""
    GPUS = ("sm_100", "sm_90")
    SMALL = ("--heads", 4, "--kv-heads", 2, "--sms", 3)

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def save(self, name, descr, shape, numbers):
        path = self.folder / name
        path.write_bytes(pack_npy(descr, shape, struct.pack(f"<{len(numbers)}{'f' if descr == '<f4' else 'i'}", *numbers)))
        return path

    def lengths(self, *numbers, name="lengths.npy"):
        return self.save(name, "<i4", (len(numbers),), numbers)

    def refused(self, *arguments, says, command="run"):
        o = self.folder / "o.npy"
        device = ("--driver", GRAPHS) if command == "bench" else ("--driver", SIMULATOR)
        outputs = ("--out", o) if command == "run" else ()
        text = fa4(command, *device, *arguments, *outputs, expect=2)
        for part in says:
            self.assertIn(part, text)
        self.assertNotIn("simulated on", text)
        self.assertFalse(o.exists())

    def test_each_option_against_the_reference(self):
        problems = ((("--seq-q", 150, "--window", "40,3"), ["window=40,3", "LPT scheduler"]),
                    (("--seq-q", 150, "--window", "-1,0"), ["window=-1,0", "f16_d128_causal"]),  # no general kernel is needed
                    (("--seq-q", 150, "--seq-kv", 70, "--window", "9,-1", "--dtype", "bf16"), ["window=9,-1", "bf16_d128_general"]),
                    (("--seq-q", 70, "--seq-kv", 150, "--causal", "--top-left"), ["top-left"]),
                    (("--seq-q", 150, "--softcap", 1.5), ["softcap=1.5"]),
                    (("--seq-q", 150, "--sinks", "--head-dim", 64), [" sinks", "f16_d64_general"]),
                    (("--seq-q", 150, "--alibi"), [" ALiBi"]),
                    (("--lengths-q", "100,0,270,7", "--causal"), ["B=4 Sq=270 Skv=270", "packed_q=[100 0 270 7] packed_kv=[100 0 270 7]"]),
                    (("--cu-seqlens-q", "0,3,300", "--lengths-k", "150,20"), ["B=2 Sq=297 Skv=150", "packed_q=[3 297] packed_kv=[150 20]"]),
                    (("--lengths-q", "60,80", "--seq-kv", 100), ["B=2 Sq=80 Skv=100", "packed_q=[60 80]"]),
                    (("--lengths-q", "60,80", "--seq-q", 500), ["B=2 Sq=500 Skv=80"]),
                    (("--batch", 2, "--seq-q", 100, "--seqused-q", "100,3", "--seqused-k", "0,99"), ["used_q=[100 3] used_kv=[0 99]"]),
                    (("--lengths-q", "60,200", "--seqused-k", "9,150", "--window", "30,30", "--alibi", "--sinks"),
                     ["packed_kv=[60 200] used_kv=[9 150]", "window=30,30", "sinks ALiBi"]))
        for i, (arguments, says) in enumerate(problems):
            for gpu in self.GPUS if i == len(problems) - 1 else self.GPUS[i % 2:][:1]:  # in turn, and the last on both
                with self.subTest(gpu=gpu, arguments=arguments):
                    text = run(*self.SMALL, *arguments, "--gpu", gpu, "--check")
                    for part in (*says, "PASS"):
                        self.assertIn(part, text)
                    if "f16_d128_causal" not in says:
                        self.assertIn("_general", text)

    def test_an_image_that_does_otherwise_fails(self):
        wrong = self.folder / "wrong.ptx"
        wrong.write_text(Path(PTX).read_text().replace("ex2.approx.ftz.f32", "cos.approx.ftz.f32"))
        for arguments in (("--lengths-q", "100,7"), ("--seq-q", 50, "--window", "5,5"), ("--seq-q", 50, "--softcap", 2), ("--seq-q", 50, "--sinks")):
            self.assertIn("FAIL", run(*self.SMALL, *arguments, "--image", wrong, "--check", expect=1))

    def test_the_work_is_that_of_the_pairs_that_are_seen(self):
        gflop = lambda *arguments: float(re.search(r"work +(\S+) GFLOP", run(*self.SMALL, *arguments))[1])
        pair = 4 * 4 * 128 * 1e-9
        for arguments, pairs in ((("--seq-q", 100), 10000), (("--seq-q", 100, "--causal"), 5050), (("--seq-q", 100, "--window", "2,1"), 400 - 4),
                                 (("--lengths-q", "100,20"), 10400), (("--lengths-q", "100,20", "--seqused-k", "10,0"), 1000),
                                 (("--seq-q", 100, "--seq-kv", 50, "--causal", "--top-left"), 1275 + 50 * 50)):
            self.assertAlmostEqual(gflop(*arguments) / (pair * pairs), 1, delta=1e-4)

    def packed_files(self, files, q_lengths, kv_lengths, bhsd=False):
        """The first rows of each batch entry of files, packed."""
        arguments = ["--layout", "bhsd"] if bhsd else []
        for name, shape, numbers, lengths in (("q", files.shape_q, files.q, q_lengths), ("k", files.shape_kv, files.k, kv_lengths),
                                              ("v", files.shape_kv, files.v, kv_lengths)):
            _, seq, heads, _ = shape
            row = lambda b, s, h: numbers[((b * seq + s) * heads + h) * D:][:D]
            places = [(b, s) for b, length in enumerate(lengths) for s in range(length)]
            rows = [row(b, s, h) for h in range(heads) for b, s in places] if bhsd else [row(b, s, h) for b, s in places for h in range(heads)]
            path = self.folder / f"packed_{name}.npy"
            path.write_bytes(pack_npy("<f2", (heads, len(places), D) if bhsd else (len(places), heads, D), files.encode("<f2", sum(rows, []))))
            arguments += [f"--{name}", path]
        return arguments

    def test_packed_files(self):
        """Every way to say the same lengths gives the same file, whose rows are those of a dense file, entry by entry."""
        files, q_lengths, kv_lengths = Files(self.folder, 3, 5, 70, 4, 2), (5, 0, 2), (70, 3, 9)
        o_path, lse_path = self.folder / "o.npy", self.folder / "lse.npy"
        outputs = ("--causal", "--out", o_path, "--lse", lse_path, "--check")
        results = []
        for lengths in (("--lengths-q", "5,0,2", "--lengths-k", "70,3,9"), ("--cu-seqlens-q", "0,5,5,7", "--lengths-k", self.lengths(70, 3, 9)),
                        ("--lengths-q", "5,0,2", "--cu-seqlens-k", self.lengths(0, 70, 73, 82, name="sums.npy"))):
            self.assertIn("PASS", run(*self.packed_files(files, q_lengths, kv_lengths), *lengths, *outputs))
            header, o = read_npy(o_path)
            lse_header, lse = read_npy(lse_path)
            self.assertEqual((header["descr"], header["shape"]), ("<f2", (7, 4, D)))
            self.assertEqual((lse_header["descr"], lse_header["shape"]), ("<f4", (4, 7)))
            results.append((o, lse))
        self.assertEqual(results[1:], 2 * results[:1])
        run(*self.packed_files(files, q_lengths, kv_lengths, bhsd=True), "--lengths-q", "5,0,2", "--lengths-k", "70,3,9", *outputs)
        header, by_head = read_npy(o_path)
        self.assertEqual(header["shape"], (4, 7, D))
        self.assertEqual([x for row in range(7) for h in range(4) for x in by_head[(h * 7 + row) * D:][:D]], list(o))
        self.assertEqual(read_npy(lse_path)[1], lse)
        # Used in part, the dense files are the same problem.
        run(*files.write(), "--seqused-q", "5,0,2", "--seqused-k", "70,3,9", *outputs)
        header, dense = read_npy(o_path)
        _, dense_lse = read_npy(lse_path)
        self.assertEqual(header["shape"], (3, 5, 4, D))
        row = 0
        for b in range(3):
            for s in range(5):
                for h in range(4):
                    there, there_lse = dense[((b * 5 + s) * 4 + h) * D:][:D], dense_lse[(b * 4 + h) * 5 + s]
                    if s < q_lengths[b]:
                        self.assertEqual((there, there_lse), (o[(row * 4 + h) * D:][:D], lse[h * 7 + row]))
                    else:
                        self.assertEqual((there, there_lse), (D * (0.0,), -math.inf))
                row += s < q_lengths[b]
        # And as the formula has it.
        one = Files(self.folder, 3, 5, 70, 4, 2)
        expected, expected_lse = one.expected(0, 4, 1, causal=True)
        self.assertLess(max(abs(x - y) for x, y in zip(o[(4 * 4 + 1) * D:][:D], expected)), 2e-3)
        self.assertLess(abs(lse[7 + 4] - expected_lse), 1e-4)

    def test_packed_q_and_k_of_equal_rows_share_lengths(self):
        files = Files(self.folder, 2, 9, 9, 2, 1)
        text = run(*self.packed_files(files, (9, 4), (9, 4)), "--lengths-q", "9,4", "--check")
        self.assertIn("packed_q=[9 4] packed_kv=[9 4]", text)

    def test_sinks_and_slopes_from_files(self):
        files = Files(self.folder, 2, 3, 40, 4, 2)
        o_path, lse_path = self.folder / "o.npy", self.folder / "lse.npy"
        def lse_of(*arguments):
            self.assertIn("PASS", run(*files.write(), *arguments, "--out", o_path, "--lse", lse_path, "--check"))
            return read_npy(lse_path)[1]
        plain = lse_of()
        sinks = (-30.0, 1.25, 7.0, 20.0)
        for i, lse in enumerate(lse_of("--sinks", self.save("sinks.npy", "<f4", (4,), sinks))):
            self.assertAlmostEqual(lse, math.log(math.exp(plain[i]) + math.exp(sinks[i // 3 % 4])), delta=1e-4)
        shared = self.save("slopes.npy", "<f4", (4,), (0.0, 0.5, 1.0, 0.125))
        slopes = self.save("all_slopes.npy", "<f4", (2, 4), (0.0, 0.5, 1.0, 0.125, 0.25, 0.0, 2.0, 0.5))
        first, own = lse_of("--alibi", shared), lse_of("--alibi", slopes)
        self.assertEqual(first[:12], own[:12])
        for i in (0, 1, 2, 15, 16, 17):  # slope 0
            self.assertAlmostEqual(own[i], plain[i], delta=1e-5)
        self.assertNotEqual(first[12:], own[12:])
        # By the formula: batch 1, head 2, query 1, whose key is 38; slope 2.
        q = files.q[((3 + 1) * 4 + 2) * D:][:D]
        scores = [sum(x * y for x, y in zip(q, files.k[((40 + j) * 2 + 1) * D:][:D])) / math.sqrt(D) - 2 * abs(38 - j) for j in range(40)]
        self.assertAlmostEqual(own[(4 + 2) * 3 + 1], math.log(sum(map(math.exp, scores))), delta=1e-4)
        run(*files.write(), "--sinks", "--alibi", "--seed", 3, "--check")

    def test_refusals(self):
        for arguments, says in (
                (("--window", "5"), ["--window", "LEFT,RIGHT"]), (("--window", "-2,0"), ["--window", "-2,0", "-1 for no bound"]),
                (("--window", "3,x"), ["LEFT,RIGHT"]), (("--window", "1,2,3"), ["LEFT,RIGHT"]),
                (("--softcap", -1), ["softcap is -1"]), (("--softcap", "nan"), ["softcap"]), (("--softcap", 3, "--alibi"), ["softcap is 3", "alibi"]),
                (("--lengths-q", "5,x"), ["--lengths-q 5,x", "100,2000,7", ".npy"]), (("--lengths-q", "5,"), ["--lengths-q 5,"]),
                (("--lengths-q", ""), ["--lengths-q", "nothing"]), (("--lengths-k", "5,-1"), ["--lengths-k: number 1 is -1", "0 to 2147483647"]),
                (("--lengths-k", "2147483648"), ["number 0 is 2147483648"]), (("--lengths-k", "99999999999999999999"), ["--lengths-k 9999"]),
                (("--lengths-q", "2000000000,2000000000"), ["total_q is 4000000000"]),
                (("--lengths-q", "5", "--cu-seqlens-q", "0,5"), ["--lengths-q 5", "--cu-seqlens-q 0,5", "one of them"]),
                (("--cu-seqlens-k", "0,5,4"), ["--cu-seqlens-k: number 2 is 4, behind 5"]), (("--cu-seqlens-k", "1,5"), ["from 1", "ascending from 0"]),
                (("--cu-seqlens-k", "0"), ["--cu-seqlens-k: 1 numbers"]),
                (("--lengths-q", "5,6", "--lengths-k", "3"), ["--lengths-k has 1 batch entries, but --lengths-q has 2"]),
                (("--lengths-q", "5,6", "--batch", 3), ["--batch is 3", "--lengths-q has 2"]),
                (("--lengths-q", "5,60", "--seq-q", 59), ["--seq-q is 59", "entry 1 of --lengths-q has 60", "60 or more"]),
                (("--lengths-q", "5,6", "--seqused-k", "3,7"), ["--seqused-k: entry 1 is 7, but has 6 rows"]),
                (("--seq-q", 5, "--seqused-q", "6"), ["--seqused-q: entry 0 is 6, but has 5 rows; 0 to 5"]),
                (("--head-dim", 264), ["head_dim is 264", "multiples of 8 from 8 to 256"]), (("--head-dim", 0), ["head_dim is 0"]),
                (("--head-dim-v", 264), ["head_dim_v is 264", "0 (that of Q and K) and multiples of 8 from 8 to 256"]),
                (("--head-dim-v", 100), ["head_dim_v is 100"]), (("--head-dim-v", -8), ["head_dim_v is -8", "multiples of 8 from 8 to 256"]),
                (("--sinks", self.folder / "absent.npy"), ["absent.npy", "cannot be opened"]),
                (("--heads", 4, "--kv-heads", 1, "--sinks", self.save("s.npy", "<f4", (3,), (1, 2, 3))), ["--sinks", "(3,)", "(4,)"]),
                (("--heads", 4, "--kv-heads", 1, "--sinks", self.lengths(1, 2, 3, 4)), ["--sinks", "int32", "float32 of shape (4,)"]),
                (("--heads", 4, "--kv-heads", 1, "--alibi", self.save("a.npy", "<f4", (2, 4), range(8))), ["--alibi", "(2, 4)", "(4,) or (1, 4)"]),
                (("--lengths-q", self.save("f.npy", "<f4", (2,), (1, 2))), ["--lengths-q", "float32", "int32 of rank 1"]),
                (("--lengths-q", self.save("none.npy", "<i4", (0,), ())), ["--lengths-q", "no number"]),
                (("--lengths-q", self.save("two.npy", "<i4", (1, 1), (1,))), ["(1, 1)", "rank 1"])):
            for command in ("run", "check", "bench"):
                with self.subTest(command=command, arguments=arguments):
                    self.refused(*arguments, says=says, command=command)

    def test_files_that_do_not_go_with_lengths_are_refused(self):
        files = Files(self.folder, 2, 5, 9, 4, 2)
        packed, dense = self.packed_files(files, (5, 2), (9, 4)), files.write()
        both = ("--lengths-q", "5,2", "--lengths-k", "9,4")
        self.refused(*packed, says=["packed_q.npy", "rank 3", "--lengths-q or --cu-seqlens-q", "rank 4"])
        self.refused(*packed, "--lengths-q", "5,3", *both[2:], says=["--lengths-q: the lengths add up to 8", "packed_q.npy has 7 rows"])
        self.refused(*packed, *both[:2], says=["--lengths-q: the lengths add up to 7", "packed_k.npy has 13 rows"])
        self.refused(*packed, *both[:2], "--cu-seqlens-k", "0,9,12", says=["--cu-seqlens-k: the lengths add up to 12", "13 rows"])
        self.refused(*dense, *both, says=["--lengths-q: --q", "rank 3"])
        self.refused(*packed[:4], *dense[4:], *both, says=["--lengths-k: --v", "rank 3"])
        self.refused(*packed[:2], *dense[2:], "--lengths-q", "5,1,1", says=["--lengths-q has 3 batch entries", "k.npy has batch 2"])
        self.refused(*dense, "--seqused-q", "5,2,2", says=["--seqused-q has 3 batch entries", "q.npy has batch 2"])
        self.refused(*dense, "--seqused-q", "5,6", says=["--seqused-q: entry 1 is 6, but has 5 rows"])
        self.refused(*packed, *both, "--seq-q", 9, says=["--seq-q", "files have the shape"])
        (self.folder / "v.npy").write_bytes(pack_npy("<f2", (2, 9, 2, 84), bytes(2 * 9 * 2 * 84 * 2)))
        self.refused(*dense, says=["head_dim_v is 84", "multiples of 8 from 8 to 256"])

    def test_head_dimensions(self):
        for gpu in self.GPUS:
            for arguments, says in ((("--head-dim", 192, "--head-dim-v", 128), ["D=192 Dv=128", "d192_128_full"]), (("--head-dim", 256), ["D=256", "d256_full"]),
                                    (("--head-dim", 40, "--head-dim-v", 96), ["D=40 Dv=96", "d96_full"]), (("--head-dim", 64, "--head-dim-v", 128), ["d128_full"]),
                                    (("--head-dim", 200, "--head-dim-v", 136, "--sinks"), ["d256_general"])):
                text = run("--gpu", gpu, "--seq-q", 70, "--seq-kv", 130, "--heads", 2, "--kv-heads", 1, *arguments, "--check")
                for part in (*says, "PASS"):
                    self.assertIn(part, text)
        # V from a file has a head dimension of its own, and so has O.
        files = Files(self.folder, 1, 5, 9, 4, 2)
        dense = files.write()
        (self.folder / "v.npy").write_bytes(pack_npy("<f2", (1, 9, 2, 64), struct.pack(f"<{9 * 2 * 64}e", *values(9 * 2 * 64, 7))))
        o = self.folder / "o.npy"
        self.assertIn("PASS", run(*dense, "--out", o, "--check"))
        self.assertEqual(read_npy(o)[0]["shape"], (1, 5, 4, 64))

    def test_check(self):
        for gpu in self.GPUS:
            for arguments in (("--lengths-q", "150,20,0", "--sinks"), ("--full", "--seq-q", 150, "--window", "20,5", "--alibi")):
                text = fa4("check", "--driver", SIMULATOR, *self.SMALL, *arguments, "--gpu", gpu, "--seeds", 1)
                self.assertIn("CLEAN", text)
                self.assertIn("packed_kv=[150 20 0]" if "--sinks" in arguments else "window=20,5", text)


L2_BYTES = 100000  # of the driver below


class Bench(unittest.TestCase):
    """Against a driver that passes for a real one; that its times mean nothing is all the same here."""

    SMALL = ("bench", "--driver", GRAPHS, "--heads", 2, "--kv-heads", 1, "--seconds", 0.001, "--batch", 4, "--max-ctas", 4)

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def write_list(self, text):
        path = self.folder / "list.json"
        path.write_text(text)
        return path

    def test_the_simulated_gpu_is_not_measured(self):
        for arguments in (("--device", "sim"), ("--driver", SIMULATOR), ("--host", "--driver", SIMULATOR)):
            text = fa4("bench", *arguments, expect=2)
            self.assertIn("mean nothing for a GPU", text)
            self.assertIn("`fa4 time`", text)
        self.assertIn("stub library", fa4("bench", "--device", "gpu", "--driver", STUB, expect=3))

    def test_a_list(self):
        report = self.folder / "report.json"
        shapes = self.write_list('[{"seq_q": 3, "causal": true}, {"seq_q": 5, "seq_kv": 9, "head_dim": 64, "dtype": "bf16"}]')
        text = fa4(*self.SMALL, "--list", shapes, "--with-lse", "--json", report)
        self.assertNotIn("WRONG", text)
        rows = json.loads(report.read_text())["measured"]
        self.assertEqual([row["problem"] for row in rows],
                         [{"batch": 4, "seq_q": 3, "seq_kv": 3, "heads": 2, "kv_heads": 1, "head_dim": 128, "causal": True, "dtype": "fp16"},
                          {"batch": 4, "seq_q": 5, "seq_kv": 9, "heads": 2, "kv_heads": 1, "head_dim": 64, "causal": False, "dtype": "bf16"}])
        self.assertEqual([row["flop"] for row in rows], [4 * 4 * 2 * (1 + 2 + 3) * 128, 4 * 4 * 2 * 5 * 9 * 64])
        for row in rows:
            seconds = row["seconds"]
            self.assertTrue(0 < seconds["min"] <= seconds["p10"] <= seconds["median"] <= seconds["p90"])
            self.assertAlmostEqual(row["tflops"], row["flop"] / seconds["median"] * 1e-12)
            self.assertGreater((row["copies"] - 1) * row["bytes"] / row["copies"], L2_BYTES - 1)
            self.assertEqual(row["calls_per_replay"] % row["copies"], 0)
            self.assertGreaterEqual(row["replays"], 20)
            self.assertGreaterEqual(row["rows_checked"], 2 * row["copies"])
            self.assertLessEqual(row["max_error"], row["allowed_error"])

    def test_general_problems(self):
        """Rows are compared as the problem has them: of each option alone, one that it knew nothing of would be far off."""
        report = self.folder / "report.json"
        given = [{"lengths_q": [5, 0, 19], "causal": True, "batch": 3},
                 {"lengths_q": [4, 6], "lengths_k": [20, 9], "seqused_k": [3, 9], "batch": 2},
                 {"seq_q": 7, "seqused_q": [7, 0, 1, 2]},
                 {"seq_q": 40, "window": [3, 1]}, {"seq_q": 9, "seq_kv": 30, "causal": True, "top_left": True},
                 {"seq_q": 30, "softcap": 0.5}, {"seq_q": 4, "sinks": True}, {"seq_q": 40, "alibi": True}]
        text = fa4(*self.SMALL, "--list", self.write_list(json.dumps(given)),
                   "--with-lse", "--json", report)
        self.assertNotIn("WRONG", text)
        rows = json.loads(report.read_text())["measured"]
        for g, row in zip(given, rows):
            for key, value in g.items():
                self.assertEqual(row["problem"][key], value)
            self.assertLessEqual(row["max_error"], row["allowed_error"])
            self.assertGreaterEqual(row["rows_checked"], 2 * row["copies"])
        self.assertEqual(rows[0]["problem"]["lengths_k"], [5, 0, 19])
        self.assertNotIn("window", rows[0]["problem"])
        pairs = [15 + 190, 4 * 3 + 6 * 9, 7 * 10, 4 * (40 * 5 - (3 + 2 + 1) - 1), 4 * 45, 4 * 900, 4 * 16, 4 * 1600]
        self.assertEqual([row["flop"] for row in rows], [4 * 2 * n * 128 for n in pairs])
        slopes = self.folder / "slopes.npy"
        slopes.write_bytes(pack_npy("<f4", (4, 2), struct.pack("<8f", *(2.0 ** -i for i in range(8)))))
        text = fa4(*self.SMALL, "--seq-q", 30, "--alibi", slopes, "--window", "9,-1", "--sinks")
        self.assertIn("window=9,-1 sinks ALiBi by entry", text)
        self.assertNotIn("WRONG", text)

    def test_a_wrong_output_is_seen(self):
        with unittest.mock.patch.dict(os.environ, FA4_TEST_LOSE_LAUNCHES="1"):
            self.assertIn("WRONG", fa4(*self.SMALL, "--seq-q", 3, expect=1))
            self.assertIn("WRONG", fa4(*self.SMALL, "--lengths-q", "3,0,0,1", expect=1))

    def test_the_host(self):
        report = self.folder / "report.json"
        text = fa4("bench", "--host", "--driver", GRAPHS, "--seq-q", 3, "--heads", 1, "--kv-heads", 1, "--calls", 10, "--json", report)
        self.assertIn("parameter of 896 bytes", text)
        host = json.loads(report.read_text())["host"]
        self.assertAlmostEqual(host["difference_us"], host["fa4_forward"]["median_us"] - host["cuLaunchKernel"]["median_us"])

    def test_refusals(self):
        for text, says in (('[{"seqq": 1}]', 'entry 0 has "seqq": 1'), ('[{"seq_q": 1.5}]', 'entry 0 has "seq_q": 1.5'),
                           ('[{}, 3]', "entry 1 is 3"), ("{}", "no array"), ("[]", "no array"), ("[", "no JSON"),
                           ('[{"dtype": "fp32"}]', '"dtype": "fp32"'), ('[{"window": [1]}]', '"window": [1]'), ('[{"lengths_q": []}]', '"lengths_q": []'),
                           ('[{"lengths_q": [1.5]}]', '"lengths_q": [1.5]'), ('[{"sinks": 3}]', '"sinks": 3'), ('[{"softcap": "a"}]', '"softcap": "a"'),
                           ('[{}, {"softcap": -2}]', "softcap=-2: FA4_ERROR_INVALID_ARGUMENT: softcap is -2"), ('[{"lengths_k": [1, 2]}]', "--batch is 4")):
            self.assertIn(says, fa4(*self.SMALL, "--list", self.write_list(text), expect=2))
        self.assertIn("cannot be read", fa4(*self.SMALL, "--list", self.folder / "none", expect=2))
        self.assertIn("head_dim is 100", fa4(*self.SMALL, "--head-dim", 100, expect=2))
        self.assertIn("nothing to compute", fa4(*self.SMALL, "--seq-q", 0, expect=2))
        self.assertIn("nothing to compute", fa4(*self.SMALL, "--lengths-q", "0,0,0,0", expect=2))
        self.assertIn("--lengths-q excludes --table", fa4(*self.SMALL, "--table", "--lengths-q", "3,3,3,3", expect=2))


class Hazards(unittest.TestCase):
    """The happens-before checker, on the kernel as it is and on its PTX without the proxy fences."""
    shape = ("--seq-q", 130, "--heads", 2, "--kv-heads", 1, "--sms", 2)

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.mutant = self.folder / "mutant.ptx"
        self.mutant.write_text("".join(line for line in Path(PTX).read_text().splitlines(keepends=True) if "fence.proxy.async.shared::cta;" not in line))

    def check(self, *arguments, expect=0):
        return fa4("check", "--driver", SIMULATOR, *self.shape, *arguments, expect=expect)

    def test_clean(self):
        report = self.folder / "report.json"
        text = self.check("--seeds", 2, "--json", report)
        self.assertIn("CLEAN, 0 errors and 0 warnings", text)
        self.assertIn("execute in the order of their issue", text)
        found = json.loads(report.read_text())
        self.assertEqual((found["errors"], found["warnings"], found["findings"], found["fault"], found["difference"]), (0, 0, [], "", ""))
        self.assertEqual((found["seeds"], found["image"]), (2, "built in"))
        self.assertEqual(len(found["axioms"]), 1)

    def test_findings(self):
        report = self.folder / "report.json"
        text = self.check("--seeds", 0, "--image", self.mutant, "--json", report, expect=1)
        self.assertIn("missing proxy fence on sO stage", text)
        found = json.loads(report.read_text())
        self.assertGreater(found["errors"], 0)
        documented = {"severity", "kind", "kernel", "memory", "first", "second", "last_sync", "chain", "count", "cta", "cycle"}
        for finding in found["findings"]:
            self.assertEqual(set(finding), documented)
            self.assertEqual((finding["severity"], finding["kind"]), ("error", "missing proxy fence"))
            self.assertTrue(finding["kernel"].startswith("fa4_forward_f16_"))

    def test_models(self):
        """Without tcgen05 fences and wait::ld the kernel relies on what the hardware does beside the documents."""
        relaxed, report = self.folder / "relaxed.ptx", self.folder / "report.json"
        relaxed.write_text("".join(line for line in Path(PTX).read_text().splitlines(keepends=True)
                                   if "tcgen05.fence::" not in line and "tcgen05.wait::ld" not in line))
        text = self.check("--seeds", 2, "--independent-lanes", "--model", "silicon", "--image", relaxed, "--json", report)
        self.assertIn("under the model 'silicon'", text)
        found = json.loads(report.read_text())
        self.assertEqual((found["model"], found["errors"], found["warnings"], len(found["axioms"])), ("silicon", 0, 0, 3))
        self.assertIn("tcgen05.wait::ld is missing", self.check("--seeds", 0, "--image", relaxed, expect=1))
        self.assertIn("silicon", fa4("check", "--model", "hardware", expect=2))

    def test_the_image_as_a_file(self):
        """Compressed, with code for two architectures, of which the simulated GPU takes its own."""
        for gpu in ("sm_100", "sm_103"):
            self.assertIn("CLEAN", self.check("--seeds", 0, "--gpu", gpu, "--image", Path(PTX).with_name("fa4.fatbin")))

    def test_run(self):
        self.assertIn("CLEAN", run(*self.shape, "--hazards", "--check"))
        o = self.folder / "o.npy"
        text = run(*self.shape, "--hazards", "--image", self.mutant, "--out", o, expect=1)
        self.assertIn("missing proxy fence", text)
        self.assertFalse(o.exists())
        self.assertIn("PASS", run(*self.shape, "--image", self.mutant, "--check"))  # unwatched, nothing is seen of it

    def test_an_image_that_cannot_be_loaded_gets_no_verdict(self):
        ptx = Path(PTX).read_text()
        cubin = struct.pack("<4sBBBBB7xHHIQQQI12x", b"\x7fELF", 2, 1, 1, 65, 8, 2, 190, 1, 0, 0, 0, 100 << 8)
        text = ptx.encode().ljust(len(ptx) // 8 * 8 + 8, b"\0")

        def fatbinary(flags):
            entry = struct.pack("<HHIQIIIIQQ8xQ", 1, 1, 64, len(text), len(ptx), 0, 13, 100, 0, 1 << 21 | flags, 2 * len(ptx))
            return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry) + len(text)) + entry + text

        images = {"typo": (ptx.replace("tcgen05.wait::ld", "tcgen05.wayt::ld", 1), "wayt"),
                  "missing kernel": (ptx.replace("fa4_forward_bf16_d128_causal", "another_name"), "fa4_forward_bf16_d128_causal"),
                  "newer": (re.sub(r"(?m)^\.version .*$", ".version 99.0", ptx), "99.0"),
                  "old target": (re.sub(r"(?m)^\.target sm_100f", ".target sm_103a", ptx), "sm_103a"),
                  "other block": (re.sub(r"\.maxntid 512", ".maxntid 256", ptx), "256"),
                  "no text": ("\n.version 9.0\n.target sm_100f\n\xff\xfe\n", ""),
                  "cubin": (cubin.ljust(64, b"\0"), "cubin"),
                  "no LZ4": (fatbinary(0x2000), "LZ4 data of the entry at offset 16 is damaged"),
                  "no zstd": (fatbinary(0x8000), "zstd data of the entry at offset 16 is damaged"),
                  "another compression": (fatbinary(0x1000), "compression of the entry at offset 16 is not known"),
                  "cut": (fatbinary(0x8000)[:100], "cut"),
                  "cut cubin": (cubin[:40] + struct.pack("<QI6H", 4096, 0, 64, 56, 2, 64, 9, 8), "cut"),
                  "one byte": ("/", "target"),
                  "empty": ("", "empty")}
        report = self.folder / "report.json"
        for name, (content, says) in images.items():
            with self.subTest(name):
                image = self.folder / "image"
                image.write_bytes(content if isinstance(content, bytes) else content.encode("latin-1"))
                report.write_text("of an earlier run")
                text = self.check("--image", image, "--json", report, expect=2)
                self.assertIn(says, text)
                self.assertEqual(text.count("tcgen05.wayt"), name == "typo")  # the log of the load, once
                for verdict in ("CLEAN", "Verdict", "Findings", "Exact for"):
                    self.assertNotIn(verdict, text)
                found = json.loads(report.read_text())
                self.assertEqual(set(found), {"image", "model", "seeds", "not_run"})
                self.assertIn(says, found["not_run"])
                text = fa4("run", "--device", "sim", "--driver", SIMULATOR, *self.shape, "--hazards", "--image", image,
                           expect=2 if name in ("empty", "cut", "cut cubin", "one byte") else 3)
                self.assertNotIn("CLEAN", text)

    def test_a_kernel_that_faults_is_a_finding(self):
        trapping = self.folder / "trap.ptx"
        trapping.write_text(Path(PTX).read_text().replace("tcgen05.wait::ld.sync.aligned;", "trap;"))
        report = self.folder / "report.json"
        self.assertIn("NOT CLEAN", self.check("--full", "--image", trapping, "--json", report, expect=1))
        self.assertIn("trap", json.loads(report.read_text())["fault"])
        self.assertIn("NOT CLEAN", run(*self.shape, "--hazards", "--image", trapping, expect=1))

    def test_could_not_run(self):
        report = self.folder / "report.json"
        self.assertIn("cannot be opened", self.check("--image", self.folder / "none.ptx", "--json", report, expect=2))
        self.assertIn("cannot be opened", json.loads(report.read_text())["not_run"])
        self.assertIn("cannot be opened", run(*self.shape, "--image", self.folder / "none.ptx", expect=2))
        self.check("--scale", "nan", "--json", report, expect=2)
        self.assertIn("softmax_scale", json.loads(report.read_text())["not_run"])
        self.assertIn("cannot be written", self.check("--json", self.folder / "none" / "report.json", expect=2))


class Verify(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.report = Path(folder.name) / "report.json"

    def test_without_a_gpu_against_the_recorded_answers(self):
        text = fa4("verify", "--device", "sim", "--driver", SIMULATOR, "--json", self.report)
        report = json.loads(self.report.read_text())
        self.assertIn("0 findings", text)
        self.assertEqual(report["wrong"], [])
        self.assertIn("H200", report["recorded"]["device"])
        self.assertGreater(report["summary"]["equal"], 1900)
        self.assertEqual(set(report), {"fa4", "toolkit", "recorded", "rows", "calls", "attention", "wrong", "summary"})

    def test_with_a_gpu_every_row_that_it_has(self):
        # A second simulated GPU stands in for the real one.
        text = fa4("verify", "--gpu-driver", SIMULATOR, "--driver", SIMULATOR, "--rows", "tcgen05", "--json", self.report)
        report = json.loads(self.report.read_text())
        self.assertIn("rows on the GPU", text)
        self.assertGreater(len(report["rows"]), 100)
        self.assertTrue(all(row["equal"] and row["gpu"] == row["simulated"] for row in report["rows"]))

    def test_no_gpu(self):
        self.assertIn("absent.so", fa4("verify", "--device", "gpu", "--gpu-driver", "/absent.so", "--driver", SIMULATOR, expect=3))
        self.assertIn("No GPU", fa4("verify", "--gpu-driver", "/absent.so", "--driver", SIMULATOR, "--rows", "add.s32"))
        self.assertIn("absent.so", fa4("verify", "--device", "sim", "--driver", "/absent.so", expect=3))

    def test_one_simulated_gpu(self):
        for gpu, rows in (("sm_90", "wgmma"), ("sm_100", "tcgen05"), ("sm_103", "tcgen05"), ("sm_103", "add.s32")):
            fa4("verify", "--device", "sim", "--driver", SIMULATOR, "--gpu", gpu, "--rows", rows, "--json", self.report)
            self.assertEqual(json.loads(self.report.read_text())["wrong"], [])
        for gpu, rows in (("sm_90", "tcgen05"), ("sm_100", "wgmma")):
            self.assertIn(f"no row of {gpu}", fa4("verify", "--device", "sim", "--driver", SIMULATOR, "--gpu", gpu, "--rows", rows, expect=2))

    def test_rows_that_do_not_exist(self):
        self.assertIn("frobnicate", fa4("verify", "--device", "sim", "--driver", SIMULATOR, "--rows", "frobnicate", expect=2))


class Time(unittest.TestCase):
    """Predictions from the machine code, where there is an nvdisasm."""
    SHAPE = ("--driver", SIMULATOR, "--seq-q", 256, "--seq-kv", 4096, "--heads", 1, "--kv-heads", 1)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.report = Path(folder.name) / "report.json"

    def predict(self, *arguments):
        result = subprocess.run([FA4, "time", *map(str, self.SHAPE), *map(str, arguments), "--json", self.report], capture_output=True, text=True, timeout=120)
        if result.returncode == 2 and "pip install nvidia-cuda-nvdisasm" in result.stderr:
            self.skipTest("there is no nvdisasm")
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout, json.loads(self.report.read_text())

    def test_where_the_cycles_go(self):
        for mask in ((), ("--causal",)):
            text, report = self.predict(*mask)
            self.assertIn("the cycles are predicted from the machine code, none was measured", text)
            for part in ("softmax 0", "p_o_rescale[0]", "MUFU", "The loop of dependencies"):
                self.assertIn(part, text)
            # One task of 32 blocks and 2 stages; the tensor core alone needs 1024 cycles a tile.
            self.assertEqual((report["tiles"], report["tasks"], report["predicted"], report["ambiguous_matches"]), (64, 1, True, 0))
            self.assertTrue(64 * 1024 < report["cycles_low"] <= report["cycles"] <= report["cycles_high"])
            self.assertAlmostEqual(report["tensor_core_share"], 64 * 1024 / report["cycles"])
            for role in report["roles"]:
                self.assertAlmostEqual(sum(role["cycles"].values()), report["cycles"], delta=1)
            self.assertGreater(sum(part["cycles"] for part in report["loop"]), 2048)

    def test_hopper(self):
        for arguments in (("--gpu", "sm_90"), ("--chip", "h200")):
            for dim, mask in ((64, "--causal"), (128, None)):
                text, report = self.predict(*arguments, "--head-dim", dim, *filter(None, [mask]))
                self.assertEqual((report["gpu"], report["tasks"]), ("H200", 1))
                self.assertIn("consumer 0", text)
                # Its tensor core does 4096 FLOP a cycle: 2048 for both products of a tile of 128 x 128 x 128.
                self.assertAlmostEqual(report["tensor_core_share"], report["tiles"] * 2048 / report["cycles"], delta=0.001)
                self.assertGreater(report["tensor_core_share"], 0.5)

    def test_numbers_that_a_gpu_measured(self):
        numbers = self.report.with_name("verify.json")
        verified = {"gpu": {"name": "NVIDIA B200", "compute_capability": "10.0"}, "times": {"measured": {"EX2": 15.7, "MUFU latency": 18.2}}}
        numbers.write_text(json.dumps(verified))
        _, table = self.predict()
        text, report = self.predict("--parameters", numbers)
        self.assertIn("2 as measured on an NVIDIA B200", text)
        self.assertEqual([report["numbers"][name]["source"] for name in ("EX2", "MUFU latency")], 2 * ["measured on an NVIDIA B200"])
        self.assertEqual([report["numbers"][name]["value"] for name in ("EX2", "MUFU latency", "ALU")], [16, 18, 2])
        self.assertGreater(report["cycles"], table["cycles"])
        self.assertTrue(any("MUFU latency" in v["with"] for v in table["variations"]))
        self.assertFalse(any("MUFU latency" in v["with"] for v in report["variations"]))
        # Nothing beside MMAs: no change.
        numbers.write_text(json.dumps({**verified, "times": {"measured": {"beside MMAs, arithmetic once every": 1}}}))
        self.assertEqual(self.predict("--parameters", numbers)[1]["cycles"], table["cycles"])
        numbers.write_text(json.dumps({**verified, "times": {"measured": {"beside MMAs, arithmetic once every": 4}}}))
        self.assertGreater(self.predict("--parameters", numbers)[1]["cycles"], table["cycles"])
        self.assertIn("compute capability 10.0, where H200 has 9.0", fa4("time", *self.SHAPE, "--chip", "h200", "--parameters", numbers, expect=2))
        good = json.dumps(verified)
        for wrong, sentence in (("frobnication", "no number 'frobnication'"), ("EX2", "0.25")):
            numbers.write_text(good.replace('"EX2": 15.7', f'"{wrong}": 0.25'))
            self.assertIn(sentence, fa4("time", *self.SHAPE, "--parameters", numbers, expect=2))
        for text in ("", "[]", "{}", '{"times": 3}', good.replace("15.7", "null"), good.replace("15.7", '"x"'), good.replace('"10.0"', "10.0"),
                     good.replace('"NVIDIA B200"', "5"), good.replace('"gpu"', '"device"'), good.replace('"compute_capability"', '"cc"')):
            numbers.write_text(text)
            with self.subTest(text=text):
                self.assertIn("no report of `fa4 verify --json`", fa4("time", *self.SHAPE, "--parameters", numbers, expect=2))

    def test_exponentials_are_computed_as_asked(self):
        for gpu, exp2, kernel in (("sm_100", "auto", "fa4_forward_f16_d128_full_polynomial"), ("sm_100", "mufu", "fa4_forward_f16_d128_full"),
                                  ("sm_103", "auto", "fa4_forward_f16_d128_full"), ("sm_103", "polynomial", "fa4_forward_f16_d128_full_polynomial"),
                                  ("sm_90", "mufu", "fa4_forward_f16_d128_full")):
            with self.subTest(gpu=gpu, exp2=exp2):
                self.assertEqual(self.predict("--gpu", gpu, "--exp2", exp2)[1]["kernel"], kernel)
        self.assertIn("the Hopper kernels accept FA4_EXP2_AUTO", fa4("time", *self.SHAPE, "--gpu", "sm_90", "--exp2", "polynomial", expect=2))
        self.assertIn("fa4_forward_f16_d128_full, ", fa4("run", "--device", "sim", *self.SHAPE, "--exp2", "mufu", "--check"))

    def test_the_same_twice(self):
        self.assertEqual(self.predict()[1], self.predict("--threads", 2)[1])

    def test_a_recorded_program_takes_the_cycles_that_it_takes_here(self):
        _, here = self.predict("--sms", 1)
        record = self.report.with_name("record")
        subprocess.run([FA4, "run", "--device", "sim", *map(str, self.SHAPE), "--sms", "1"], env={**os.environ, "FA4SIM_RECORD": str(record)}, check=True,
                       capture_output=True, timeout=60)
        fa4("time", "--record", record, "--cubin", Path(PTX).with_suffix(".cubin"), "--json", self.report)
        there = json.loads(self.report.read_text())
        self.assertEqual(there["kernel"], "fa4_forward_f16_d128_full_polynomial")
        for part in ("cycles", "cycles_low", "cycles_high", "roles", "loop"):
            self.assertEqual(here[part], there[part])
        record.write_bytes(record.read_bytes()[:-7])
        self.assertIn("cut short", fa4("time", "--record", record, "--cubin", Path(PTX).with_suffix(".cubin"), expect=3))
        self.assertIn("--launch 4", fa4("time", "--record", self.recorded(record), "--launch", 4, "--cubin", PTX, expect=2))
        self.assertIn("needs --cubin", fa4("time", "--record", record, expect=2))
        self.assertIn("no record of launches", fa4("time", "--record", PTX, "--cubin", PTX, expect=3))

    def recorded(self, path):
        subprocess.run([FA4, "run", "--device", "sim", *map(str, self.SHAPE)], env={**os.environ, "FA4SIM_RECORD": str(path)}, check=True, capture_output=True, timeout=60)
        return path

    def test_pictures(self):
        svg, trace = self.report.with_suffix(".svg"), self.report.with_suffix(".trace")
        _, report = self.predict("--causal", "--svg", svg, "--trace", trace)
        picture = xml.dom.minidom.parse(str(svg))
        titles = [t.firstChild.data for t in picture.getElementsByTagName("title")]
        for part in ("S0 = Q K^T", "O1 += P V", "softmax 0 softmax of a masked block", "softmax 1 softmax of a block", "kv.full[0]", "s_ready"):
            self.assertTrue(any(part in t for t in titles), part)
        # Hopper's consumers, each with its products.
        hopper = svg.with_name("hopper.svg")
        for arguments, parts in ((("--causal",), ("S1 = Q K^T", "O1 += P V", "consumer 0 softmax of a masked block", "consumer 1 softmax of a block")),
                                 (("--head-dim", 64), ("S2 = Q K^T", "O2 += P V", "consumer 2 softmax of a block"))):
            self.predict("--gpu", "sm_90", *arguments, "--svg", hopper)
            titles_there = [t.firstChild.data for t in xml.dom.minidom.parse(str(hopper)).getElementsByTagName("title")]
            for part in parts:
                self.assertTrue(any(part in t for t in titles_there), part)
        tracks = {}
        for event in json.loads(trace.read_text())["traceEvents"]:
            if event["ph"] == "X":
                tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
        self.assertGreater(len(tracks), 16)
        for slices in tracks.values():  # slices of a track follow each other
            slices.sort()
            self.assertTrue(all(a[1] <= b[0] + 1e-9 for a, b in zip(slices, slices[1:])))
        self.assertLessEqual(max(s[-1][1] for s in tracks.values()), report["cycles"] / 1000 + 1e-9)

    def test_the_readme_shows_the_main_job_as_it_is_predicted(self):
        # Another assembler may move a cycle here and there; what happens, and how often, is the same.
        for picture, mask in (("time-full.svg", ()), ("time-causal.svg", ("--causal",))):
            fresh = self.report.with_name(picture)
            result = subprocess.run([FA4, "time", "--driver", SIMULATOR, *mask, "--svg", fresh], capture_output=True, text=True, timeout=120)
            if result.returncode == 2 and "pip install nvidia-cuda-nvdisasm" in result.stderr:
                self.skipTest("there is no nvdisasm")
            self.assertEqual(result.returncode, 0, result.stderr)
            shown = (Path(__file__).parents[2] / "docs" / picture).read_text()
            words = lambda svg: sorted(w for w in re.findall(r"<text[^>]*>([^<]*)", svg) if not w.isdigit())
            last = lambda svg: max(int(n) for n in re.findall(r"to (\d+) \(", svg))
            self.assertEqual(words(shown), words(fresh.read_text()))
            self.assertAlmostEqual(last(shown) / last(fresh.read_text()), 1, delta=0.03)

    def test_what_predictions_were_held_against(self):
        held = json.loads((Path(__file__).parents[1] / "time/held_out.json").read_text())
        errors = [abs(row["predicted"] / row["measured"] - 1) for row in held if row["round"] == max(row["round"] for row in held)]
        text, _ = self.predict("--chip", "h200")
        self.assertIn(f"{len(errors)} launches that nothing was fitted to", text)
        self.assertIn(f"off by {100 * sum(errors) / len(errors):.1f} % in the mean, {100 * max(errors):.1f} % at most", text)
        self.assertIn("nobody has timed a Blackwell", self.predict()[0])

    def test_no_nvdisasm(self):
        result = subprocess.run([FA4, "time"], env={**os.environ, "FA4_NVDISASM": "/absent"}, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 2)
        self.assertIn("pip install nvidia-cuda-nvdisasm", result.stderr)

    def test_refusals(self):
        for arguments, word in ((("--chip", "b100"), "b200"), (("--chip", "h200", "--gpu", "sm_100"), "goes with --gpu sm_90"), (("--cta", 7), "CTAs 0 to 0"), (("--heads", 0), "heads"), (("--image", PTX), "both PTX and a cubin")):
            with self.subTest(arguments=arguments):
                self.assertIn(word, fa4("time", *self.SHAPE, *arguments, expect=2))


class Info(unittest.TestCase):
    def test_the_simulated_gpu_can_be_another(self):
        self.assertIn("fa4 simulated GPU (sm_100)", fa4("info", "--driver", SIMULATOR))
        for gpu, capability, sms, image in (("sm_90", "9.0", "132", "Hopper"), ("sm_100", "10.0", "148", "Blackwell"), ("sm_103", "10.3", "148", "Blackwell")):
            self.assertRegex(fa4("info", "--driver", SIMULATOR, "--gpu", gpu),
                             rf"fa4 simulated GPU \({gpu}\) +{re.escape(capability)} +{sms} .* {image} ")
        self.assertIn("sm_80", fa4("info", "--driver", SIMULATOR, "--gpu", "sm_80", expect=2))

    def test_info(self):
        text = fa4("info", "--driver", SIMULATOR)
        for part in ("simulated", "sm_100f cubin", "fa4_forward_f16_d128_full", "fa4_forward_bf16_d128_causal", "setmaxnreg", "softmax 0",
                     "sKV slot 2", "P1", "O1", "p_o_rescale", "256", "TMABar", "TCGen05Bar", "MBarrier", "corr_epi.empty"):
            self.assertIn(part, text)
        for part in ("fa4_forward_bf16_d64_general", "The general kernels take", "Roles of a CTA: Blackwell, head dimension 128, general", "scheduler",
                     "Barriers besides: Hopper, head dimension 64, general", "task.full", "task record 3"):
            self.assertIn(part, text)
        # Each class of head dimensions of each architecture, and what V has where it differs.
        for architecture in ("Blackwell", "Hopper"):
            for dims in ("64", "96", "128", "192, V 128", "256"):
                for title in ("Roles of a CTA", "Shared-memory map", "Barriers"):
                    self.assertIn(f"{title}: {architecture}, head dimension {dims}", text)
        self.assertIn("up to 256, fp16 and bf16", text)
        plain = text[text.index("Barriers: Hopper, head dimension 128 ("):text.index("Roles of a CTA: Hopper, head dimension 128, general")]
        self.assertNotIn("task.full", plain)  # no barrier that the kernel has not
        stages = re.findall(r"^  [\w.]+ +(\d+)  (?:MBarrier|TMABar|TCGen05Bar) ", text, flags=re.M)
        self.assertGreater(len(stages), 30)
        self.assertNotIn("0", stages)
        # Every kernel with its registers and shared memory, without stack and spills.
        rows = re.findall(r"^  (fa4_forward_\w+) +sm_\d+\w +(\d+) +(\d+) +(\d+) +(\d+) +0 B +0 B +(\d+) of 232448 B$", text, flags=re.M)
        self.assertEqual(len(rows), len(re.findall(r"^  fa4_forward_", text, flags=re.M)))
        self.assertEqual({(qk, v) for _, qk, v, *_ in rows}, {("64", "64"), ("96", "96"), ("128", "128"), ("192", "128"), ("256", "256")})
        for name, qk, v, threads, registers, shared in rows:
            self.assertIn(f"_d{qk}_" if qk == v else f"_d{qk}_{v}_", name)
            self.assertLessEqual(int(threads) * int(registers), 65536, name)
            self.assertTrue(0 < int(shared) <= 232448, name)

    def test_every_class_of_this_file_is_run(self):
        parts = re.search(r"foreach part : \[(.*?)\]", Path(__file__).with_name("meson.build").read_text())[1]
        classes = [name for name, value in globals().items() if isinstance(value, type) and issubclass(value, unittest.TestCase)]
        self.assertEqual(sorted(re.findall(r"\w+", parts)), sorted(classes))

    def test_version(self):
        self.assertRegex(fa4("--version"), r"^fa4 \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[6:])
