# SPDX-License-Identifier: Apache-2.0
"""Names of source files in PTX: the same wherever the tree and the toolkit lie. compile_ptx_test.py FOLDER_OF_COMPILE_PTX"""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv[1])
from compile_ptx import source_name  # noqa: E402


class SourceName(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name
        self.tree = os.path.join(self.scratch, 'tree')

    def name(self, path, toolkit):
        path = os.path.join(self.scratch, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, 'w').close()
        return source_name(path, self.tree, os.path.join(self.scratch, toolkit))

    def test_the_tree(self):
        self.assertEqual(self.name('tree/asm/attention/mask.cuh', 'cuda'), 'asm/attention/mask.cuh')

    def test_a_toolkit_beside_the_tree(self):
        self.assertEqual(self.name('cuda/include/cccl/nv/target', 'cuda'), 'cuda/include/cccl/nv/target')

    def test_a_toolkit_inside_the_tree(self):
        self.assertEqual(self.name('tree/.toolchain/cuda/include/cuda_fp16.h', 'tree/.toolchain/cuda'),
                         'cuda/include/cuda_fp16.h')

    def test_a_toolkit_whose_include_folder_is_a_link(self):
        os.makedirs(os.path.join(self.scratch, 'cuda/targets/x86_64-linux/include'))
        os.symlink('targets/x86_64-linux/include', os.path.join(self.scratch, 'cuda/include'))
        for path in ('cuda/include/cuda_fp16.h', 'cuda/targets/x86_64-linux/include/cuda_fp16.h'):
            self.assertEqual(self.name(path, 'cuda'), 'cuda/include/cuda_fp16.h')

    def test_a_tree_that_is_reached_through_a_link(self):
        os.makedirs(self.tree)
        os.symlink('tree', os.path.join(self.scratch, 'link'))
        self.assertEqual(self.name('link/asm/ptx/tma.cuh', 'cuda'), 'asm/ptx/tma.cuh')

    def test_what_lies_elsewhere_keeps_its_path(self):
        self.assertEqual(self.name('treeline/a.h', 'cuda'), os.path.realpath(os.path.join(self.scratch, 'treeline/a.h')))


unittest.main(argv=sys.argv[:1])
