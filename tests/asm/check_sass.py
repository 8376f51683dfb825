# SPDX-License-Identifier: Apache-2.0
"""Reads the machine code that ptxas made of the kernel for Blackwell and checks that it is still what the PTX means:
docs/sass.md says what and how. The reading and what holds for every kernel serve check_hopper_sass.py too.

    check_sass.py PTX CUBIN PTXAS NVDISASM_DIRECTORY...

Needs nvdisasm: in one of those directories, on PATH, or from the Python package nvidia-cuda-nvdisasm. Exits with 77
(skipped) where there is none.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


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
    return subprocess.run([nvdisasm, '-c', '-hex', cubin], check=True, capture_output=True, text=True).stdout


def read_sections(text):
    """Of a disassembly: {section: (instructions, {label: index})}"""
    sections, current = {}, None
    lines = text.split('\n')
    for number, line in enumerate(lines):
        section = re.match(r'\s*\.section\s+\.text\.([\w$]+),', line)
        if section:
            current = sections.setdefault(section[1], ([], {}))
        label = re.match(r'^([.$\w]+):\s*$', line)
        if label and current:
            current[1][label[1]] = len(current[0])
        code = re.match(r'\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s+/\* 0x([0-9a-f]{16}) \*/', line)
        if code:
            high = re.search(r'/\* 0x([0-9a-f]{16}) \*/', lines[number + 1])
            current[0].append(Instruction(code[1], int(high[1], 16)))
    return sections


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


def publishes(x):
    """Whether what others do after it may touch the tensor memory that this warp used before."""
    return (x.opcode.startswith('SYNCS.ARRIVE') or x.base() in ('UTCBAR', 'BAR', 'EXIT', 'STTM') or x.opcode.startswith('UTCATOMSWS'))


def undrained_loads(code, labels):
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

    states = flow(code, successors(code, labels), 0, transfer)
    complaints += ['no path was found to: ' + x.text for i, x in enumerate(code) if x.base() in ('LDTM', 'STTM', 'SYNCS') and i not in states]
    for i, pending in states.items():
        left = [sb for sb in pending if not code[i].waits_for >> sb & 1]
        if left and publishes(code[i]):
            complaints.append('LDTM on scoreboard %s may be in flight at: %s' % (left, code[i].text))
    return complaints


def unfenced_stores(code, labels):
    """Complaints about tensor-memory stores without FENCE.VIEW.ASYNC.T (tcgen05.wait::st) before the next arrive."""
    def transfer(x, pending):
        if x.base() == 'STTM':
            return frozenset({1})
        return frozenset() if x.opcode == 'FENCE.VIEW.ASYNC.T' else pending

    states = flow(code, successors(code, labels), 0, transfer)
    return ['STTM may be in flight at: ' + code[i].text for i, pending in states.items()
            if pending and publishes(code[i]) and code[i].base() != 'STTM']


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
    """The innermost loops that load scores from tensor memory, compute exponentials and store them there, each as its
    instructions in order of issue. A branch that goes back to behind the loads, after a wait that had to spin, ends none."""
    ranges = []
    for end, x in enumerate(code):
        label = re.search(r'`\((.+?)\)', x.operands) if x.base() == 'BRA' else None
        begin = labels.get(label[1], end + 1) if label else end + 1
        body = code[begin:end + 1]
        tensor_memory = [y.base() for y in body if y.base() in ('LDTM', 'STTM')]
        if tensor_memory[:1] == ['LDTM'] and 'STTM' in tensor_memory and any(is_exponential(y) for y in body):
            ranges.append((begin, end))
    return [code[begin:end + 1] for begin, end in ranges
            if not any((b, e) != (begin, end) and begin <= b and e <= end for b, e in ranges)]


SOFTMAX_LOOPS = 2  # with and without mask
# Of the exponentials of a loop (those of a row that MUFU computes, and the factor of the maximum that moved), so many may stand
# before the first store of P, and such a share before the first arrive behind it: P leaves in two parts, the first while
# the second is computed.
ALL_BY_MUFU = 129
EXPONENTIALS_BEFORE_STORE, BEFORE_STORE_WITH_POLYNOMIAL, SHARE_BEFORE_ARRIVE = 40, 45, 0.76


def hand_over_of_p(loop):
    """(exponentials of the loop, those before its first store of P, those before the first arrive behind that)"""
    exponentials = [i for i, x in enumerate(loop) if is_exponential(x)]
    store = next(i for i, x in enumerate(loop) if x.base() == 'STTM')
    arrive = next((i for i, x in enumerate(loop) if i > store and x.opcode.startswith('SYNCS.ARRIVE')), len(loop))
    return len(exponentials), sum(i < store for i in exponentials), sum(i < arrive for i in exponentials)


def late_hand_overs(code, labels):
    """Complaints about softmax loops whose first part of P leaves no earlier than the rest."""
    loops = softmax_loops(code, labels)
    complaints = [] if len(loops) == SOFTMAX_LOOPS else ['%d softmax loops, expected %d' % (len(loops), SOFTMAX_LOOPS)]
    for loop in loops:
        all_, before_store, before_arrive = hand_over_of_p(loop)
        before = EXPONENTIALS_BEFORE_STORE if all_ == ALL_BY_MUFU else BEFORE_STORE_WITH_POLYNOMIAL
        for what, number, bound in (('store', before_store, before),
                                    ('arrive', before_arrive, int(SHARE_BEFORE_ARRIVE * all_))):
            if number > bound:
                complaints.append('the first %s of P stands behind exponential %d of %d, at most %d are allowed'
                                  % (what, number, all_, bound))
    return complaints


def highest_register(code):
    return max(int(r) for x in code for r in re.findall(r'\bR(\d+)', x.operands))


def count_of(code, opcode):
    return sum((x.opcode + '.').startswith(opcode + '.') for x in code)


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
    return complaints


def check_entry(ptx, code, labels):
    return (differences(ptx, code, COUNTED) + undrained_loads(code, labels) + unfenced_stores(code, labels)
            + late_hand_overs(code, labels))


def describe_loops(code, labels):
    return ['softmax loop: %d instructions, %d exponentials, P stored from %d and handed over from %d' %
            ((len(loop),) + hand_over_of_p(loop)) for loop in softmax_loops(code, labels)]


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
            found = undrained_loads(code, labels) + unfenced_stores(code, labels)
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


def judge(title, ptx_path, cubin, directories, counted, check, describe, probe=lambda nvdisasm: []):
    """The exit status of a check of one kernel: check(ptx, code, labels) complains about an entry, describe(code, labels) says
    a line for each of its loops, probe(nvdisasm) complains about the check itself. What is recorded begins with `title`."""
    nvdisasm = find_nvdisasm(directories)
    if not nvdisasm:
        print('skipped: there is no nvdisasm beside nvcc, in .toolchain/, on PATH, or from "pip install nvidia-cuda-nvdisasm"')
        return SKIPPED
    bodies, sections = read_bodies(ptx_path), read_sections(disassemble(nvdisasm, cubin))
    complaints = probe(nvdisasm)
    if not bodies or set(bodies) != set(sections):
        complaints.append('entries %s where the PTX has %s' % (sorted(sections), sorted(bodies)))
    for name in sorted(set(bodies) & set(sections)):
        code, labels = sections[name]
        counts = ', '.join('%d %s' % (count_of(code, op), op) for op in counted)
        size = '%s: %d instructions, stall sum %d, highest register R%d' % (
            name, len(code), sum(x.stall for x in code), highest_register(code))
        record(title + ': ' + size)
        print('%s, %s; registers %s' % (size, counts, register_counts(code)))
        for line in describe(code, labels):
            print('  ' + line)
        complaints += [name + ': ' + c for c in check(bodies[name], code, labels)]
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


def main():
    ptx_path, cubin, ptxas = sys.argv[1:4]
    return judge('machine code', ptx_path, cubin, sys.argv[4:], COUNTED, check_entry, describe_loops,
                 lambda nvdisasm: check_probes(nvdisasm, ptxas))


if __name__ == '__main__':
    sys.exit(main())
