# SPDX-License-Identifier: Apache-2.0
"""The documents against the tree: documents_test.py SOURCE_ROOT BUILD_ROOT NINJA MESON."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT, BUILD = Path(sys.argv[1]), Path(sys.argv[2])
NINJA, MESON = sys.argv[3:5]
DOCUMENTS = [path for folder in (".", "docs", "examples", "tests/fuzz") for path in sorted((ROOT / folder).glob("*.md"))]


def ninja(*arguments):
    return subprocess.run([NINJA, "-C", BUILD, "-t", *arguments], check=True, capture_output=True, text=True).stdout


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def dense(code):
    """C without comments and white space."""
    return re.sub(r"/\*.*?\*/|//[^\n]*|\s+", "", code, flags=re.S)


class Documents(unittest.TestCase):
    def test_what_the_readme_names_in_the_build_folder_is_built_by_tools_run(self):
        """tools/run builds the target command-line. Of a folder that is named, every file."""
        self.assertIn("ninja --quiet -C \"$root/build\" command-line\n", text_of("tools/run"))
        outputs = re.findall(r"^(\S+): ", ninja("targets", "all"), flags=re.M)
        words = set(ninja("commands", "command-line").split())
        named = set(re.findall(r"\bbuild/([\w./-]*\w)", text_of("README.md")))
        self.assertTrue(named)
        for path in sorted(named):
            files = [file for file in outputs
                     if file == path or str(Path(file).parent) == path and not file.endswith(".symbols")]
            self.assertTrue(files, f"README.md names build/{path}, which nothing builds")
            for file in files:
                self.assertTrue(file in words, f"README.md names build/{path}; tools/run does not build build/{file}")

    def test_links_lead_somewhere(self):
        for document in DOCUMENTS:
            text = re.sub(r"^```.*?^```", "", text_of(document), flags=re.M | re.S)
            for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
                if "://" not in target:
                    self.assertTrue((document.parent / target).exists(), f"{document}: {target} is not there")

    def test_programs_in_the_readme_are_those_of_the_examples(self):
        for language, example in (("c", "examples/forward.c"), ("cpp", "examples/forward.cpp")):
            blocks = re.findall(rf"^```{language}\n(.*?)^```", text_of("README.md"), flags=re.M | re.S)
            self.assertEqual(len(blocks), 1, f"programs in {language}")
            program, at = dense(text_of(example)), 0
            for paragraph in map(dense, blocks[0].split("\n\n")):
                found = program.find(paragraph, at)
                self.assertGreaterEqual(found, 0, f"README.md has what is not in {example}: {paragraph}")
                at = found + len(paragraph)

    def test_files_that_are_named_are_there(self):
        """Names between backticks that begin with a folder of the tree; with build/, targets."""
        outputs = ninja("targets", "all")
        for document in DOCUMENTS:
            for name in re.findall(r"`((?:asm|build|docs|examples|runtime|tests|tools)/[\w./-]+)", text_of(document)):
                there = f"\n{name[6:].rstrip('/')}: " in outputs if name.startswith("build/") else (ROOT / name).exists()
                if name != "build/tools/sim/cudart":  # a folder of targets, looked at above
                    self.assertTrue(there, f"{document}: {name} is not there")

    def test_suites_that_are_named_are_there(self):
        suites = subprocess.run([MESON, "introspect", BUILD, "--tests"], check=True, capture_output=True, text=True).stdout
        for document in DOCUMENTS:
            for suite in re.findall(r"--suite (\w+)", text_of(document)):
                self.assertIn(f'"fa4:{suite}"', suites, f"{document}: there is no suite {suite}")

    def test_the_index_lists_every_document(self):
        index = text_of("docs/README.md")
        for document in (ROOT / "docs").glob("*.md"):
            if document.name != "README.md":
                self.assertIn(f"]({document.name})", index)


unittest.main(argv=sys.argv[:1])
