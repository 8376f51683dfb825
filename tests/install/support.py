# SPDX-License-Identifier: Apache-2.0
"""What the install tests share: commands and conditions."""

import os
import subprocess
import sys


def run(command, **options):
    """Runs a command and shows it; its failure ends the test."""
    print("+", " ".join(map(str, command)), flush=True)
    environment = {**os.environ, **options.pop("env", {})}
    result = subprocess.run(list(map(str, command)), env=environment, text=True, **options)
    if result.returncode != 0:
        print(result.stdout or "", result.stderr or "", sep="\n")
        sys.exit(f"failed with exit status {result.returncode}")
    return result.stdout


def require(condition, sentence):
    if not condition:
        sys.exit(sentence)
