# SPDX-License-Identifier: Apache-2.0
"""Changes the disassembly of the kernel in one place at a time, each time into something that check_sass.py exists to
find, and expects a complaint. It must have none about the text as it is.

    check_sass_mutants.py PTX CUBIN NVDISASM_DIRECTORY...
"""
import re
import sys

from check_sass import SKIPPED, check_entry, disassemble, find_nvdisasm, read_bodies, read_sections

WAITS = 0x3F << 52  # the scoreboards that an instruction waits for: bits 11 to 16 of the control word, which begins at bit 41


def without_waits(text):
    """No instruction waits for a scoreboard: every load is left in flight."""
    return re.sub(r'^(\s+/\* 0x)([0-9a-f]{16})( \*/)$', lambda m: '%s%016x%s' % (m[1], int(m[2], 16) & ~WAITS, m[3]), text,
                  flags=re.M).replace('DEPBAR', 'NOP')


def replaced(pattern, replacement):
    def change(text):
        changed, count = re.subn(pattern, replacement, text, count=1)
        if not count:
            raise ValueError('the disassembly has no ' + pattern)
        return changed
    return change


MUTANTS = {
    'no instruction waits for its loads': without_waits,
    'no store is waited for': lambda text: text.replace('FENCE.VIEW.ASYNC.T', 'FENCE.VIEW.ASYNC.S'),
    'a store to local memory': replaced(r'STS\.128 \[', 'STL.128 ['),
    'a load from tensor memory less': replaced(r'LDTM', 'NOP'),
    'a store to tensor memory less': replaced(r'STTM', 'NOP'),
    'P is handed over as a whole': replaced(r'(STTM[\s\S]*?)SYNCS\.ARRIVE', r'\1NOP'),
    'an MMA less': replaced(r'UTCHMMA', 'NOP'),
    'a commit less': replaced(r'UTCBAR', 'NOP'),
    'a bulk load less': replaced(r'UTMALDG', 'NOP'),
    'a role without its registers': replaced(r'USETMAXREG', 'NOP'),
    'a role with other registers': replaced(r'(USETMAXREG\S* .*)0x[0-9a-f]+', r'\g<1>0x18'),
}


def complaints_about(text, bodies):
    sections = read_sections(text)
    return [c for name in bodies for c in check_entry(bodies[name], *sections[name])]


def main():
    nvdisasm = find_nvdisasm(sys.argv[3:])
    if not nvdisasm:
        print('skipped: there is no nvdisasm')
        return SKIPPED
    bodies = read_bodies(sys.argv[1])
    text = disassemble(nvdisasm, sys.argv[2])
    failed = [('as it is', c) for c in complaints_about(text, bodies)]
    for name, change in MUTANTS.items():
        found = complaints_about(change(text), bodies)
        print('%s: %d complaints%s' % (name, len(found), ', first: ' + found[0] if found else ''))
        if not found:
            failed.append((name, 'nothing was found'))
    for name, complaint in failed:
        print('FAILED: %s: %s' % (name, complaint))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
