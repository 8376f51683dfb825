# SPDX-License-Identifier: Apache-2.0
"""The documents against the tree: documents_test.py SOURCE_ROOT BUILD_ROOT NINJA."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT, BUILD = Path(sys.argv[1]), Path(sys.argv[2])
NINJA = sys.argv[3]
DOCUMENTS = [path for folder in (".", "docs", "examples", "tests/fuzz") for path in sorted((ROOT / folder).glob("*.md"))]


def ninja(*arguments):
    return subprocess.run([NINJA, "-C", BUILD, "-t", *arguments], check=True, capture_output=True, text=True).stdout


class Documents(unittest.TestCase):
    def test_what_the_readme_names_in_the_build_folder_is_built_by_tools_run(self):
        """tools/run builds the target command-line. Of a folder that is named, every file."""
        self.assertIn("ninja --quiet -C \"$root/build\" command-line\n", (ROOT / "tools/run").read_text(encoding="utf-8"))
        outputs = re.findall(r"^(\S+): ", ninja("targets", "all"), flags=re.M)
        words = set(ninja("commands", "command-line").split())
        named = set(re.findall(r"\bbuild/([\w./-]*\w)", (ROOT / "README.md").read_text(encoding="utf-8")))
        self.assertTrue(named)
        for path in sorted(named):
            files = [file for file in outputs
                     if file == path or str(Path(file).parent) == path and not file.endswith(".symbols")]
            self.assertTrue(files, f"README.md names build/{path}, which nothing builds")
            for file in files:
                self.assertTrue(file in words, f"README.md names build/{path}; tools/run does not build build/{file}")

    def test_links_lead_somewhere(self):
        for document in DOCUMENTS:
            text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
            for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
                if "://" not in target:
                    self.assertTrue((document.parent / target).exists(), f"{document}: {target} is not there")


unittest.main(argv=sys.argv[:1])
