# SPDX-License-Identifier: Apache-2.0
"""Reads the machine code that ptxas made of the kernel for Hopper and checks that the products still overlap with the softmax
as written: docs/sass.md says what and how.

    check_hopper_sass.py PTX CUBIN NVDISASM_DIRECTORY...

Exits with 77 (skipped) where there is no nvdisasm.
"""
import re
import sys

import check_sass
from check_sass import count_of, differences, is_exponential, judge, shortest_path, successors

COUNTED = {'HGMMA': r'\bwgmma\.mma_async\.', 'WARPGROUP.ARRIVE': r'\bwgmma\.fence\.',
           'WARPGROUP.DEPBAR': r'\bwgmma\.wait_group\.', 'BAR.ARV': r'\bbar\.arrive\b', 'STSM': r'\bstmatrix\.',
           'MUFU.EX2': r'\bex2\.',
           **{opcode: check_sass.COUNTED[opcode] for opcode in ('UTMALDG', 'UTMASTG', 'UTMACMDFLUSH', 'USETMAXREG')}}
MMA_K, WARPGROUP = 16, 128


class Tile:
    """Of a kernel: head dimensions of Q and K and of V that the products compute, keys of a block, whether there are two P, and how
    many instructions the steady loop may have for a block.

    With two P all exponentials of a block run beside the value product of the block before it. Else softmax awaits that product, and
    they run beside those of the other consumers."""

    def __init__(self, qk_dim, v_dim, block_keys, two_p, instructions):
        self.qk_dim, self.v_dim, self.block_keys, self.two_p, self.instructions = qk_dim, v_dim, block_keys, two_p, instructions
        self.exponentials = 64 * block_keys // WARPGROUP  # of a block, in a thread
        self.beside_values = self.exponentials if two_p else 0


# By the dimensions in an entry's name, and consumers.
TILES = {('64', 2): Tile(64, 64, 128, True, 330), ('64', 3): Tile(64, 64, 128, False, 330), ('96', 3): Tile(96, 96, 96, False, 280),
         ('128', 2): Tile(128, 128, 128, True, 345), ('192_128', 2): Tile(192, 128, 128, False, 378),
         ('256', 2): Tile(256, 256, 80, False, 305)}


