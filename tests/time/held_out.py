#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels that the model of time was not made with: variants of the Hopper kernel, predicted first and then measured.

    held_out.py build FOLDER             writes an image for each variant; nvcc must be on PATH
    held_out.py predict FOLDER FA4       adds what FA4 (the program) predicts to FOLDER/held_out.json; a prediction that stands
                                         there stays
    held_out.py measure FOLDER FA4 OUT   on a Hopper: writes the file with measured cycles to OUT; ncu must be on PATH
    held_out.py table FILE               prints both side by side

FlashAttention-3's rows (2_fa3, 3_fa3) were added by hand, as its source is not here: its kernel for full attention without
clusters, recorded under the simulated GPU (FA4SIM_MODEL=silicon) and predicted by `fa4 time --record`. loops.cu has the others.

A variant is the kernel's own source with pieces of text replaced. What it computes may be wrong; the model and the GPU run
the same program.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOPPER = "asm/attention/hopper/"
CONSUMER, SOFTMAX, LAYOUT = (HOPPER + name for name in ("roles/consumer.cuh", "softmax.cuh", "layout.h"))

NO_TURNS = [(CONSUMER, "[&] { ptx::bar_sync<pair>(kOrderBarrier + consumer); };", "[] {};"),
            (CONSUMER, "ptx::bar_arrive<pair>(kOrderBarrier + (consumer + 1 == L::consumers ? 0 : consumer + 1));", "")]
ALWAYS_AGAIN = [(SOFTMAX, "return !(partial <= kRescaleSum);", "return partial > -1.0f;")]
EXPONENTIAL = "e[k] = ptx::ex2_approx_ftz(__fmaf_rn(s[i + k], scale_log2, offset[row]));"
SUM = "partial[row] = i < 4 && k == 0 ? e[k] : __fadd_rn(partial[row], e[k]);"
NO_SUMS = [(SOFTMAX, SUM, "if (i < 4) " + SUM)]
MORE_SUMS = [(SOFTMAX, SUM, SUM + " partial[row] = __fadd_rn(partial[row], __fmul_rn(e[k], 1e-30f));")]
FEWER_EXPONENTIALS = [(SOFTMAX, EXPONENTIAL,
                       "const float x = __fmaf_rn(s[i + k], scale_log2, offset[row]);"
                       " e[k] = k == 0 ? ptx::ex2_approx_ftz(x) : __fmul_rn(e[0], 0.5f);")]
MORE_EXPONENTIALS = [(SOFTMAX, EXPONENTIAL, EXPONENTIAL + " e[k] = __fmaf_rn(ptx::ex2_approx_ftz(-e[k]), 1e-30f, e[k]);")]
PRODUCTS_APART = [(CONSUMER, "    wait_kv_warp(v);\n    issue_values(p, v.index, accumulate);\n    order_pass();",
                   "    wait_kv_warp(v);\n    ptx::wgmma_wait_group<0>();\n    issue_values(p, v.index, accumulate);\n    order_pass();")]
ONE_P = [(LAYOUT, "two_p = consumers == 2;", "two_p = false;")]
FEW_SLOTS = [(LAYOUT, "kTileRows, 2, 128, 5, OPlace::over_q}", "kTileRows, 2, 128, 3, OPlace::over_q}"),
             (LAYOUT, "if (qk_dim <= 64) config.kv_slots = 8;", "")]
MASK_ALL = [(CONSUMER, "unmasked = all_see > 0 ? all_see / config.block_keys : 0;", "unmasked = 0;")]
NO_VALUES = [(CONSUMER, "for (int step = 0; step < L::value_steps; ++step) {\n      ptx::wgmma_rs",
              "for (int step = 0; step < L::value_steps / 2; ++step) {\n      ptx::wgmma_rs")]
LATE_PASS = [(CONSUMER, "    issue_values(p, v.index, accumulate);\n    order_pass();\n  };",
              "    issue_values(p, v.index, accumulate);\n  };"),
             (CONSUMER, "    ptx::wgmma_wait_group<1>();\n    ptx::tied(s);\n    release_kv(k.index);\n    next = next_kv();",
              "    ptx::wgmma_wait_group<1>();\n    order_pass();\n    ptx::tied(s);\n    release_kv(k.index);\n    next = next_kv();")]
