# SPDX-License-Identifier: Apache-2.0
"""Every function of asm/ptx is used by primitives.cu, every instruction that it spells reaches the PTX, carries its
documentation line, and (the build sees to it) assembles without a word of complaint.

    check_primitives.py PTX PRIMITIVES_CU HEADER...
"""
import re
import sys


def functions(header):
    """(name, comment lines above it, body) of every device function."""
    comment = []
    lines = open(header).read().split('\n')
    i = 0
    while i < len(lines):
        line = lines[i]
        if line.startswith('//'):
            comment.append(line)
        elif line.startswith('__device__'):
            name = re.search(r'(\w+)\(', line[len('__device__ __forceinline__'):]).group(1)
            body = [line]
            while not (line == '}' or line.endswith('}')):
                i += 1
                line = lines[i]
                body.append(line)
            yield name, comment, '\n'.join(body)
            comment = []
        elif line == '' or line.startswith('}'):
            comment = []
        i += 1


def opcodes(body):
    """Opcodes in the asm strings of a function: words with a dot, followed by operands or the end."""
    text = ''.join(re.findall(r'"((?:[^"\\]|\\.)*)"', body))
    text = text.replace('\\n', '\n').replace('\\t', '')
    for statement in re.split(r'[;\n{]', text):
        match = re.match(r'\s*([a-z]\w*(?:\.[\w:]+)+)', statement)
        if match:
            yield match.group(1)


def main():
    ptx_path, source_path = sys.argv[1:3]
    ptx, source = open(ptx_path).read(), open(source_path).read()
    emitted = set(re.findall(r'^\s*(?:@!?%?\w+\s+)?([a-z]\w*(?:\.[\w:]+)+)', ptx, flags=re.M))
    failures = []
    count = 0
    for header in sys.argv[3:]:
        for name, comment, body in functions(header):
            count += 1
            where = '%s: %s' % (header, name)
            if not re.search(r'\b%s\b' % name, source):
                failures.append('%s is not used by %s' % (where, source_path))
            spelled = list(opcodes(body))
            for opcode in spelled:
                if opcode not in emitted:
                    failures.append('%s: instruction %s is not in %s' % (where, opcode, ptx_path))
            if spelled and not any(re.search(r'PTX ISA \d+\.\d+, \d+(\.\d+)+$', line) for line in comment):
                failures.append('%s: no line with ISA version and section above it' % where)
    if count < 40:
        failures.append('only %d functions found in the headers; at least 40 are expected' % count)
    for failure in failures:
        print(failure)
    print('%d primitives, %d failures' % (count, len(failures)))
    sys.exit(1 if failures else 0)


main()
