# SPDX-License-Identifier: Apache-2.0
"""What ptxas may say for a build to go on: assemble_test.py ASSEMBLE PTXAS"""
import os
import subprocess
import sys
import tempfile
import unittest

ASSEMBLE, PTXAS = sys.argv[1:3]

HEAD = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 out)
{
"""
QUIET = HEAD + """  ret;
}
"""
# The address of `room` goes away in a register: it stays in memory.
STACK = HEAD + """  .local .align 4 .b8 room[64];
  .reg .b32 %r<3>;
  .reg .b64 %d<5>;
  ld.param.u64 %d0, [out];
  mov.u64 %d1, room;
  cvta.local.u64 %d2, %d1;
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %d3, %r0, 4;
  add.u64 %d4, %d1, %d3;
  st.local.u32 [%d4], %r0;
  st.global.u64 [%d0], %d2;
  ret;
}
"""
# The accumulator is written between two products without a wait: the assembler makes one wait for the other.
WAITING = HEAD + """  .reg .f32 %f<4>;
  .reg .b64 %d<3>;
  .reg .pred %p;
  ld.param.u64 %d0, [out];
  mov.u64 %d1, 0;
  setp.ne.u32 %p, 0, 1;
  mov.f32 %f0, 0f00000000;
  mov.f32 %f1, 0f00000000;
  mov.f32 %f2, 0f00000000;
  mov.f32 %f3, 0f00000000;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d1, %d1, %p, 1, 1, 0, 0;
  add.f32 %f0, %f0, 0f3f800000;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d1, %d1, %p, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  st.global.f32 [%d0], %f0;
  ret;
}
"""


class Assemble(unittest.TestCase):
    def assemble(self, ptx, *options):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        source, output, log = (os.path.join(scratch.name, name) for name in ('in.ptx', 'out.cubin', 'log'))
        with open(source, 'w') as file:
            file.write(ptx)
        result = subprocess.run([sys.executable, ASSEMBLE, PTXAS, source, output, log, '-arch=sm_90a', *options],
                                capture_output=True, text=True)
        self.assertEqual(os.path.exists(output), result.returncode == 0)
        with open(log) as file:
            return result.returncode, result.stderr, file.read()

    def test_nothing(self):
        code, shown, log = self.assemble(QUIET)
        self.assertEqual((code, shown), (0, ''))
        self.assertIn('Compiling entry function', log)

    def test_an_error(self):
        code, shown, log = self.assemble(QUIET.replace('ret', 'rett'))
        self.assertEqual((code, shown), (1, log))
        self.assertIn('line 6', shown)

    def test_remarks(self):
        for ptx, said in ((STACK, '64 bytes stack frame'), (WAITING, 'warpgroup.wait is injected')):
            with self.subTest(said):
                code, shown, log = self.assemble(ptx)
                self.assertEqual(code, 1)
                self.assertIn(said, shown)
                self.assertIn(said, log)
                self.assertNotIn('Compiling entry', shown)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