MAXIMUM = [(SOFTMAX, "const int row = i / 2 % 2;\n    float e[2];",
            "const int row = i / 2 % 2;\n    float e[2];\n    if (i >= 4) partial[row] = fmaxf(partial[row], s[i] * 1e-30f);")]

AS_IT_IS = []
SCORES_TWICE = [(CONSUMER, "step < L::score_steps; ++step", "step < 2 * L::score_steps; ++step"),
                (CONSUMER, "k_major_step<L::q_piece_bytes>(q_tile, step)", "k_major_step<L::q_piece_bytes>(q_tile, step % L::score_steps)"),
                (CONSUMER, "k_major_step<L::kv_piece_bytes>(k_tile, step)", "k_major_step<L::kv_piece_bytes>(k_tile, step % L::score_steps)")]
THREE_OF_FOUR = [(SOFTMAX, EXPONENTIAL,
                  "const float x = __fmaf_rn(s[i + k], scale_log2, offset[row]);"
                  " e[k] = k == 0 || i % 4 == 0 ? ptx::ex2_approx_ftz(x) : __fmul_rn(e[0], 0.5f);")]
INTEGERS = [(SOFTMAX, "p[i / 2] = pack<element>(e[0], e[1]);",
             "p[i / 2] = pack<element>(e[0], e[1]);\n"
             '    asm volatile("prmt.b32 %0, %0, %0, 0x1032;\\n\\tprmt.b32 %0, %0, %0, 0x1032;" : "+r"(p[i / 2]));')]
SHUFFLES = [(SOFTMAX, "p[i / 2] = pack<element>(e[0], e[1]);",
             "p[i / 2] = pack<element>(e[0], e[1]);\n    if (i % 8 == 0) p[i / 2] = __shfl_xor_sync(0xffffffffu, p[i / 2], 1);")]

EARLY_PASS = [(CONSUMER, "    wait_kv_warp(v);\n    issue_values(p, v.index, accumulate);\n    order_pass();\n  };",
               "    order_pass();\n    wait_kv_warp(v);\n    issue_values(p, v.index, accumulate);\n  };")]
SPLIT_VALUES = [(CONSUMER, "step > 0 || accumulate);\n    }\n    ptx::wgmma_commit_group();",
                 "step > 0 || accumulate);\n      if (step + 1 == L::value_steps / 2) ptx::wgmma_commit_group();\n    }\n"
                 "    ptx::wgmma_commit_group();")]
NO_PACKS = [(SOFTMAX, "p[i / 2] = pack<element>(e[0], e[1]);", "p[i / 2] = __float_as_uint(e[0]) + __float_as_uint(e[1]);")]
MORE_INTEGERS = [(SOFTMAX, "p[i / 2] = pack<element>(e[0], e[1]);",
                  "p[i / 2] = pack<element>(e[0], e[1]);\n"
                  '    asm volatile("mad.lo.u32 %0, %0, 1, 0;\\n\\txor.b32 %0, %0, %1;\\n\\txor.b32 %0, %0, %1;" : "+r"(p[i / 2]) : "r"(i * 77 + 1));')]
QUARTER_MORE = [(SOFTMAX, EXPONENTIAL,
                 EXPONENTIAL + " if (i % 4 == 0 && k == 0) e[k] = __fmaf_rn(ptx::ex2_approx_ftz(-e[k]), 1e-30f, e[k]);")]
FEWER_SLOTS = [(LAYOUT, "if (qk_dim <= 64) config.kv_slots = 8;", "if (qk_dim <= 64) config.kv_slots = 4;")]


def problem(batch, seq, heads, kv_heads, dim, causal=False):
    return ["--batch", str(batch), "--seq-q", str(seq), "--heads", str(heads), "--kv-heads", str(kv_heads), "--head-dim", str(dim)] + (
        ["--causal"] if causal else [])


