# SPDX-License-Identifier: Apache-2.0
"""Reads the machine code that ptxas made of the kernel for Blackwell and checks that it is still what the PTX means:
docs/sass.md says what and how. The reading and what holds for every kernel serve check_hopper_sass.py too.

    check_sass.py PTX CUBIN PTXAS NVDISASM_DIRECTORY...
    check_sass.py --set-table CUBIN NVDISASM_DIRECTORY...      puts the figures of this cubin into the table of docs/sass.md

Needs nvdisasm: in one of those directories, on PATH, or from the Python package nvidia-cuda-nvdisasm. Exits with 77
(skipped) where there is none.
"""
import collections
import glob
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
NO_NVDISASM = 'there is no nvdisasm beside nvcc, in .toolchain/, on PATH, or from "pip install nvidia-cuda-nvdisasm"'
DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'docs', 'sass.md')
SM_REGISTERS, REGISTER_UNIT = 65536, 8  # of a thread they are given out in units


def find_nvdisasm(directories):
    places = [os.path.join(directory, 'nvdisasm') for directory in directories] + [shutil.which('nvdisasm') or '']
    for path in sys.path:
        places += glob.glob(os.path.join(path, 'nvidia', '*', 'bin', 'nvdisasm'))
    return next((place for place in places if place and os.access(place, os.X_OK)), None)


class Instruction:
    """A guard ('' for none), an opcode, its operands, how many cycles its warp stalls after it, and the scoreboards: the one
    that it occupies until its result is there (7: none), and a mask of those that it waits for before it issues."""

    def __init__(self, text, high_word):
        match = re.match(r'(@!?U?P\w+ )?([A-Z][\w.]*)\s*(.*)', text)
        self.guard, self.opcode, self.operands = (match[1] or '').strip(), match[2], match[3]
        control = high_word >> 41
        self.stall = control & 15
        self.occupies, self.waits_for = control >> 5 & 7, control >> 11 & 63
        self.text = text

    def base(self):
        return self.opcode.split('.')[0]


def disassemble(nvdisasm, cubin):
    return subprocess.run([nvdisasm, '-hex', cubin], check=True, capture_output=True, text=True).stdout


def read_sections(text):
    """Of a disassembly: {section: (instructions, {label: index})}"""
    sections, current = {}, None
    lines = text.split('\n')
    for number, line in enumerate(lines):
        section = re.match(r'\s*\.section\s+(\.text\.)?([^,]+),', line)
        if section:
            current = sections.setdefault(section[2], ([], {})) if section[1] else None
        if not current:
            continue
        label = re.match(r'^([.$\w]+):\s*$', line)
        if label:
            current[1][label[1]] = len(current[0])
        code = re.match(r'\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s+/\* 0x([0-9a-f]{16}) \*/', line)
        if code:
            high = re.search(r'/\* 0x([0-9a-f]{16}) \*/', lines[number + 1])
            current[0].append(Instruction(code[1], int(high[1], 16)))
    return sections


def launch_registers(text):
    """{entry: registers of a thread when it starts} of a disassembly"""
    found = re.findall(r'EIATTR_REGCOUNT\n(?:(?!//).*\n)*?.*index@\((\w+)\)\s*\n.*\.word\s+0x([0-9a-f]+)', text)
    return {entry: int(count, 16) for entry, count in found}


def successors(code, labels):
    """For each instruction, the indices of those that may follow it. A return goes back to behind every call; a BSYNC goes
    on where the BSSY of its register says: right behind itself if any says so, else where any of them says."""
    def target(instruction):
        label = re.search(r'`\((.+?)\)', instruction.operands)
        if not label or label[1] not in labels:
            raise ValueError('no target in: ' + instruction.text)
        return labels[label[1]]

    returns = [i + 1 for i, x in enumerate(code) if x.base() == 'CALL']
    meeting = {}
    for x in code:
        if x.base() == 'BSSY':
            meeting.setdefault(x.operands.split(',')[0].strip(), []).append(target(x))
    result = []
    for i, x in enumerate(code):
        following = [i + 1] if i + 1 < len(code) else []
        base = x.base()
        if base in ('BRX', 'JMP', 'JMX', 'BRXU', 'BREAK'):
            raise ValueError('a jump that this check does not follow: ' + x.text)
        always = not x.guard and not re.match(r'!?U?P\d', x.operands)
        if base == 'BRA' or base == 'CALL':
            following = [target(x)] + ([] if always else following)
        elif base == 'RET':
            following = list(returns)
        elif base == 'BSYNC':
            targets = meeting.get(x.operands.strip(), [])
            following = following if i + 1 in targets else following + targets
        elif base in ('EXIT', 'BPT') and always:
            following = []
        result.append(following)
    return result


