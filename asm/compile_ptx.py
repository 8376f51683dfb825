# SPDX-License-Identifier: Apache-2.0
"""Compiles a .cu file to PTX and writes source names relative to the tree, so that the PTX (and every image made from
it) is the same wherever it is built and names its lines as asm/attention/row.cuh:12.

    compile_ptx.py NVCC ROOT SOURCE OUTPUT DEPFILE [NVCC OPTION...]
"""
import os
import re
import subprocess
import sys


def source_name(path, root, toolkit):
    """asm/... for a file of the tree, cuda/include/... for a header of the toolkit: one that lies inside the tree, or whose
    include folder is a link elsewhere, is called no differently."""
    path = os.path.realpath(path)
    for directory, prefix in ((os.path.join(toolkit, 'include'), 'cuda/include/'), (toolkit, 'cuda/'), (root, '')):
        directory = os.path.realpath(directory)
        if path.startswith(directory + os.sep):
            return prefix + os.path.relpath(path, directory)
    return path


def main():
    nvcc, root, source, output, depfile = sys.argv[1:6]
    command = [nvcc, '-ptx', '-MD', '-MF', depfile, '-o', output] + sys.argv[6:] + [source]
    if subprocess.run(command).returncode != 0:
        sys.exit(1)
    toolkit = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    with open(output) as file:
        text = file.read()
    text = re.sub(r'^(\s*\.file\s+\d+\s+)"([^"]*)"',
                  lambda m: '%s"%s"' % (m[1], source_name(m[2], root, toolkit)), text, flags=re.M)
    with open(output, 'w') as file:
        file.write(text)


if __name__ == '__main__':
    main()
