# SPDX-License-Identifier: Apache-2.0
"""Holds the build to what it promises: the entries of the list of specialisations; no spill, no stack, no complaint of the assembler; register budgets
of the roles, as they stand in the PTX, that use up the 65,536 registers of an SM exactly; an image with both kinds of code.

    check_image.py PTX PTXAS_LOG FATBIN SPECIALISATIONS_HEADER
"""
import re
import struct
import sys

THREADS_AFTER = {'softmax': 256, 'correction': 128, 'mma': 128}  # threads that run with the budget before the role's code
REGISTERS = 65536


def complaints(log):
    """Lines of a ptxas log that say anything but how large things are."""
    allowed = re.compile(r'ptxas info    : (\d+ bytes gmem|Compiling entry function|Function properties for|Used \d+ registers|'
                         r'Compile time)|^    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads$')
    return ['assembler: ' + line for line in log.split('\n') if line.strip() and not allowed.search(line)]


def entry_bodies(ptx):
    return {m[1]: m[2] for m in re.finditer(r'^\.visible \.entry (\w+)\((.*?)^\}', ptx, flags=re.M | re.S)}


def register_budget(ptx, body):
    """(role file, direction, registers) of every setmaxnreg of an entry; the role is the first role file that the line
    table names after it."""
    role_files = {m[1]: m[2] for m in re.finditer(r'\.file\s+(\d+) "asm/attention/blackwell/roles/(\w+)\.cuh"', ptx)}
    result, waiting = [], None
    for line in body.split('\n'):
        match = re.search(r'setmaxnreg\.(inc|dec)\.sync\.aligned\.u32 (\d+);', line)
        if match:
            waiting = (match[1], int(match[2]))
        location = re.match(r'\s*\.loc\s+(\d+)', line)
        if waiting and location and location[1] in role_files:
            result.append((role_files[location[1]],) + waiting)
            waiting = None
    return result


def image_entries(fatbin):
    """(kind, compute capability, bytes) of every entry of a fatbinary; kind 1 is PTX, 2 an ELF cubin."""
    magic, _, header_bytes, size = struct.unpack_from('<IHHQ', fatbin)
    if magic != 0xBA55ED50:
        return []
    result, at = [], header_bytes
    while at < header_bytes + size:
        kind, _, entry_header, entry_bytes = struct.unpack_from('<HHIQ', fatbin, at)
        (capability,) = struct.unpack_from('<I', fatbin, at + 28)
        result.append((kind, capability, fatbin[at + entry_header:at + entry_header + entry_bytes]))
        at += entry_header + entry_bytes
    return result


def statements(ptx):
    """Lines of PTX without comments and spacing, which fatbinary does not keep."""
    lines = (' '.join(line.split('//')[0].split()) for line in ptx.rstrip('\0').split('\n'))
    return [line for line in lines if line]


def main():
    ptx_path, log_path, fatbin_path, list_path = sys.argv[1:5]
    entries = set(re.findall(r'^\s*ROW\((\w+),', open(list_path).read(), flags=re.M))
    ptx, log, fatbin = open(ptx_path).read(), open(log_path).read(), open(fatbin_path, 'rb').read()
    failures = complaints(log)

    bodies = entry_bodies(ptx)
    if set(bodies) != entries:
        failures.append('entries in the PTX are %s, expected %s' % (sorted(bodies), sorted(entries)))
    assembled = re.findall(r"Compiling entry function '(\w+)' for 'sm_100f'", log)
    if sorted(assembled) != sorted(entries):
        failures.append('entries assembled for sm_100f are %s, expected %s' % (assembled, sorted(entries)))
    clean = log.count('0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads')
    if clean != len(entries):
        failures.append('%d entries without stack and spills, expected %d' % (clean, len(entries)))

    for name, body in bodies.items():
        budget = register_budget(ptx, body)
        if sorted(role for role, _, _ in budget) != sorted(THREADS_AFTER):
            failures.append('%s: setmaxnreg before the roles %s, expected one before each of %s' %
                            (name, budget, sorted(THREADS_AFTER)))
            continue
        total = sum(THREADS_AFTER[role] * registers for role, _, registers in budget)
        if total != REGISTERS:
            failures.append('%s: role budgets %s sum to %d registers, expected %d' % (name, budget, total, REGISTERS))
        if '.local' in body:
            failures.append('%s: uses local memory' % name)

    for path in re.findall(r'\.file\s+\d+ "([^"]*)"', ptx):
        if not path.startswith(('asm/', 'cuda/')):
            failures.append('source name "%s" in the PTX is not relative to the tree' % path)

    held = image_entries(fatbin)
    kinds = sorted((kind, capability) for kind, capability, _ in held)
    if kinds != [(1, 100), (2, 100)]:
        failures.append('image holds (kind, capability) %s, expected PTX (1, 100) and cubin (2, 100)' % kinds)
    for kind, _, data in held:
        if kind == 1 and statements(data.decode('latin-1')) != statements(ptx):
            failures.append('the PTX does not stand in the image as text: compressed?')
        if kind == 2 and not data.startswith(b'\x7fELF'):
            failures.append('the cubin does not stand in the image as an ELF file: compressed?')

    for failure in failures:
        print(failure)
    print('%d entries, %d failures' % (len(bodies), len(failures)))
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