def flow(code, following, start, transfer):
    """The least fixed point of set-valued states before each instruction, from an empty state at `start`."""
    before = {start: frozenset()}
    queue = [start]
    while queue:
        i = queue.pop()
        after = transfer(code[i], before[i])
        for n in following[i]:
            merged = before.get(n, frozenset()) | after
            if n not in before or merged != before[n]:
                before[n] = merged
                queue.append(n)
    return before


def shortest_path(code, following, start, is_end, counts=lambda x: True):
    """The indices of a path from `start` to the first instruction behind it for which is_end(index) holds, without that, on
    which counts(instruction) holds least often. Empty where there is none."""
    came, cost = {}, {start: int(counts(code[start]))}
    queue, done = collections.deque([start]), set()
    while queue:
        i = queue.popleft()
        if i in done:
            continue
        done.add(i)
        for n in following[i]:
            if is_end(n):
                path = [i]
                while path[-1] != start:
                    path.append(came[path[-1]])
                return path[::-1]
            weight = int(counts(code[n]))
            if n not in cost or cost[i] + weight < cost[n]:
                came[n], cost[n] = i, cost[i] + weight
                (queue.append if weight else queue.appendleft)(n)
    return []


def publishes(x):
    """Whether what others do after it may touch the tensor memory that this warp used before."""
    return (x.opcode.startswith('SYNCS.ARRIVE') or x.base() in ('UTCBAR', 'BAR', 'EXIT', 'STTM') or x.opcode.startswith('UTCATOMSWS'))


def undrained_loads(code, following):
    """Complaints about tensor-memory loads that may be in flight when their warp arrives anywhere, or stores."""
    complaints = []

    def transfer(x, pending):
        pending = {sb for sb in pending if not x.waits_for >> sb & 1}
        drained = re.match(r'SB(\d), 0x0', x.operands) if x.base() == 'DEPBAR' else None
        if drained:
            pending.discard(int(drained[1]))
        if x.base() == 'LDTM':
            if x.occupies == 7:
                complaints.append('a load occupies no scoreboard: ' + x.text)
            pending.add(x.occupies)
        return frozenset(pending)

    states = flow(code, following, 0, transfer)
    complaints += ['no path was found to: ' + x.text for i, x in enumerate(code) if x.base() in ('LDTM', 'STTM', 'SYNCS') and i not in states]
    for i, pending in states.items():
        left = [sb for sb in pending if not code[i].waits_for >> sb & 1]
        if left and publishes(code[i]):
            complaints.append('LDTM on scoreboard %s may be in flight at: %s' % (left, code[i].text))
    return complaints


def hands_over_shared_memory(code, arrive):
    """Whether the arrive at that index stands behind a store to shared memory, with no tensor-memory store or other arrive
    between: it speaks for that one, the message of softmax to correction."""
    for x in reversed(code[:arrive]):
        if x.base() in ('SYNCS', 'STTM', 'BRA', 'BAR', 'EXIT'):
            return False
        if x.base() == 'STS':
            return True
    return False


def unfenced_stores(code, following):
    """Complaints about tensor-memory stores without FENCE.VIEW.ASYNC.T (tcgen05.wait::st) before the next arrive that may hand
    them over."""
    def transfer(x, pending):
        if x.base() == 'STTM':
            return frozenset({1})
        return frozenset() if x.opcode == 'FENCE.VIEW.ASYNC.T' else pending

    states = flow(code, following, 0, transfer)
    return ['STTM may be in flight at: ' + code[i].text for i, pending in states.items()
            if pending and publishes(code[i]) and code[i].base() != 'STTM' and not hands_over_shared_memory(code, i)]


