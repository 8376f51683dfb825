# SPDX-License-Identifier: Apache-2.0
"""fa4 beside torch.nn.functional.scaled_dot_product_attention on a GPU, eagerly, under torch.compile and in a CUDA graph:

    python3 examples/pytorch/compare.py [--library libfa4.so] [--backend inductor]

Both are compared with attention in float64. What is allowed is twice the error of attention in the same precision (fp32 scores
and sums, P and O rounded) plus half a rounding step at the largest value. Ends with 0 if all is right."""
import argparse
import math
import sys

import torch
import torch.nn.functional as F

import fa4_torch

# batch, seq_q, seq_kv, heads, kv_heads, head_dim, causal, dtype, layout, scale
FULL, CAUSAL = False, True
CASES = [
    (2, 1024, 1024, 16, 16, 128, FULL, torch.bfloat16, "bshd", None),
    (2, 1024, 1024, 16, 16, 128, CAUSAL, torch.bfloat16, "bshd", None),
    (1, 1000, 1000, 32, 8, 128, CAUSAL, torch.float16, "bhsd", None),
    (3, 333, 333, 12, 4, 64, FULL, torch.float16, "bhsd", 0.2),
    (2, 777, 777, 8, 1, 64, CAUSAL, torch.bfloat16, "bshd", None),
    (1, 130, 1500, 8, 2, 128, CAUSAL, torch.float16, "bshd", None),  # queries behind a cache of keys
    (4, 1, 900, 32, 4, 128, FULL, torch.bfloat16, "bshd", None),
]


def bhsd(x, layout):
    return x if layout == "bhsd" else x.transpose(1, 2)


def mask(q, k, causal):
    """True where a query sees a key, aligned to the bottom right; (seq_q, seq_kv)."""
    seq_q, seq_kv = q.shape[2], k.shape[2]
    everything = torch.ones(seq_q, seq_kv, dtype=torch.bool, device=q.device)
    return everything.tril(seq_kv - seq_q) if causal else everything


def by_hand(q, k, v, causal, scale, compute, rounded):
    """Attention of (batch, heads, sequence, head dimension) in `compute`, P rounded to `rounded`; and the LSE."""
    ratio = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(ratio, 1).to(compute) for x in (k, v))
    scores = (q.to(compute) @ k.transpose(2, 3)) * scale
    scores = scores.masked_fill(~mask(q, k, causal), float("-inf"))
    highest = scores.amax(3, keepdim=True)
    p = (scores - highest).exp()
    o = (p.to(rounded).to(compute) @ v) / p.sum(3, keepdim=True)
    return o.to(rounded), torch.logsumexp(scores, 3)


def largest_error(x, expected):
    return (x.double() - expected.double()).abs().nan_to_num(math.inf).max().item()


def inputs(case, seed):
    b, seq_q, seq_kv, h, h_kv, d, _, dtype, layout, _ = case
    generator = torch.Generator("cuda").manual_seed(seed)
    def tensor(seq, heads):
        shape = (b, seq, heads, d) if layout == "bshd" else (b, heads, seq, d)
        return torch.randn(shape, generator=generator, device="cuda", dtype=torch.float32).to(dtype)
    return tensor(seq_q, h), tensor(seq_kv, h_kv), tensor(seq_kv, h_kv)


def sdpa(q, k, v, causal, scale):
    grouped = q.shape[1] != k.shape[1]
    if causal and q.shape[2] != k.shape[2]:  # is_causal is aligned to the top left
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask(q, k, True), scale=scale, enable_gqa=grouped)
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=grouped)


def compiled_error(case, backend):
    """Of a compiled function around attention against the same run eagerly: both are the same kernel, so 0 is expected but
    for what the compiler makes of the rest, which is exact here."""
    *_, causal, _, layout, scale = case
    def block(q, k, v):
        o, lse = fa4_torch.attention(q * 2, k * 0.5, v, causal=causal, scale=scale, layout=layout, return_lse=True)
        return o.reshape(o.shape[0], -1) * 2, lse + 1
    q, k, v = inputs(case, 5)
    torch._dynamo.reset()
    got = torch.compile(block, backend=backend, fullgraph=True)(q, k, v)
    return max(largest_error(a, b) for a, b in zip(got, block(q, k, v)))


