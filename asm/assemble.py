# SPDX-License-Identifier: Apache-2.0
"""Assembles PTX and keeps what ptxas says (registers, spills, warnings) in a file; shows it when ptxas fails.

    assemble.py PTXAS SOURCE OUTPUT LOG [PTXAS OPTION...]
"""
import subprocess
import sys


def main():
    ptxas, source, output, log = sys.argv[1:5]
    result = subprocess.run([ptxas, '-v'] + sys.argv[5:] + [source, '-o', output], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, universal_newlines=True)
    with open(log, 'w') as file:
        file.write(result.stdout)
    if result.returncode != 0:
        sys.stderr.write(result.stdout)
        sys.exit(1)


main()
