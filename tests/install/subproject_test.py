# SPDX-License-Identifier: Apache-2.0
"""Builds a small Meson project that has this tree as a subproject, and runs its program."""

import argparse
import pathlib
import shutil
import tempfile

from support import run

HERE = pathlib.Path(__file__).resolve().parent

CONSUMER = """
project('consumer', 'c', default_options: 'c_std=c11')
cuda_include = include_directories('{cuda_include}', is_system: true)
executable('consumer', 'forward.c', c_args: '-D_GNU_SOURCE', include_directories: cuda_include,
  dependencies: [dependency('fa4', fallback: 'fa4'), meson.get_compiler('c').find_library('m'),
                 meson.get_compiler('c').find_library('dl', required: false)])
"""

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--meson", required=True)
parser.add_argument("--source-root", type=pathlib.Path, required=True)
parser.add_argument("--nvcc", required=True)
parser.add_argument("--cuda-include", required=True, help="folder of cuda.h")
parser.add_argument("--driver", help="driver library to run the program on; without it it is only built")
arguments = parser.parse_args()

with tempfile.TemporaryDirectory(prefix="fa4-subproject-") as scratch:
    project, build = pathlib.Path(scratch) / "project", pathlib.Path(scratch) / "build"
    (project / "subprojects").mkdir(parents=True)
    (project / "subprojects" / "fa4").symlink_to(arguments.source_root)
    (project / "meson.build").write_text(CONSUMER.format(cuda_include=arguments.cuda_include), encoding="utf-8")
    for name in ("forward.c", "small_attention.h"):
        shutil.copy(HERE / name, project)
    run([arguments.meson, "setup", "--force-fallback-for=fa4", f"-Dfa4:nvcc={arguments.nvcc}", build, project])
    run([arguments.meson, "compile", "-C", build])
    if arguments.driver:
        run([build / "consumer", arguments.driver], env={"LD_LIBRARY_PATH": ""})
    else:
        print("no driver library was given: the program was built and not run")