def graph_error(case):
    """Of replays of a captured call with other data, against eager calls on the same data."""
    *_, causal, _, layout, scale = case
    held = inputs(case, 6)
    fa4_torch.prepare()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o, lse = fa4_torch.attention(*held, causal=causal, scale=scale, layout=layout, return_lse=True)
    worst = 0.0
    for seed in (7, 8):
        for to, new in zip(held, inputs(case, seed)):
            to.copy_(new)
        o.fill_(math.nan)
        lse.fill_(math.nan)
        graph.replay()
        want = fa4_torch.attention(*held, causal=causal, scale=scale, layout=layout, return_lse=True)
        worst = max(worst, largest_error(o, want[0]), largest_error(lse, want[1]))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", help="libfa4.so")
    parser.add_argument("--backend", default="inductor", help="of torch.compile; aot_eager needs no compiler")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("compare.py: PyTorch sees no GPU; the simulated one has no PyTorch")
    fa4_torch.load(arguments.library)
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}; largest errors against float64")
    print(f"{'problem':58} {'allowed':>9} {'fa4':>9} {'sdpa':>9} {'LSE':>9} {'compiled':>9} {'graph':>9}")
    right = True
    for case in CASES:
        b, seq_q, seq_kv, h, h_kv, d, causal, dtype, layout, scale = case
        q, k, v = inputs(case, 1)
        o, lse = fa4_torch.attention(q, k, v, causal=causal, scale=scale, layout=layout, return_lse=True)
        ours = bhsd(o, layout)
        heads_first = [bhsd(x, layout) for x in (q, k, v)]
        factor = d ** -0.5 if scale is None else scale
        exact, exact_lse = by_hand(*heads_first, causal, factor, torch.float64, torch.float64)
        same, same_lse = by_hand(*heads_first, causal, factor, torch.float32, dtype)
        half_step = (2.0 ** -11 if dtype == torch.float16 else 2.0 ** -8) * min(1.0, exact.abs().max().item())
        allowed = 2 * largest_error(same, exact) + half_step
        allowed_lse = 2 * largest_error(same_lse, exact_lse) + 2.0 ** -20 * max(1.0, exact_lse.abs().max().item())
        error, lse_error = largest_error(ours, exact), largest_error(lse, exact_lse)
        theirs = largest_error(sdpa(*heads_first, causal, scale), exact)
        compiled, graph = compiled_error(case, arguments.backend), graph_error(case)
        torch.library.opcheck(torch.ops.fa4.forward.default, (q, k, v, causal, scale, layout, True),
                              test_utils=("test_schema", "test_faketensor"))
        good = error <= allowed and lse_error <= allowed_lse and compiled == 0 and graph == 0
        right &= good
        name = f"{str(dtype)[6:]} {'causal' if causal else 'full'} B={b} S={seq_q}/{seq_kv} H={h}/{h_kv} D={d} {layout}"
        print(f"{name:58} {allowed:9.2g} {error:9.2g} {theirs:9.2g} {lse_error:9.2g} {compiled:9.2g} {graph:9.2g}"
              f"{'' if good else '  WRONG'}", flush=True)
    for what, call in (("head dimension 100", lambda x: fa4_torch.attention(x, x, x)),
                       ("float32", lambda x: fa4_torch.attention(x.float(), x.float(), x.float()))):
        try:
            call(torch.zeros(1, 8, 1, 100, device="cuda", dtype=torch.float16))
            right = False
            print(f"{what} was not refused  WRONG")
        except (ValueError, fa4_torch.Fa4Error) as refusal:
            print(f"refused: {refusal}")
    print("compiled, graph: against eager calls on the same data; 0 is expected")
    print("all right" if right else "WRONG")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
