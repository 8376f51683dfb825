# SPDX-License-Identifier: Apache-2.0
"""What tests/gpu/sanitize makes of what a sanitizer prints: sanitize_test.py SANITIZE. A script stands in for
compute-sanitizer."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SANITIZE = sys.argv[1]


def run(prints, code=0, timeout=20, sleep=0, tool="memcheck", disassembly=""):
    with tempfile.TemporaryDirectory() as folder:
        nvdisasm = Path(folder) / "nvdisasm"
        nvdisasm.write_text(f"#!/bin/sh\ncat <<'END'\n{disassembly}\nEND\n", encoding="utf-8")
        nvdisasm.chmod(0o755)
        sanitizer = Path(folder) / "compute-sanitizer"
        sanitizer.write_text(f"#!/bin/sh\nsleep {sleep}\ncat <<'END'\n{prints}\nEND\nexit {code}\n", encoding="utf-8")
        sanitizer.chmod(0o755)
        result = subprocess.run([sys.executable, SANITIZE, "--sanitizer", sanitizer, "--program", "/bin/true", "--tool", tool,
                                 "--timeout", str(timeout), "--nvdisasm", nvdisasm, "--cubin", "/bin/true"],
                                capture_output=True, text=True, timeout=60)
        return result.returncode, result.stdout


class Sanitize(unittest.TestCase):
    def test_clean(self):
        code, text = run("32 small problems\n========= ERROR SUMMARY: 0 errors")
        self.assertEqual((code, "clean, 32 problems" in text), (0, True), text)
        code, text = run("32 small problems\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)")
        self.assertEqual(code, 0, text)

    def test_findings(self):
        code, text = run("32 small problems\n========= ERROR SUMMARY: 3 errors", 9)
        self.assertEqual((code, "3 found" in text), (1, True), text)
        code, text = run("========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)", 9)
        self.assertEqual(code, 1, text)

    def test_task_records(self):
        race = """========= Error: Race reported between Read access at f+0xb00
=========     and Write access at f+0x1c020 [8 hazards]
32 small problems
All tests passed
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"""
        text = "  .text.f:\n /*0b00*/   LDS.128 R4, [UR7+0x380b0] ;\n /*1c020*/   @P1 STS.128 [R3+%s], R4 ;"
        code, sentence = run(race, 9, tool="racecheck", disassembly=text % "0x380b0")
        self.assertEqual((code, "1 reports of task records" in sentence), (0, True), sentence)
        self.assertEqual(run(race, 9, tool="racecheck", disassembly=text % "0x380c0")[0], 1)
        self.assertEqual(run(race, 9, tool="racecheck")[0], 1)
        self.assertEqual(run(race, 1, tool="racecheck", disassembly=text % "0x380b0")[0], 1)
        self.assertEqual(run(race.replace("All tests passed", ""), 9, tool="racecheck", disassembly=text % "0x380b0")[0], 1)
        tile = " .text.f:\n /*0b00*/   LDS.128 R4, [R2+UR8+0x28800] ;\n /*1c020*/   STS.128 [R2+UR8+0x28800], R4 ;"
        for disassembly in (tile, tile.replace("+UR8", "").replace("0x28800", "0x800")):
            self.assertEqual(run(race, 9, tool="racecheck", disassembly=disassembly)[0], 1)
        self.assertEqual(run(race.replace("1 hazard ", "2 hazards "), 9, tool="racecheck", disassembly=text % "0x380b0")[0], 1)

    def test_what_is_no_answer_is_not_clean(self):
        self.assertEqual(run("========= ERROR SUMMARY: 0 errors")[0], 2)
        self.assertEqual(run("no GPU", 77)[0], 2)
        self.assertEqual(run("32 small problems\n========= ERROR SUMMARY: 0 errors", 1)[0], 1)
        self.assertEqual(run("32 small problems", sleep=5, timeout=1)[0], 2)


unittest.main(argv=sys.argv[:1])
