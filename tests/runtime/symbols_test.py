# SPDX-License-Identifier: Apache-2.0
"""symbols_test.py LIBRARY HEADER: the shared library exports what the header declares and no more, reads no environment,
and needs no CUDA library."""

import re
import subprocess
import sys

from elf import dynamic_names

library, header = sys.argv[1:]


def nm(option):
    out = subprocess.run(["nm", "-D", option, library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


with open(header, encoding="utf-8") as file:
    declared = set(re.findall(r"^FA4_API .*?\b(fa4_\w+)\(", file.read(), re.MULTILINE))
exported = nm("--defined-only")
wanted = nm("--undefined-only")

failures = []
if exported != declared:
    failures.append(f"exported but not declared: {exported - declared}; declared but not exported: {declared - exported}")
if environment := wanted & {"getenv", "secure_getenv", "environ"}:
    failures.append(f"reads the environment: {environment}")
if cuda := [name for name in dynamic_names(library, "NEEDED") if name.startswith("libcuda")]:
    failures.append(f"linked to {cuda}")
for failure in failures:
    print(failure)
sys.exit(len(failures) != 0)
