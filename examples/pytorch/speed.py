# SPDX-License-Identifier: Apache-2.0
"""How fast fa4 is beside others on this GPU: cuDNN, FlashAttention-4 where its Python package is installed, and more by --also.

    python3 examples/pytorch/speed.py [--also NAME=FILE.py] [--dtype bf16] [--tokens 32768] [--json FILE]

24 problems: head dimension 128 and 64, 16/16 and 32/8 heads, lengths 1024, 4096, 16384, full and causal. Each implementation's
calls are captured in a CUDA graph, so that no host time counts, and the graphs are replayed in turn, so that clock and
temperature are the same for all; the median counts. FLOP: 4 for each column of the head dimension and pair of query and key,
half of them if causal. The first head of the first sequence and the last of the last are compared with attention in float64;
an output that is off by more than 0.02 there ends the script with 1. FILE.py defines make(q, k, v, o, lse, causal, scale),
which returns a function that launches on the current stream; tensors are (batch, sequence, heads, head dimension), lse is
(batch, heads, sequence)."""
import argparse
import importlib.util
import json
import math
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import fa4_torch

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
CALLS, ROUNDS = 10, 9  # of a graph; of replays of every graph
TOLERANCE = 0.02       # of O, whose values reach 4 and which bf16 rounds by up to 0.008 there


def cudnn(q, k, v, o, lse, causal, scale):
    def call():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            out = F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), is_causal=causal, scale=scale,
                                                 enable_gqa=q.shape[2] != k.shape[2])
        return out.transpose(1, 2)
    return call


def flash_attention_4(function):
    def make(q, k, v, o, lse, causal, scale):
        def call():
            result = function(q, k, v, softmax_scale=scale, causal=causal)
            return result[0] if isinstance(result, tuple) else result
        return call
    return make


def implementations(also):
    """{name: make}; ours is "fa4"."""
    found = {"fa4": fa4_torch.make, "cuDNN": cudnn}
    try:
        from flash_attn.cute.interface import flash_attn_func
        found["FlashAttention-4"] = flash_attention_4(flash_attn_func)
    except ImportError as error:
        print(f"without FlashAttention-4: {error}")
    for name, file in (x.split("=", 1) for x in also):
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found[name] = module.make
    return found


def captured(call, o):
    """A graph of CALLS calls, and where their output is: what call returned, or o."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            result = call()
    return graph, o if result is None else result


def exact(q, k, v, causal, scale):
    """Of the first head of the first sequence and of the last of the last."""
    outputs = []
    for i in (0, -1):
        scores = q[i, :, i].double() @ k[i, :, i].double().T * scale
        if causal:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
        outputs.append(torch.softmax(scores, 1) @ v[i, :, i].double())
    return outputs


def largest_error(o, expected):
    """Infinite where O is no number."""
    errors = [(o[i, :, i].double() - e).abs().nan_to_num(nan=math.inf).max().item() for i, e in zip((0, -1), expected)]
    return max(errors)


def milliseconds(graph):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / CALLS


def measure(makes, dtype, tokens, dim, heads, kv_heads, length, causal):
    torch.manual_seed(1)
    batch, scale = max(1, tokens // length), dim ** -0.5
    q, k, v = (torch.randn(batch, length, n, dim, device="cuda", dtype=dtype) for n in (heads, kv_heads, kv_heads))
    lse = torch.empty(batch, heads, length, device="cuda")
    graphs, outputs = {}, {}
    for name, make in makes.items():
        o = torch.full_like(q, math.nan)
        graphs[name], outputs[name] = captured(make(q, k, v, o, lse, causal, scale), o)
        graphs[name].replay()
    expected = exact(q, k, v, causal, scale)
    errors = {name: largest_error(o, expected) for name, o in outputs.items()}
    times = {name: [] for name in graphs}
    for _ in range(ROUNDS):
        for name, graph in graphs.items():
            times[name].append(milliseconds(graph))
    flop = 4 * batch * heads * length * length * dim * (0.5 if causal else 1)
    return {name: flop / statistics.median(t) / 1e9 for name, t in times.items()}, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--also", action="append", default=[], metavar="NAME=FILE.py")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--tokens", type=int, default=32768)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    makes = implementations(arguments.also)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN "
          f"{torch.backends.cudnn.version()}; TFLOP/s, {arguments.dtype}, {arguments.tokens} tokens")
    print(f"{'problem':32}" + "".join(f"{name:>18}" for name in makes) + "   fa4 / best other   largest error of fa4, of all")
    rows, ratios, wrong = [], [], []
    for dim in (128, 64):
        for heads, kv_heads in ((16, 16), (32, 8)):
            for length in (1024, 4096, 16384):
                for causal in (False, True):
                    tflops, errors = measure(makes, DTYPES[arguments.dtype], arguments.tokens, dim, heads, kv_heads, length,
                                             causal)
                    ratio = tflops["fa4"] / max(t for name, t in tflops.items() if name != "fa4")
                    problem = f"D={dim} {heads}/{kv_heads} heads, {length} {'causal' if causal else 'full'}"
                    print(f"{problem:32}" + "".join(f"{t:18.1f}" for t in tflops.values()) +
                          f"{ratio:19.3f}   {errors['fa4']:.2g}, {max(errors.values()):.2g}", flush=True)
                    wrong += [f"{problem}: {name} is off by {e:.2g}" for name, e in errors.items() if not e <= TOLERANCE]
                    rows.append({"head_dim": dim, "heads": heads, "kv_heads": kv_heads, "length": length, "causal": causal,
                                 "tflops": tflops, "ratio": ratio, "errors": errors})
                    ratios.append(ratio)
    print(f"fa4 beside the best other: lowest {min(ratios):.3f}, geometric mean "
          f"{math.exp(statistics.mean(map(math.log, ratios))):.3f}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