# SASS opcode: the PTX instructions that it comes from, which must be there as often.
COUNTED = {'UTCHMMA': r'\btcgen05\.mma\.', 'UTCBAR': r'\btcgen05\.commit\.', 'LDTM': r'\btcgen05\.ld\.', 'STTM': r'\btcgen05\.st\.',
           'UTMALDG': r'\bcp\.async\.bulk\.tensor\.\dd\.shared', 'UTMASTG': r'\bcp\.async\.bulk\.tensor\.\dd\.global',
           'UTMACMDFLUSH': r'\bcp\.async\.bulk\.commit_group', 'USETMAXREG': r'\bsetmaxnreg\.'}


def register_counts(code):
    """Of USETMAXREG, in the order of the code: ('inc' or 'dec', registers)."""
    found = []
    for x in code:
        if x.base() == 'USETMAXREG':
            found.append(('inc' if 'TRY_ALLOC' in x.opcode else 'dec', int(re.search(r'0x([0-9a-f]+)$', x.operands)[1], 16)))
    return found


def is_exponential(x):
    return x.opcode.startswith('MUFU.EX2')


def softmax_loops(code, labels):
    """The innermost loops that load scores from tensor memory, compute exponentials and store them there: (index of the first
    instruction, of the last), longest first: the one with mask. A branch from outside a loop back into it, after a wait that had
    to spin, ends none: it is not reached from where it goes without leaving what lies between."""
    ranges, following = [], successors(code, labels)

    def goes_round(begin, end):
        inside, queue = {begin}, [begin]
        while queue:
            new = {n for n in following[queue.pop()] if begin <= n <= end} - inside
            inside |= new
            queue += new
        return end in inside

    for end, x in enumerate(code):
        label = re.search(r'`\((.+?)\)', x.operands) if x.base() == 'BRA' else None
        begin = labels.get(label[1], end + 1) if label else end + 1
        body = code[begin:end + 1]
        tensor_memory = [y.base() for y in body if y.base() in ('LDTM', 'STTM')]
        if tensor_memory[:1] == ['LDTM'] and 'STTM' in tensor_memory and any(is_exponential(y) for y in body) and goes_round(begin, end):
            ranges.append((begin, end))
    innermost = [(begin, end) for begin, end in ranges
                 if not any((b, e) != (begin, end) and begin <= b and e <= end for b, e in ranges)]
    return sorted(innermost, key=lambda loop: loop[0] - loop[1])


def is_general(entry):
    """Its softmax loops hold code for softcap and ALiBi beside, and the masked one serves both ends of a band: what is said of
    loops is said of the others."""
    return '_general' in entry


SOFTMAX_LOOPS = ('masked', 'unmasked')
# Of the exponentials of a tile that MUFU computes so many may stand before the first store of P, and such a share before the first
# arrive behind it: P leaves in two parts, the first while the second is computed.
# The first columns of an unmasked block do not wait for the maximum.
BEFORE_STORE_MASKED, BEFORE_STORE_MASKED_WITH_POLYNOMIAL, BEFORE_STORE_UNMASKED, SHARE_BEFORE_ARRIVE = 40, 45, 16, 0.76


def tile_of(code, following, begin, end):
    """The instructions of a tile, in the order of their issue: the shortest way once through the loop, where no maximum moves,
    no score is large, the mask hides nothing and no wait has to spin."""
    return [code[i] for i in shortest_path(code, following, begin, lambda i: i == end) + [end]]


def hand_over_of_p(tile):
    """(exponentials of a tile, those before its first store of P, those before the first arrive behind that)"""
    exponentials = [i for i, x in enumerate(tile) if is_exponential(x)]
    store = next((i for i, x in enumerate(tile) if x.base() == 'STTM'), len(tile))
    arrive = next((i for i, x in enumerate(tile) if i > store and x.opcode.startswith('SYNCS.ARRIVE')
                   and not hands_over_shared_memory(tile, i)), len(tile))
    return len(exponentials), sum(i < store for i in exponentials), sum(i < arrive for i in exponentials)