# Rounds: what the model missed in one may be mended, and the next one is fresh.
ROUNDS = {
    "1": [
        ("consumers take no turns", NO_TURNS, problem(1, 4096, 16, 16, 128)),
        ("consumers take no turns, D = 64", NO_TURNS, problem(1, 4096, 16, 16, 64)),
        ("every block done again, causal", ALWAYS_AGAIN, problem(2, 2048, 16, 16, 128, True)),
        ("every block done again, D = 64", ALWAYS_AGAIN, problem(1, 4096, 16, 16, 64)),
        ("no row sums, D = 64", NO_SUMS, problem(1, 4096, 16, 16, 64)),
        ("row sums and as many FADD and FMUL more", MORE_SUMS, problem(1, 4096, 16, 16, 128)),
        ("half of the exponentials, D = 64", FEWER_EXPONENTIALS, problem(1, 4096, 16, 4, 64)),
        ("twice the exponentials", MORE_EXPONENTIALS, problem(1, 2048, 32, 32, 128)),
        ("twice the exponentials, D = 64, causal", MORE_EXPONENTIALS, problem(1, 4096, 16, 16, 64, True)),
        ("value product after the scores' end", PRODUCTS_APART, problem(1, 4096, 16, 16, 128)),
        ("softmax after the value product", ONE_P, problem(1, 4096, 16, 16, 128)),
        ("ring of three slots", FEW_SLOTS, problem(1, 4096, 16, 16, 128)),
        ("mask in every block", MASK_ALL, problem(1, 4096, 16, 16, 128)),
        ("half a value product, D = 64", NO_VALUES, problem(1, 4096, 16, 16, 64)),
        ("turn passed on after the scores", LATE_PASS, problem(1, 4096, 16, 8, 128)),
        ("a maximum beside every exponential pair, D = 64, causal", MAXIMUM, problem(2, 2048, 16, 16, 64, True)),
    ],
    "2": [
        ("as it is, odd length, causal", AS_IT_IS, problem(1, 3000, 24, 8, 128, True)),
        ("as it is, D = 64", AS_IT_IS, problem(3, 1536, 20, 20, 64)),
        ("consumers take no turns, D = 64, causal", NO_TURNS, problem(1, 4096, 16, 16, 64, True)),
        ("half of the exponentials", FEWER_EXPONENTIALS, problem(1, 4096, 16, 16, 128)),
        ("no row sums, causal", NO_SUMS, problem(1, 4096, 16, 4, 128, True)),
        ("row sums and as many FADD and FMUL more, D = 64", MORE_SUMS, problem(1, 3072, 22, 22, 64)),
        ("mask in every block, D = 64", MASK_ALL, problem(1, 3072, 22, 22, 64)),
        ("a maximum beside every exponential pair", MAXIMUM, problem(1, 3072, 22, 22, 128)),
        ("half a value product", NO_VALUES, problem(1, 4096, 16, 16, 128)),
        ("scores twice, D = 64", SCORES_TWICE, problem(1, 3072, 22, 22, 64)),
        ("three of four exponentials, causal", THREE_OF_FOUR, problem(2, 3072, 16, 16, 64, True)),
        ("softmax after the value product, causal", ONE_P, problem(1, 4096, 16, 16, 128, True)),
        ("two PRMT for each pair", INTEGERS, problem(1, 4096, 16, 16, 128)),
        ("two PRMT for each pair, D = 64", INTEGERS, problem(2, 2048, 16, 16, 64)),
        ("a shuffle for every eighth element", SHUFFLES, problem(1, 4096, 16, 8, 128)),
        ("every block done again, D = 64, causal", ALWAYS_AGAIN, problem(1, 4096, 16, 16, 64, True)),
    ],
    "3": [
        ("as it is, ratio 8", AS_IT_IS, problem(1, 2816, 24, 3, 128)),
        ("as it is, D = 64, causal, short", AS_IT_IS, problem(4, 1280, 26, 26, 64, True)),
        ("turn passed on before the value product", EARLY_PASS, problem(1, 3072, 22, 22, 128)),
        ("turn passed on after the scores' end, causal", LATE_PASS, problem(1, 4096, 16, 16, 128, True)),
        ("value product in two groups, D = 64", SPLIT_VALUES, problem(1, 3072, 22, 22, 64)),
        ("value product in two groups, causal", SPLIT_VALUES, problem(2, 3072, 11, 11, 128, True)),
        ("added in place of packed, D = 64", NO_PACKS, problem(1, 3072, 22, 22, 64)),
        ("IMAD and two LOP3 for each pair, D = 64, causal", MORE_INTEGERS, problem(1, 4096, 16, 16, 64, True)),
        ("a quarter more exponentials, D = 64", QUARTER_MORE, problem(2, 2048, 16, 16, 64)),
        ("four slots, D = 64", FEWER_SLOTS, problem(1, 3072, 22, 22, 64)),
        ("three of four exponentials", THREE_OF_FOUR, problem(1, 3072, 22, 22, 128)),
        ("half a value product, causal", NO_VALUES, problem(2, 3072, 11, 11, 128, True)),
        ("a shuffle for every eighth element, D = 64", SHUFFLES, problem(2, 2048, 16, 16, 64)),
        ("scores twice", SCORES_TWICE, problem(2, 2048, 16, 16, 128)),
    ],
}
# Of loops.cu, in the order of its launches.
LOOPS = {"shared_products": "2", "warp_sums": "2", "ring_of_copies": "2", "logarithms": "3", "integers": "3", "transposes": "3"}
LAUNCHES_OF_A_LOOP = 5


