# SPDX-License-Identifier: Apache-2.0
"""Holds the kernel for Hopper to what it promises: its entries, and register budgets of the roles that fit into what
the launch allots.

    check_hopper.py PTX PTXAS_LOG
"""
import re
import sys

from check_image import entry_bodies

ENTRIES = {'fa4_forward_%s_%s' % (element, shape) for element in ('f16', 'bf16')
           for shape in ['%s_%s' % (dims, mask) for dims in ('d64', 'd96', 'd128', 'd192_128', 'd256')
                         for mask in ('full', 'causal', 'general')] + ['d64_causal_short']}
WARPGROUP = 128


def main():
    ptx, log = (open(path).read() for path in sys.argv[1:3])
    failures = []
    bodies = entry_bodies(ptx)
    if set(bodies) != ENTRIES:
        failures.append('entries are %s, expected %s' % (sorted(bodies), sorted(ENTRIES)))
    threads = {m[1]: int(m[2]) for m in re.finditer(r'\.entry (\w+)\(.*?\.maxntid (\d+)', ptx, flags=re.S)}
    used = [int(x) for x in re.findall(r'Used (\d+) registers', log)]
    if len(used) != len(ENTRIES):
        failures.append('the assembler reports %d entries' % len(used))
    names = re.findall(r"Compiling entry function '(\w+)'", log)
    for name, launch in zip(names, used):
        body = bodies.get(name, '')
        budget = {m[1]: int(m[2]) for m in re.finditer(r'setmaxnreg\.(inc|dec)\.sync\.aligned\.u32 (\d+);', body)}
        if set(budget) != {'inc', 'dec'}:
            failures.append('%s: setmaxnreg of both roles expected, found %s' % (name, budget))
            continue
        consumers = threads[name] // WARPGROUP - 1
        wanted = WARPGROUP * (consumers * budget['inc'] + budget['dec'])
        if wanted > threads[name] * launch:
            failures.append('%s: roles want %d registers, the launch allots %d' % (name, wanted, threads[name] * launch))
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)


main()