def late_hand_overs(code, following, loops, polynomial):
    """Complaints about softmax loops whose first part of P leaves no earlier than the rest."""
    complaints = []
    for name, (begin, end) in zip(SOFTMAX_LOOPS, loops):
        all_, before_store, before_arrive = hand_over_of_p(tile_of(code, following, begin, end))
        before = (BEFORE_STORE_UNMASKED if name == 'unmasked' else
                  BEFORE_STORE_MASKED_WITH_POLYNOMIAL if polynomial else BEFORE_STORE_MASKED)
        for what, number, bound in (('store', before_store, before),
                                    ('arrive', before_arrive, int(SHARE_BEFORE_ARRIVE * all_))):
            if number > bound:
                complaints.append('the first %s of P stands behind exponential %d of %d, at most %d are allowed'
                                  % (what, number, all_, bound))
    return complaints


def highest_register(code):
    return max(map(int, re.findall(r'\bR(\d+)', '\n'.join(x.operands for x in code))))


def count_of(code, opcode):
    return sum((x.opcode + '.').startswith(opcode + '.') for x in code)


# The figures of a softmax loop that the table of docs/sass.md holds: those of EXACT just so, the others at most GROWTH above it.
EXACT, GROWTH = ('MUFU.EX2', 'FFMA2', 'FADD2'), 0.015
FIGURES = EXACT + ('instructions a tile', 'stall sum a tile', 'instructions of the loop', 'highest register')
TABLE_HEAD = ('| entry | loop | %s |\n' % ' | '.join('`%s`' % f if f in EXACT else f for f in FIGURES)
              + '|---|---|' + '---|' * len(FIGURES) + '\n')


def figures(code, following, begin, end):
    """Of a softmax loop, in the order of FIGURES."""
    tile = tile_of(code, following, begin, end)
    return tuple(count_of(tile, opcode) for opcode in EXACT) + (
        len(tile), sum(x.stall for x in tile), end + 1 - begin, highest_register(code))


def kind_of(entry):
    """What the table calls it: the entry without its element type, on which no figure depends."""
    return re.sub(r'^fa4_forward_b?f16_', '', entry)


def split_document():
    """(what stands before the rows of the table, the rows, what stands behind them)"""
    with open(DOCUMENT, encoding='utf-8') as file:
        before, head, rest = file.read().partition(TABLE_HEAD)
    rows = re.match(r'(?:\|.*\n)*', rest)[0]
    return before + head, rows, rest[len(rows):]


def read_table():
    """{(kind of entry, loop): figures}, empty where docs/sass.md has no table of this head."""
    rows = [[cell.strip() for cell in row.strip('|').split('|')] for row in split_document()[1].splitlines()]
    if any(len(row) != 2 + len(FIGURES) for row in rows):
        raise ValueError('a row of %s has not %d cells' % (DOCUMENT, 2 + len(FIGURES)))
    return {(kind, loop): tuple(map(int, numbers)) for kind, loop, *numbers in rows}


def set_table(sections):
    """Writes it: of the entries of a kind, the largest of each figure."""
    rows = {}
    for entry, (code, labels) in sections.items():
        if is_general(entry):
            continue
        following = successors(code, labels)
        loops = softmax_loops(code, labels)
        if len(loops) != len(SOFTMAX_LOOPS):
            sys.exit('%s has %d softmax loops, expected %d' % (entry, len(loops), len(SOFTMAX_LOOPS)))
        for name, loop in zip(SOFTMAX_LOOPS, loops):
            found = figures(code, following, *loop)
            rows[kind_of(entry), name] = tuple(map(max, found, rows.get((kind_of(entry), name), found)))
    before, _, behind = split_document()
    if not before.endswith(TABLE_HEAD):
        raise ValueError('%s has no table with the head\n%s' % (DOCUMENT, TABLE_HEAD))
    with open(DOCUMENT, 'w', encoding='utf-8') as file:
        file.write(before + ''.join('| %s |\n' % ' | '.join(map(str, key + row)) for key, row in sorted(rows.items())) + behind)


