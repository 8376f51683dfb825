#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From process start to the first result on a GPU: a program that makes a context, copies tensors and launches an empty
kernel, against one that does the same with fa4_create and fa4_forward. Whole process times, in turn:

    tools/cli/first_result.py BARE FA4 [--runs 20] [--driver LIBRARY] [--device N]

BARE and FA4 are build/tools/cli/first_result_bare and first_result_fa4. Ends with 77 where there is no GPU."""
import argparse
import statistics
import subprocess
import sys
import time


def run(program, arguments):
    """Milliseconds of the whole process, and of its steps as it says."""
    begin = time.perf_counter()
    result = subprocess.run([program, arguments.driver, str(arguments.device)], capture_output=True, text=True, timeout=120)
    whole = (time.perf_counter() - begin) * 1e3
    if result.returncode:
        print(f"{program}: {result.stderr.strip()}")
        sys.exit(77 if "cannot open the CUDA driver library" in result.stderr else 1)
    steps = {name: float(value) for name, value in (line.split() for line in result.stdout.splitlines())}
    return {"whole process": whole, **steps}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs=2, metavar="PROGRAM")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--driver", default="libcuda.so.1")
    parser.add_argument("--device", type=int, default=0)
    arguments = parser.parse_args()
    times = [[], []]
    for turn in range(-1, arguments.runs):  # the first is a warm-up: files, the driver's own caches
        for which in ((0, 1), (1, 0))[turn % 2]:
            measured = run(arguments.programs[which], arguments)
            if turn >= 0:
                times[which].append(measured)
    print(f"medians of {arguments.runs} runs in turn, in ms{'' if 'libcuda.so.1' in arguments.driver else '; not of a GPU'}")
    print(f"{'':14} {'bare launch':>12} {'fa4':>12} {'difference':>12}")
    for name in times[0][0]:
        bare, fa4 = (statistics.median(t[name] for t in kind) for kind in times)
        print(f"{name:14} {bare:12.2f} {fa4:12.2f} {fa4 - bare:12.2f}")
    deciles = [statistics.quantiles((t["whole process"] for t in kind), n=10) for kind in times]
    print("whole process, 10 % to 90 %: " + ", ".join(f"{name} {d[0]:.2f} to {d[8]:.2f}" for name, d in zip(("bare", "fa4"), deciles)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
