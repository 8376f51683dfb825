# SPDX-License-Identifier: Apache-2.0
"""A program that was compiled with the first fa4.h runs with today's library, and gets the bits that the same program compiled with
today's header gets: first_abi_test.py FIRST TODAY. FA4SIM_GPU says on which GPU."""
import math
import struct
import subprocess
import sys

BATCH, SEQ_Q, Q_HEADS = 2, 70, 4
FIRST_BYTES = 296


def run(program):
    """Bytes of the program's params struct, and O and the LSE of each problem."""
    result = subprocess.run([program], check=True, capture_output=True, timeout=300)
    size, _, rest = result.stdout.partition(b"\n")
    outputs = {}
    for dtype in ("fp16", "bf16"):
        for mask in ("full", "causal"):
            for dim in (64, 128):
                o, rest = rest[:BATCH * SEQ_Q * Q_HEADS * dim * 2], rest[BATCH * SEQ_Q * Q_HEADS * dim * 2:]
                lse, rest = rest[:BATCH * Q_HEADS * SEQ_Q * 4], rest[BATCH * Q_HEADS * SEQ_Q * 4:]
                outputs[dtype, mask, dim] = o, lse
    assert not rest, f"{len(rest)} bytes too many"
    return int(size), outputs


(first_bytes, first), (today_bytes, today) = map(run, sys.argv[1:])
assert first_bytes == FIRST_BYTES < today_bytes, (first_bytes, today_bytes)
for problem, (o, lse) in today.items():
    written = struct.unpack(f"<{len(lse) // 4}f", lse)
    assert all(map(math.isfinite, written)), f"{problem}: an LSE was not written"
    infinite = 0x7c00 if problem[0] == "fp16" else 0x7f80
    assert all(bits & infinite != infinite for bits in struct.unpack(f"<{len(o) // 2}H", o)), f"{problem}: an element of O was not written"
    assert first[problem] == (o, lse), f"{problem}: other bits"
for dtype, mask, dim in today:  # the fields arrive: every problem has its own answer
    assert today[dtype, "full", dim] != today[dtype, "causal", dim]
print(f"{len(today)} problems, structs of {first_bytes} and {today_bytes} bytes: the same bits of O and LSE")