def losses(entry, code, following, loops):
    """Complaints about figures of the softmax loops that are not those of the table, or too far above them."""
    complaints, table = [], read_table()
    for name, loop in zip(SOFTMAX_LOOPS, loops):
        if (kind_of(entry), name) not in table:
            complaints.append('%s loop: the table of docs/sass.md has no row "%s | %s"' % (name, kind_of(entry), name))
            continue
        for figure, got, held in zip(FIGURES, figures(code, following, *loop), table[kind_of(entry), name]):
            bound = held if figure in EXACT else math.floor(held * (1 + GROWTH))
            if got > bound or figure in EXACT and got != held:
                allowed = str(held) if figure in EXACT else 'at most %d (%d and %g %%)' % (bound, held, 100 * GROWTH)
                complaints.append('%s loop: %s %d, docs/sass.md allows %s' % (name, figure, got, allowed))
    return complaints


def rows_of_nothing(entries):
    """Complaints about rows of the table that belong to no entry."""
    return ['the row "%s | %s" of docs/sass.md belongs to no entry' % key for key in sorted(read_table())
            if key[0] not in map(kind_of, entries) or key[1] not in SOFTMAX_LOOPS]


def differences(ptx, code, counted):
    """Complaints about local memory, and about instructions and register counts that are not those of the PTX. `counted` is
    like COUNTED."""
    complaints = [x.text + ': local memory' for x in code if x.base() in ('LDL', 'STL')]
    for opcode, pattern in counted.items():
        wanted, got = len(re.findall(pattern, ptx)), count_of(code, opcode)
        if wanted != got:
            complaints.append('%d %s where the PTX has %d' % (got, opcode, wanted))
    wanted = sorted((m[1], int(m[2])) for m in re.finditer(r'setmaxnreg\.(inc|dec)\.sync\.aligned\.u32 (\d+);', ptx))
    if sorted(register_counts(code)) != wanted:
        complaints.append('register counts %s where the PTX has %s' % (sorted(register_counts(code)), wanted))
    budget = max((registers for _, registers in register_counts(code)), default=0)
    if highest_register(code) >= budget:
        complaints.append('the highest register is R%d, the role with the most holds %d' % (highest_register(code), budget))
    return complaints


def check_entry(ptx, code, labels):
    entry = re.search(r'\b(fa4_forward_\w+)_param_0\b', ptx)[1]
    following = successors(code, labels)
    complaints = differences(ptx, code, COUNTED) + undrained_loads(code, following) + unfenced_stores(code, following)
    if is_general(entry):
        return complaints
    loops = softmax_loops(code, labels)
    complaints += late_hand_overs(code, following, loops, entry.endswith('_polynomial')) + losses(entry, code, following, loops)
    if len(loops) != len(SOFTMAX_LOOPS):
        complaints.append('%d softmax loops, expected %d' % (len(loops), len(SOFTMAX_LOOPS)))
    return complaints


def describe_loops(code, labels):
    following = successors(code, labels)
    return ['softmax loop: %s; of %d exponentials, P stored from %d and handed over from %d'
            % ((', '.join('%s %d' % pair for pair in zip(FIGURES, figures(code, following, begin, end))),)
               + hand_over_of_p(tile_of(code, following, begin, end))) for begin, end in softmax_loops(code, labels)]


NEGATIVE = '''.version 9.0
.target sm_100a
.address_size 64
.visible .entry probe(.param .u32 a, .param .u64 out)
.maxntid 128, 1, 1
{
  .reg .b32 %r<4>;
  .reg .b64 %d<2>;
  ld.param.u32 %r1, [a];
  ld.param.u64 %d1, [out];
  BODY
  ret;
}
'''
LOAD = 'tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];'
ARRIVE = 'mbarrier.arrive.shared::cta.b64 _, [%r1];'
KEEP = 'st.global.b32 [%d1], %r2;'
STORE = 'tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r1};'
PROBES = [(LOAD + 'tcgen05.wait::ld.sync.aligned;' + ARRIVE + KEEP, 0), (LOAD + ARRIVE + KEEP, 1),
          (STORE + 'tcgen05.wait::st.sync.aligned;' + ARRIVE, 0), (STORE + ARRIVE, 1)]