def rows():
    for number, variants in ROUNDS.items():
        for index, (name, edits, shape) in enumerate(variants):
            yield number, f"{number}_{index}", name, edits, shape


def entry_of(shape):
    causal = "--causal" in shape
    return f"fa4_forward_f16_d{shape[shape.index('--head-dim') + 1]}_{'causal' if causal else 'full'}"


def build_one(folder, key, edits, entry):
    image = folder / f"{key}.fatbin"
    if image.exists():
        return
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        shutil.copytree(ROOT / "asm", work / "asm")
        main = work / HOPPER / "attention.cu"
        # The other entries do nothing: an image has all of them.
        text = main.read_text()
        head = text[:text.index("\nFA4_SPECIALISATIONS(FA4_ENTRY)")]
        table = (ROOT / "asm/attention/specialisations.h").read_text()
        for row in re.findall(r"ROW\((fa4_\w+), +(\w+), +(\w+), +(\d+), +(\d+)(?:, \d+, \d+)?\)", table):
            head += f"\nFA4_ENTRY({', '.join(row)})" if row[0] == entry else (
                f'\nextern "C" __global__ void {row[0]}(const __grid_constant__ fa4::AttentionParams) {{}}')
        main.write_text(head + "\n")
        for path, old, new in edits:
            text = (work / path).read_text()
            if text.count(old) != 1:
                sys.exit(f"{key}: {path} has {text.count(old)} times: {old}")
            (work / path).write_text(text.replace(old, new))
        nvcc = shutil.which("nvcc")
        ptx, cubin = work / "k.ptx", work / "k.cubin"
        subprocess.run([sys.executable, work / "asm/compile_ptx.py", nvcc, work, main, ptx, work / "k.d", "-arch=sm_90a",
                        "-std=c++20", "-O3", "-lineinfo"], check=True)
        subprocess.run(["ptxas", "-arch=sm_90a", "-O3", ptx, "-o", cubin], check=True)
        subprocess.run(["fatbinary", "-64", f"--create={image}", f"--image3=kind=elf,sm=90a,file={cubin}",
                        f"--image3=kind=ptx,sm=90a,file={ptx}"], check=True)


