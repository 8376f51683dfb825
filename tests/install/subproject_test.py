# SPDX-License-Identifier: Apache-2.0
"""Builds a small Meson project, an example, that has this tree as a subproject, and runs its program."""

import argparse
import pathlib
import shutil
import tempfile

from support import run

CONSUMER = """
project('consumer', 'c', default_options: 'c_std=c11')
cuda_include = include_directories('{cuda_include}', is_system: true)
executable('consumer', 'forward.c', include_directories: cuda_include, link_args: {driver},
  dependencies: [dependency('fa4', fallback: 'fa4'), meson.get_compiler('c').find_library('m')])
"""

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--meson", required=True)
parser.add_argument("--source-root", type=pathlib.Path, required=True)
parser.add_argument("--nvcc", required=True)
parser.add_argument("--cuda-include", required=True, help="folder of cuda.h")
parser.add_argument("--stand-ins", help="folder of the simulated libcuda.so.1; without it the program is only built")
arguments = parser.parse_args()

with tempfile.TemporaryDirectory(prefix="fa4-subproject-") as scratch:
    project, build = pathlib.Path(scratch) / "project", pathlib.Path(scratch) / "build"
    (project / "subprojects").mkdir(parents=True)
    (project / "subprojects" / "fa4").symlink_to(arguments.source_root)
    driver = ([f"-L{arguments.stand_ins}", "-lcuda"] if arguments.stand_ins else
              ["-Wl,--unresolved-symbols=ignore-in-object-files"])
    (project / "meson.build").write_text(CONSUMER.format(cuda_include=arguments.cuda_include, driver=driver),
                                         encoding="utf-8")
    for name in ("forward.c", "example.h"):
        shutil.copy(arguments.source_root / "examples" / name, project)
    run([arguments.meson, "setup", "--force-fallback-for=fa4", f"-Dfa4:nvcc={arguments.nvcc}", build, project])
    run([arguments.meson, "compile", "-C", build])
    if arguments.stand_ins:
        run([build / "consumer"], env={"LD_LIBRARY_PATH": arguments.stand_ins})
    else:
        print("there is no simulated GPU: the program was built and not run")
