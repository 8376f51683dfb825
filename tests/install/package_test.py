# SPDX-License-Identifier: Apache-2.0
"""Installs the build into a scratch folder, and builds the examples that came with it against it and runs them."""

import argparse
import pathlib
import tempfile

from elf import dynamic_names
from support import require, run

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--meson", required=True)
parser.add_argument("--build-root", type=pathlib.Path, required=True)
parser.add_argument("--source-root", type=pathlib.Path, required=True)
parser.add_argument("--cuda-include", required=True, help="folder of cuda.h")
parser.add_argument("--tools", action="store_true",
                    help="the simulated GPU is installed too; without it the examples are built and not run")
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
                   "kernel/kernels.h", "kernel/blackwell/kernels.h", "kernel/hopper/kernels.h"):
        require((variable("includedir") / "fa4" / header).is_file(), f"the header fa4/{header} is not installed")

    examples = variable("prefix") / "share/doc/fa4/examples"
    stand_ins = library_folder / "fa4sim"
    strict = ["-Wall", "-Wextra", "-Werror", "-isystem", arguments.cuda_include]
    if arguments.tools:
        driver = ["-L", stand_ins, "-lcuda"]
    else:
        driver = ["-Wl,--unresolved-symbols=ignore-in-object-files"]
    libraries = [*ask("--libs"), *driver, "-lm"]
    programs = {
        "forward.c": (["cc", "-std=c11"], []),
        "forward.cpp": (["c++", "-std=c++20"], []),
        "image.cpp": (["c++", "-std=c++20"], [image]),
    }
    for source, (compiler, command_line) in programs.items():
        program = pathlib.Path(scratch) / source.replace(".", "_")
        run([*compiler, *strict, *ask("--cflags"), examples / source, "-o", program, *libraries])
        if not arguments.tools:
            continue
        needed = dynamic_names(program, "NEEDED")
        require("libcuda.so.1" in needed and "libfa4sim.so" not in needed, f"{source} linked with -lcuda needs {needed}")
        run([program, *command_line], env={"LD_LIBRARY_PATH": f"{library_folder}:{stand_ins}"})
    require({path.name for path in examples.iterdir() if path.suffix in (".c", ".cpp")} == set(programs),
            f"the examples installed are not those that this test runs: {sorted(examples.iterdir())}")

    # ldconfig makes a link by the soname of every library in a folder that it knows: none may be that of NVIDIA's driver.
    for library in library_folder.glob("lib*.so*"):
        require(all(name.startswith("libfa4") for name in dynamic_names(library, "SONAME")),
                f"{library} has the soname {dynamic_names(library, 'SONAME')}")
    if not arguments.tools:
        print("there is no simulated GPU: the examples were built and not run")
