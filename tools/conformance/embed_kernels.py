# SPDX-License-Identifier: Apache-2.0
"""Writes PTX files as C++ arrays with a look-up by name: embed_kernels.py OUTPUT NAME=FILE..."""

import re
import sys
from pathlib import Path

output, *files = sys.argv[1:]
text = ['#include <stdexcept>', '#include <string>', '#include <string_view>', 'namespace fa4::conformance {', 'namespace {']
table = []
for item in files:
    name, path = item.split('=', 1)
    ptx = re.sub(r'^\.target .*$', '.target $', Path(path).read_text(encoding='ascii'), count=1, flags=re.M)
    ptx = re.sub(r'^//.*\n', '', ptx, flags=re.M)
    lines = ''.join('    "' + line.replace('\\', '\\\\').replace('"', '\\"') + '\\n"\n' for line in ptx.splitlines())
    text.append(f'constexpr std::string_view text_{name} =\n{lines}    ;')
    table.append(f'  if (file == "{name}") return std::string(text_{name});')
text += ['}  // namespace', 'std::string kernel_ptx(std::string_view file) {', *table,
         '  throw std::logic_error("no conformance kernels in " + std::string(file));', '}', '}  // namespace fa4::conformance', '']
Path(output).write_text('\n'.join(text), encoding='ascii')