def tile_of(ptx):
    dims = re.search(r'fa4_forward_\w+?_d(\d+(?:_\d+)?)_', ptx)[1]
    return TILES[dims, int(re.search(r'\.maxntid (\d+)', ptx)[1]) // WARPGROUP - 1]


class Product:
    """A score or value product: `steps` HGMMA from `begin` to `end`, which closes the group."""

    def __init__(self, begin):
        self.begin, self.end, self.steps, self.shapes, self.values = begin, None, 0, set(), False


def products(code):
    found, current = [], None
    for i, x in enumerate(code):
        if x.base() != 'HGMMA':
            continue
        current = current or Product(i)
        current.steps += 1
        current.shapes.add(x.opcode.split('.')[1])
        current.values = current.values or 'tnspB' in x.operands
        if 'gsb0' in x.operands:
            current.end = i
            found.append(current)
            current = None
    return found


def groups_left(x):
    """How many groups of MMAs a wait leaves in flight; None if it is no such wait."""
    match = re.match(r'gsb0, 0x(\d+)', x.operands) if x.opcode.startswith('WARPGROUP.DEPBAR') else None
    return int(match[1]) if match else None


def first_reached(code, following, start, is_stop):
    """Of the instructions for which is_stop holds, those that a path from `start` may come to first."""
    seen, queue, stops = set(), list(following[start]), set()
    while queue:
        i = queue.pop()
        if i in seen:
            continue
        seen.add(i)
        if is_stop(code[i]):
            stops.add(i)
        else:
            queue += following[i]
    return stops


def steps(code, following):
    """Of a consumer: ([(scores, values)] for every place where a value product follows the scores, [scores of the first
    block of all], complaints)."""
    all_products, complaints = products(code), []
    by_begin = {p.begin: p for p in all_products}
    found, alone = [], []
    for scores in (p for p in all_products if not p.values):
        reached = first_reached(code, following, scores.end, lambda x: x.base() == 'HGMMA' or groups_left(x) is not None)
        if reached and all(i in by_begin and by_begin[i].values for i in reached):
            found += [(scores, by_begin[i]) for i in reached]
        elif reached and all(groups_left(code[i]) == 0 for i in reached):
            alone.append(scores)
        else:
            complaints.append('behind a score product comes %s' % [code[i].text for i in sorted(reached)])
    return found, alone, complaints


def steady_loop(code, following):
    """The instructions of the shortest loop with a product in it, and how many blocks it takes."""
    loops = [shortest_path(code, following, scores.begin, lambda i, begin=scores.begin: i == begin)
             for scores, _ in steps(code, following)[0]]
    loop = [code[i] for i in min((loop for loop in loops if loop), key=len, default=[])]
    return loop, sum(not p.values for p in products(loop))


def beside_values(code, following, values):
    """The least number of exponentials on the way from the wait for the scores to the wait for the value product."""
    waits = first_reached(code, following, values.end, lambda x: groups_left(x) is not None)
    paths = [shortest_path(code, following, wait, lambda i: groups_left(code[i]) == 0, is_exponential) for wait in waits]
    return min((sum(is_exponential(code[i]) for i in path) for path in paths), default=0)


def check_products(code, following, tile):
    found, alone, complaints = steps(code, following)
    for what, values, wanted, shape in (('score', False, tile.qk_dim // MMA_K, '64x%dx16' % tile.block_keys),
                                        ('value', True, tile.block_keys // MMA_K, '64x%dx16' % tile.v_dim)):
        complaints += ['a %s product of %d HGMMA of shape %s, expected %d of %s'
                       % (what, p.steps, sorted(p.shapes), wanted, shape)
                       for p in products(code) if p.values == values and (p.steps != wanted or p.shapes != {shape})]
    # A masked block, an unmasked one and the first one of a task, for either of two P.
    wanted = 3 * (2 if tile.two_p else 1)
    if (len(found), len(alone)) != (wanted, 1):
        complaints.append('%d score products are awaited before the value product is issued and %d behind it, expected 1 and %d'
                          % (len(alone), len(found), wanted))
    for _, values in found:
        first = first_reached(code, following, values.end, lambda x: groups_left(x) is not None)
        if {groups_left(code[i]) for i in first} != {1}:
            complaints.append('the first wait behind both products is %s' % [code[i].text for i in sorted(first)])
        beside = beside_values(code, following, values)
        if beside < tile.beside_values:
            complaints.append('%d exponentials run beside the value product, expected %d' % (beside, tile.beside_values))
    return complaints


def check_steady_loop(code, following, tile):
    loop, blocks = steady_loop(code, following)
    if not blocks:
        return ['no loop with products was found']
    complaints = []
    for opcode, wanted in (('HGMMA', (tile.qk_dim + tile.block_keys) // MMA_K), ('MUFU.EX2', tile.exponentials), ('WARPGROUP.DEPBAR', 2),
                           ('BAR.SYNC', 1), ('BAR.ARV', 1)):
        if count_of(loop, opcode) != wanted * blocks:
            complaints.append('the steady loop has %d %s for %d blocks, expected %d for each'
                              % (count_of(loop, opcode), opcode, blocks, wanted))
    if len(loop) > tile.instructions * blocks:
        complaints.append('the steady loop has %d instructions for %d blocks, at most %d instructions for a block are allowed'
                          % (len(loop), blocks, tile.instructions))
    return complaints


def check_entry(ptx, code, labels):
    tile, following = tile_of(ptx), successors(code, labels)
    return differences(ptx, code, COUNTED) + check_products(code, following, tile) + check_steady_loop(code, following, tile)


def describe(code, labels):
    following = successors(code, labels)
    loop, blocks = steady_loop(code, following)
    beside = [beside_values(code, following, values) for _, values in steps(code, following)[0]]
    return ['steady loop: %d instructions for %d block(s); exponentials beside the value product: %s' % (len(loop), blocks, beside)]


def main():
    ptx_path, cubin, *directories = sys.argv[1:]
    return judge('machine code for Hopper', ptx_path, cubin, directories, COUNTED, check_entry, describe)


if __name__ == '__main__':
    sys.exit(main())