def build(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for _, key, name, edits, shape in rows():
        build_one(folder, key, edits, entry_of(shape))
        print(key, name, flush=True)
    nvcc = ["nvcc", "-std=c++20", "-O3", ROOT / "tests/time/loops.cu"]
    subprocess.run([*nvcc, "-gencode", "arch=compute_90a,code=[sm_90a,compute_90a]", "-cudart", "shared", "-o", folder / "loops"],
                   check=True)
    subprocess.run([*nvcc, "-gencode", "arch=compute_90a,code=sm_90a", "-cubin", "-o", folder / "loops.cubin"], check=True)


def predict(folder, fa4):
    path = folder / "held_out.json"
    known = json.loads(path.read_text()) if path.exists() else []

    def add(key, number, name, shape, arguments):
        report = folder / "report.json"
        subprocess.run([fa4, "time", *arguments, "--json", report], check=True, stdout=subprocess.DEVNULL)
        r = json.loads(report.read_text())
        around = r["launch_cycles"]
        known.append({"key": key, "round": number, "name": name, "problem": shape, "predicted": r["cycles"] + around,
                      "low": r["cycles_low"] + around, "high": r["cycles_high"] + around})
        path.write_text(json.dumps(known, indent=1) + "\n")
        print(key, name, known[-1]["predicted"], flush=True)

    for number, key, name, _, shape in rows():
        if any(row["key"] == key for row in known):
            continue
        add(key, number, name, " ".join(shape), ["--gpu", "sm_90", *shape, "--image", folder / f"{key}.fatbin"])
    if all(any(row["key"] == loop for row in known) for loop in LOOPS):
        return
    simulated = pathlib.Path(fa4).resolve().parents[1] / "sim/cudart"
    subprocess.run([folder / "loops"], check=True, env={**os.environ, "FA4SIM_GPU": "sm_90", "LD_LIBRARY_PATH": str(simulated),
                                                        "FA4SIM_RECORD": str(folder / "loops.record")})
    for index, (name, number) in enumerate(LOOPS.items()):
        if any(row["key"] == name for row in known):
            continue
        add(name, number, name, "132 CTAs, 256 threads",
            ["--record", folder / "loops.record", "--cubin", folder / "loops.cubin", "--chip", "h200", "--launch",
             str((index + 1) * LAUNCHES_OF_A_LOOP - 1)])


def measure(folder, fa4, out):
    known = json.loads((folder / "held_out.json").read_text())
    for row in known:
        image, loop = folder / f"{row['key']}.fatbin", row["key"] in LOOPS
        if "measured" in row or not (loop or image.exists()):
            continue
        program = [folder / "loops"] if loop else [fa4, "bench", "--seconds", "0.05", *row["problem"].split(), "--image", image]
        skipped, counted = (2, LAUNCHES_OF_A_LOOP - 2) if loop else (5, 5)
        ncu = subprocess.run(
            ["ncu", "--metrics", "sm__cycles_elapsed.max", "--clock-control", "none", "--cache-control", "none", "--kernel-name",
             row["key"] if loop else "regex:fa4_forward", "--launch-skip", str(skipped), "--launch-count", str(counted), "--kill",
             "yes", *program], capture_output=True, text=True)
        cycles = sorted(int(x.replace(",", "")) for x in re.findall(r"sm__cycles_elapsed\.max\s+cycle\s+([\d,]+)", ncu.stdout))
        if not cycles:
            print(row["key"], "was not measured:", ncu.stdout[-300:], ncu.stderr[-300:])
            continue
        row["measured"] = cycles[len(cycles) // 2]
        print(row["key"], row["name"], row["predicted"], row["measured"], flush=True)
    pathlib.Path(out).write_text(json.dumps(known, indent=1) + "\n")


def table(path):
    by_round = {}
    for row in json.loads(pathlib.Path(path).read_text()):
        if "measured" in row:
            by_round.setdefault(row["round"], []).append(row)
    for number, measured in by_round.items():
        print(f"| round {number}: kernel | problem | predicted | measured | error |\n|---|---|---|---|---|")
        errors = []
        for row in measured:
            errors.append(row["predicted"] / row["measured"] - 1)
            print(f"| {row['name']} | `{row['problem']}` | {row['predicted']:,} | {row['measured']:,} | {100 * errors[-1]:+.1f} % |")
        print(f"\nMean absolute error {100 * sum(map(abs, errors)) / len(errors):.1f} %, largest {100 * max(map(abs, errors)):.1f} %.\n")


if __name__ == "__main__":
    commands = {"build": lambda a: build(pathlib.Path(a[0])), "predict": lambda a: predict(pathlib.Path(a[0]), a[1]),
                "measure": lambda a: measure(pathlib.Path(a[0]), a[1], a[2]), "table": lambda a: table(a[0])}
    wanted = {"build": 1, "predict": 2, "measure": 3, "table": 1}
    if len(sys.argv) < 2 or wanted.get(sys.argv[1]) != len(sys.argv) - 2:
        sys.exit(__doc__)
    commands[sys.argv[1]](sys.argv[2:])
