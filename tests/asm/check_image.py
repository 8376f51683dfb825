# SPDX-License-Identifier: Apache-2.0
"""Holds the build to what it promises: the entries of the list of specialisations; register budgets of the roles, as they
stand in the PTX, that use up the 65,536 registers of an SM exactly; an image with both kinds of code for both architectures,
compressed; cubins without line tables.

    check_image.py PTX PTXAS_LOG FATBIN HOPPER_CUBIN BLACKWELL_CUBIN SPECIALISATIONS_HEADER

What lies compressed in the image is compared with the cubins and PTX files by tests/image.
"""
import re
import struct
import sys

THREADS_AFTER = {'correction': 128, 'mma': 128}  # threads that run with the budget before the role's code; softmax: the others
REGISTERS = 65536


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
    """(kind, target, whether compressed with zstd, bytes when unpacked) of every entry of a fatbinary; kind 1 is PTX, 2 an
    ELF cubin."""
    magic, _, header_bytes, size = struct.unpack_from('<IHHQ', fatbin)
    if magic != 0xBA55ED50:
        return []
    result, at = [], header_bytes
    while at < header_bytes + size:
        kind, _, entry_header, entry_bytes = struct.unpack_from('<HHIQ', fatbin, at)
        (capability,) = struct.unpack_from('<I', fatbin, at + 28)
        (flags,) = struct.unpack_from('<Q', fatbin, at + 40)
        (unpacked,) = struct.unpack_from('<Q', fatbin, at + 56)
        letter = 'a' if flags & 1 << 20 else 'f' if flags & 1 << 21 else ''
        result.append((kind, '%d%s' % (capability, letter), bool(flags & 0x8000), unpacked))
        at += entry_header + entry_bytes
    return result


def section_names(elf):
    """Names of the sections of a 64-bit little-endian ELF file."""
    (headers,) = struct.unpack_from('<Q', elf, 40)
    size, count, names = struct.unpack_from('<HHH', elf, 58)
    (strings,) = struct.unpack_from('<Q', elf, headers + names * size + 24)
    starts = (strings + struct.unpack_from('<I', elf, headers + i * size)[0] for i in range(count))
    return [elf[start:elf.index(b'\0', start)].decode() for start in starts]


def main():
    ptx_path, log_path, fatbin_path, *cubin_paths, list_path = sys.argv[1:]
    everywhere = re.search(r'#define FA4_SPECIALISATIONS\(ROW\)((?:.*\\\n)+.*)', open(list_path).read())[1]
    entries = set(re.findall(r'^\s*ROW\((\w+),', everywhere, flags=re.M))
    entries |= {entry + '_polynomial' for entry in entries}
    ptx, log, fatbin = open(ptx_path).read(), open(log_path).read(), open(fatbin_path, 'rb').read()
    failures = []

    bodies = entry_bodies(ptx)
    if set(bodies) != entries:
        failures.append('entries in the PTX are %s, expected %s' % (sorted(bodies), sorted(entries)))
    assembled = re.findall(r"Compiling entry function '(\w+)' for 'sm_100f'", log)
    if sorted(assembled) != sorted(entries):
        failures.append('entries assembled for sm_100f are %s, expected %s' % (assembled, sorted(entries)))

    threads_of = {m[1]: int(m[2]) for m in re.finditer(r'\.entry (\w+)\(.*?\.maxntid (\d+)', ptx, flags=re.S)}
    for name, body in bodies.items():
        budget = register_budget(ptx, body)
        threads_after = dict(THREADS_AFTER, softmax=threads_of[name] - sum(THREADS_AFTER.values()))
        if sorted(role for role, _, _ in budget) != sorted(threads_after):
            failures.append('%s: setmaxnreg before the roles %s, expected one before each of %s' %
                            (name, budget, sorted(threads_after)))
            continue
        # Of a multiple of 8 for each thread, all that there are.
        launched = REGISTERS // threads_of[name] // 8 * 8 * threads_of[name]
        total = sum(threads_after[role] * registers for role, _, registers in budget)
        if total != launched:
            failures.append('%s: role budgets %s sum to %d registers, expected %d' % (name, budget, total, launched))
        if '.local' in body:
            failures.append('%s: uses local memory' % name)

    for path in re.findall(r'\.file\s+\d+ "([^"]*)"', ptx):
        if not path.startswith(('asm/', 'cuda/')):
            failures.append('source name "%s" in the PTX is not relative to the tree' % path)

    cubins = [open(path, 'rb').read() for path in cubin_paths]
    expected = [(2, '90a', True, len(cubins[0])), (1, '90a', True), (2, '100f', True, len(cubins[1])), (1, '100f', True)]
    held = image_entries(fatbin)
    if [entry[:len(wanted)] for entry, wanted in zip(held, expected)] != expected or len(held) != len(expected):
        failures.append('image holds (kind, target, zstd, bytes) %s, expected %s' % (held, expected))
    for path, cubin in zip(cubin_paths, cubins):
        names = section_names(cubin)
        if not any(name.startswith('.text.fa4_forward_') for name in names):
            failures.append('%s: no code among its sections %s' % (path, names))
        tables = [name for name in names if 'debug_line' in name or 'debug_ptx_txt' in name or 'debug_str' in name]
        if tables:
            failures.append('%s: has the line tables %s' % (path, tables))
    if not re.search(r'^\s*\.loc\s', ptx, flags=re.M):
        failures.append('the PTX has no .loc: findings of `fa4 check` would name no source lines')

    for failure in failures:
        print(failure)
    print('%d entries, %d failures' % (len(bodies), len(failures)))
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