def check_probes(nvdisasm, ptxas):
    """The reading of scoreboards and fences, tried on code with and without the waits."""
    complaints = []
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = os.path.join(folder, 'probe.ptx'), os.path.join(folder, 'probe.cubin')
        for body, wrong in PROBES:
            with open(source, 'w') as file:
                file.write(NEGATIVE.replace('BODY', body))
            subprocess.run([ptxas, '-arch=sm_100a', source, '-o', cubin], check=True)
            code, labels = read_sections(disassemble(nvdisasm, cubin))['probe']
            following = successors(code, labels)
            found = undrained_loads(code, following) + unfenced_stores(code, following)
            if bool(found) != bool(wrong):
                complaints.append('this check no longer understands the machine code: of "%s" it says %s' % (body, found))
    return complaints


def read_bodies(ptx_path):
    """{entry: its PTX}"""
    with open(ptx_path) as file:
        return {m[1]: m[2] for m in re.finditer(r'^\.visible \.entry (\w+)\((.*?)^\}', file.read(), flags=re.M | re.S)}


def record(line):
    """For tests/record."""
    if 'FA4_RECORD' in os.environ:
        with open(os.environ['FA4_RECORD'], 'a') as file:
            file.write(line + '\n')


def complaints_about(text, bodies, check):
    """About the disassembly of one kernel: check(ptx, code, labels) complains about an entry."""
    sections, registers, complaints = read_sections(text), launch_registers(text), []
    if not bodies or set(bodies) != set(sections):
        complaints.append('entries %s where the PTX has %s' % (sorted(sections), sorted(bodies)))
    for name in sorted(set(bodies) & set(sections)):
        threads = int(re.search(r'\.maxntid (\d+)', bodies[name])[1])
        wanted = SM_REGISTERS // threads // REGISTER_UNIT * REGISTER_UNIT
        if registers.get(name) != wanted:
            complaints.append('%s: starts with %s registers a thread, expected %d' % (name, registers.get(name), wanted))
        complaints += [name + ': ' + c for c in check(bodies[name], *sections[name])]
    return complaints


def judge(title, ptx_path, cubin, directories, counted, check, describe, probe=lambda nvdisasm: []):
    """The exit status of a check of one kernel: check is that of complaints_about, describe(code, labels) says a line for each
    loop of an entry, probe(nvdisasm) complains about the check itself. What is recorded begins with `title`."""
    nvdisasm = find_nvdisasm(directories)
    if not nvdisasm:
        print('skipped: ' + NO_NVDISASM)
        return SKIPPED
    bodies, text = read_bodies(ptx_path), disassemble(nvdisasm, cubin)
    for name, (code, labels) in sorted(read_sections(text).items()):
        counts = ', '.join('%d %s' % (count_of(code, op), op) for op in counted)
        size = '%s: %d instructions, stall sum %d, highest register R%d' % (
            name, len(code), sum(x.stall for x in code), highest_register(code))
        record(title + ': ' + size)
        print('%s, %s; registers %s' % (size, counts, register_counts(code)))
        for line in describe(code, labels):
            print('  ' + line)
    complaints = probe(nvdisasm) + complaints_about(text, bodies, check)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


def main():
    if sys.argv[1] == '--set-table':
        nvdisasm = find_nvdisasm(sys.argv[3:])
        if not nvdisasm:
            sys.exit(NO_NVDISASM)
        set_table(read_sections(disassemble(nvdisasm, sys.argv[2])))
        return 0
    ptx_path, cubin, ptxas = sys.argv[1:4]
    return judge('machine code', ptx_path, cubin, sys.argv[4:], COUNTED, check_entry, describe_loops,
                 lambda nvdisasm: check_probes(nvdisasm, ptxas) + rows_of_nothing(read_bodies(ptx_path)))


if __name__ == '__main__':
    sys.exit(main())
