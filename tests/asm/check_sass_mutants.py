# SPDX-License-Identifier: Apache-2.0
"""Changes the disassembly of the kernel in one place at a time, each time into something that check_sass.py or
check_hopper_sass.py exists to find, and expects a complaint. It must have none about the text as it is.

    check_sass_mutants.py blackwell|hopper PTX CUBIN NVDISASM_DIRECTORY...
"""
import re
import sys

import check_hopper_sass
import check_sass
from check_sass import SKIPPED, complaints_about, disassemble, find_nvdisasm, is_general, read_bodies

STALL, WAITS = 41, 0x3F << 52  # of the upper word: the first bit of the stall count, the scoreboards that are waited for
INSTRUCTION = r'(?m)^(\s+/\*[0-9a-f]{4,}\*/\s+%s.*\n.*\n)'  # of such an opcode: two lines, the upper word on the second


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


def everywhere(pattern, replacement):
    def change(text):
        changed, count = re.subn(pattern, replacement, text, flags=re.M)
        if not count:
            raise ValueError('the disassembly has no ' + pattern)
        return changed
    return change


def stalled(opcode, cycles):
    """Every instruction of this opcode stalls its warp for so much longer."""
    def longer(match):
        before, upper, after = re.fullmatch(r'([\s\S]*0x)([0-9a-f]{16})(.*\n)', match[0]).groups()
        return '%s%016x%s' % (before, int(upper, 16) + (cycles << STALL), after)
    return lambda text: re.sub(INSTRUCTION % opcode, longer, text)


BEHIND_STORE = r'(STTM[\s\S]*?)'
# The change, and words of the complaint that it must give.
BLACKWELL = {
    'no instruction waits for its loads': (without_waits, 'LDTM on scoreboard'),
    'no store is waited for': (everywhere(r'FENCE\.VIEW\.ASYNC\.T', 'FENCE.VIEW.ASYNC.S'), 'STTM may be in flight'),
    'a store to local memory': (replaced(r'STS\.128 \[', 'STL.128 ['), 'local memory'),
    'a load from tensor memory less': (replaced(r'LDTM', 'NOP'), 'LDTM where the PTX has'),
    'a store to tensor memory less': (replaced(r'STTM', 'NOP'), 'STTM where the PTX has'),
    'P is handed over as a whole': (replaced(r'(STTM[\s\S]*?)SYNCS\.ARRIVE', r'\1NOP'), 'arrive of P stands behind'),
    'the first columns wait for the maximum': (everywhere(r'STTM\.x8', 'NOP'), 'store of P stands behind'),
    'an MMA less': (replaced(r'UTCHMMA', 'NOP'), 'UTCHMMA where the PTX has'),
    'a commit less': (replaced(r'UTCBAR', 'NOP'), 'UTCBAR where the PTX has'),
    'a bulk load less': (replaced(r'UTMALDG', 'NOP'), 'UTMALDG where the PTX has'),
    'a role without its registers': (replaced(r'USETMAXREG', 'NOP'), 'register counts'),
    'a role with other registers': (replaced(r'(USETMAXREG\S* [^;]*)0x[0-9a-f]+', r'\g<1>0x18'), 'register counts'),
    'a start with fewer registers': (replaced(r'(EIATTR_REGCOUNT[\s\S]*?index@[\s\S]*?\.word\s+)0x\w+', r'\g<1>0x78'),
                                     'starts with 120 registers'),
    'a register beyond the budget': (replaced(r'FFMA2 R\d+', 'FFMA2 R192'), 'the role with the most holds'),
    # Behind a store of P nothing is rare; the first exponential of all is. A tile with the polynomial has 18 FADD2.RM: 2.8 % of its
    # instructions, and one cycle more in each is 1.6 % to 1.8 % of its stalls.
    'an exponential less': (replaced(BEHIND_STORE + r'MUFU\.EX2', r'\1NOP'), 'loop: MUFU.EX2 '),
    'an exponential more': (replaced(BEHIND_STORE + r'FADD2', r'\1MUFU.EX2'), 'loop: MUFU.EX2 '),
    'a packed FMA taken apart': (replaced(r'FFMA2', 'FFMA'), 'loop: FFMA2 '),
    'a packed addition taken apart': (replaced(BEHIND_STORE + r'FADD2', r'\1FADD'), 'loop: FADD2 '),
    'a tile of more instructions': (everywhere(INSTRUCTION % r'FADD2\.RM', r'\1\1'), 'masked loop: instructions a tile '),
    'a tile of longer stalls': (stalled(r'FADD2\.RM', 1), 'masked loop: stall sum a tile '),
    'longer code for what is rare': (replaced(INSTRUCTION % r'MUFU\.EX2', r'\1' * 15), 'masked loop: instructions of the loop '),
    'more registers': (replaced(r'FFMA2 R\d+', 'FFMA2 R191'), 'loop: highest register 191'),
}

