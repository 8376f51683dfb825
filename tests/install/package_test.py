# SPDX-License-Identifier: Apache-2.0
"""Installs the build into a scratch folder, and builds and runs a C and a C++ program outside the tree against it: one
with fa4_forward, one with cuModuleLoad of the installed image."""

import argparse
import pathlib
import tempfile

from support import require, run

HERE = pathlib.Path(__file__).resolve().parent

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--meson", required=True)
parser.add_argument("--build-root", type=pathlib.Path, required=True)
parser.add_argument("--source-root", type=pathlib.Path, required=True)
parser.add_argument("--cuda-include", required=True, help="folder of cuda.h")
parser.add_argument("--driver", help="driver library to run the programs on; without it they are only built")
arguments = parser.parse_args()

with tempfile.TemporaryDirectory(prefix="fa4-package-") as scratch:
    root = pathlib.Path(scratch) / "root"
    run([arguments.meson, "install", "-C", arguments.build_root, "--no-rebuild", "--quiet", "--destdir", root])

    descriptions = list(root.rglob("fa4.pc"))
    require(len(descriptions) == 1, f"one fa4.pc should be installed, found {descriptions}")
    text = descriptions[0].read_text(encoding="utf-8")
    for build_path in (arguments.build_root, arguments.source_root):
        require(str(build_path) not in text, f"fa4.pc names {build_path}, which is no part of the installation:\n{text}")
    pkg_config = {"PKG_CONFIG_LIBDIR": str(descriptions[0].parent), "PKG_CONFIG_PATH": "",
                  "PKG_CONFIG_SYSROOT_DIR": str(root)}

    def ask(*options):
        return run(["pkg-config", *options, "fa4"], env=pkg_config, capture_output=True).split()

    def variable(name):
        path = ask(f"--variable={name}")[0]
        return pathlib.Path(path if path.startswith(str(root)) else f"{root}{path}")  # pkgconf adds the sysroot itself

    library_folder, image = variable("libdir"), variable("image")
    require(image.is_file() and image.stat().st_size > 0, f"the image {image} is not installed")
    for header in ("fa4.h", "fa4.hpp", "kernel/params.h", "kernel/names.h", "kernel/scheduler.h",
                   "kernel/blackwell/kernels.h"):
        require((variable("includedir") / "fa4" / header).is_file(), f"the header fa4/{header} is not installed")

    forward, raw = pathlib.Path(scratch) / "forward", pathlib.Path(scratch) / "image"
    strict = ["-Wall", "-Wextra", "-Werror", "-isystem", arguments.cuda_include]
    run(["cc", "-std=c11", "-D_GNU_SOURCE", *strict, HERE / "forward.c", "-o", forward, *ask("--cflags", "--libs"),
         "-ldl", "-lm"])
    run(["c++", "-std=c++20", *strict, HERE / "image.cpp", "-o", raw, *ask("--cflags"), "-ldl", "-lm"])
    if not arguments.driver:
        print("no driver library was given: the programs were built and not run")
    else:
        run([forward, arguments.driver], env={"LD_LIBRARY_PATH": str(library_folder)})
        run([raw, arguments.driver, image], env={"LD_LIBRARY_PATH": ""})
