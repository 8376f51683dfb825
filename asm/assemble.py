# SPDX-License-Identifier: Apache-2.0
"""Assembles PTX and keeps what ptxas says (registers, sizes) in a file. Fails, and shows it, when ptxas fails, warns, reports a
spill or a stack frame, or makes a remark (these have codes) that it serialised wgmmas, put waits between them or ignored a
setmaxnreg. None of these is wrong, and each of them makes a kernel slow.

    assemble.py PTXAS SOURCE OUTPUT LOG [PTXAS OPTION...]
"""
import os
import re
import subprocess
import sys

EXPECTED = re.compile(r'ptxas info    : (?!\(C\d+\))|    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads$')


def complaints(log):
    """Lines of a ptxas log that should not be there."""
    return [line for line in log.split('\n') if line.strip() and not EXPECTED.match(line)]


def main():
    ptxas, source, output, log = sys.argv[1:5]
    result = subprocess.run([ptxas, '-v'] + sys.argv[5:] + [source, '-o', output], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, universal_newlines=True)
    with open(log, 'w') as file:
        file.write(result.stdout)
    if result.returncode != 0:
        sys.stderr.write(result.stdout)
        sys.exit(1)
    said = complaints(result.stdout)
    if said:
        os.remove(output)
        sys.stderr.write('%s is assembled, but not as it should be:\n%s\n' % (source, '\n'.join(said)))
        sys.exit(1)


if __name__ == '__main__':
    main()