WAIT = r'WARPGROUP\.DEPBAR\.LE gsb0, '
# The text from a wait for scores on.
AFTER_SCORES = '(' + WAIT + r'0x1[\s\S]*?)'
HOPPER = {
    'the scores are awaited before the value product is issued': (
        replaced(r'WARPGROUP\.ARRIVE(?=(?:(?!HGMMA)[\s\S])*HGMMA[^;]*tnspB)', 'WARPGROUP.DEPBAR.LE gsb0, 0x0'),
        'before the value product is issued'),
    'the first wait of a step is for both products': (
        replaced(WAIT + '0x1', 'WARPGROUP.DEPBAR.LE gsb0, 0x0'), 'first wait behind both products'),
    'the value product is awaited before the exponentials': (
        replaced(AFTER_SCORES + r'MUFU\.EX2 ', r'\1WARPGROUP.DEPBAR.LE gsb0, 0x0 ; MUFU.EX2 '), 'exponentials run beside'),
    'an exponential behind the wait': (replaced(AFTER_SCORES + r'MUFU\.EX2', r'\1NOP'), 'exponentials run beside'),
    'a score MMA less': (replaced(r'HGMMA[^;]*, RZ, !UPT', 'NOP'), 'score product'),
    'a value MMA less': (replaced(r'HGMMA[^;]*tnspB', 'NOP'), 'value product'),
    'scores of another shape': (replaced(r'HGMMA\.64x128x16', 'HGMMA.64x64x16'), 'score product'),
    'a loop of more instructions': (everywhere(r'^(\s+/\*[0-9a-f]{4,}\*/\s+FFMA.*\n.*\n)', r'\1\1'), 'instructions for a block'),
    'a register beyond the budget': (replaced(r'FFMA R\d+', 'FFMA R250'), 'highest register'),
    'a store to local memory': (replaced(r'STSM\.', 'STL.'), 'local memory'),
    'a bulk load less': (replaced(r'UTMALDG', 'NOP'), 'UTMALDG where the PTX has'),
    'a consumer without its registers': (replaced(r'USETMAXREG', 'NOP'), 'register counts'),
}
KERNELS = {'blackwell': (check_sass.check_entry, BLACKWELL), 'hopper': (check_hopper_sass.check_entry, HOPPER)}


def without_others(text, bodies):
    """The disassembly and the PTX of head dimensions 64 and 128, without the general entries, whose loops have no bounds: a mutant changes
    the first entry, or all, and what it must exceed are the figures of these."""
    def is_other(entry):
        return is_general(entry) or not re.match(r'fa4_forward_b?f16_d(64|128)_', entry)
    sections = re.split(r'^(?=//-+ \.)', text, flags=re.M)
    entries = [re.match(r'//-+ \.text\.(\w+)', s) for s in sections]
    return (''.join(s for s, entry in zip(sections, entries) if not entry or not is_other(entry[1])),
            {entry: body for entry, body in bodies.items() if not is_other(entry)})


def main():
    check_entry, mutants = KERNELS[sys.argv[1]]
    nvdisasm = find_nvdisasm(sys.argv[4:])
    if not nvdisasm:
        print('skipped: there is no nvdisasm')
        return SKIPPED
    text, bodies = without_others(disassemble(nvdisasm, sys.argv[3]), read_bodies(sys.argv[2]))
    failed = [('as it is', c) for c in complaints_about(text, bodies, check_entry)]
    for name, (change, words) in mutants.items():
        found = complaints_about(change(text), bodies, check_entry)
        print('%s: %d complaints%s' % (name, len(found), ', first: ' + found[0] if found else ''))
        if not any(words in complaint for complaint in found):
            failed.append((name, 'no complaint says "%s"' % words))
    for name, complaint in failed:
        print('FAILED: %s: %s' % (name, complaint))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
