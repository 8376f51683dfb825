# SPDX-License-Identifier: Apache-2.0
"""A program of the CUDA runtime on the simulated GPU: cudart_test.py PROGRAM FOLDER LIBFA4SIM [PRELOAD], where the folder
holds the stand-ins for libcudart.so.13 and libcuda.so.1, and PRELOAD is a library to load before them. What the program
itself can see it checks itself."""

import os
import subprocess
import sys
import unittest

from elf import dynamic_names

PROGRAM, FOLDER, LIBFA4SIM, *PRELOAD = sys.argv[1:]


def execute(*command, expect=0, **environment):
    """Runs a command with the stand-ins and returns what it wrote. expect: its exit code; None for any but success."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FA4SIM_")}
    result = subprocess.run(command, capture_output=True, text=True, timeout=120,
                            env={**clean, "LD_LIBRARY_PATH": FOLDER, "LD_PRELOAD": " ".join(PRELOAD), **environment})
    if (result.returncode == 0) if expect is None else (result.returncode != expect):
        raise AssertionError(f"{command}: exit code {result.returncode}, {expect} expected:\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def run(what, **options):
    return execute(PROGRAM, what, **options)


class StandIns(unittest.TestCase):
    """The names that a program linked with one of the libraries records, and that the loader knows a loaded one by."""

    def test_names_are_those_of_what_they_stand_for(self):
        for name in ("libcuda.so.1", "libcudart.so.13"):
            self.assertEqual(dynamic_names(os.path.join(FOLDER, name), "SONAME"), [name])
        self.assertIn("libcuda.so.1", dynamic_names(os.path.join(FOLDER, "libcudart.so.13"), "NEEDED"))
        self.assertIn("libcudart.so.13", dynamic_names(PROGRAM, "NEEDED"))

    def test_the_library_that_is_opened_by_path_takes_no_other_library_s_place(self):
        self.assertEqual(dynamic_names(LIBFA4SIM, "SONAME"), ["libfa4sim.so"])
        said = execute(sys.executable, "-c", """if True:
            import ctypes, os, sys
            address = lambda library: ctypes.cast(library.cuInit, ctypes.c_void_p).value
            by_path = ctypes.CDLL(sys.argv[1])
            try:
                ctypes.CDLL("libcuda.so.1", os.RTLD_NOW | os.RTLD_NOLOAD)
                print("is taken for libcuda.so.1")
            except OSError:
                pass
            by_name = ctypes.CDLL("libcuda.so.1")
            print(address(by_path) != address(by_name), by_path.cuInit(0), by_name.cuInit(0))
            """, LIBFA4SIM)
        self.assertEqual(said, "True 0 0\n")


class Runtime(unittest.TestCase):
    def test_everything(self):
        self.assertEqual(run("all"), "")

    def test_adversarial_timing(self):
        for seed in range(1, 5):
            run("all", FA4SIM_SEED=str(seed))

    def test_number_of_sms(self):
        run("all", FA4SIM_SMS="1")

    def test_another_gpu(self):
        said = run("print", FA4SIM_GPU="sm_90", FA4SIM_LOG="1")  # the program's code is for sm_100
        self.assertIn("the simulated GPU, sm_90, runs PTX for sm_90a", said)

    def test_log(self):
        self.assertIn("fa4sim: error 700: kernel", run("all", FA4SIM_LOG="1"))

    def test_all_that_a_kernel_lacks_is_named_at_once(self):
        self.assertRegex(run("all", FA4SIM_LOG="1"), "error 218: kernel _Z8measuredPi: 2 instructions of _Z8measuredPi: "
                         "line [0-9]+, column [0-9]+: .*'pmevent 3;'; line [0-9]+, column [0-9]+: .*vadd")

    def test_checker_says_what_it_found(self):
        said = run("race", FA4SIM_CHECK="1")
        self.assertEqual(said.count("error: race on"), 1, said)  # one finding, though two launches had it
        self.assertIn("kernel _Z6racingPi", said)
        self.assertIn("program.cu:", said)
        self.assertTrue(said.endswith("fa4sim: 2 launches checked: 1 errors, 0 warnings, 0 faults\n"), said)

    def test_checker_is_silent_on_what_is_right(self):
        said = run("all", FA4SIM_CHECK="1")
        self.assertIn("0 errors, 0 warnings, 1 faults", said)
        self.assertIn("_Z5strayPi", said)

    def test_print(self):
        self.assertEqual(run("print"), "thread: 33 of 64,  1.50%, 1099511627776, q, ff, 7   |\n")

    def test_assert(self):
        self.assertRegex(run("assert", FA4SIM_LOG="1"), "error 710: .*\n.*\n.*assertion `n == 1' failed, .*program.cu:[0-9]+")

    def test_destructors_that_use_the_device(self):
        self.assertEqual(run("leave"), "")
        self.assertEqual(run("leave after a fault"), "")
        self.assertEqual(run("leave after a fault", FA4SIM_LOG="1").count("fa4sim: error 700"), 1)

    def test_checker_is_off_otherwise(self):
        self.assertEqual(run("race"), "")

    def test_the_runtime_of_nvidia_is_told_what_to_do(self):
        # What it does first: the driver by its name, then a table of functions that no document describes.
        asks = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
function, status = ctypes.c_void_p(), ctypes.c_int()
assert driver.cuGetProcAddress_v2(b"cuGetExportTable", ctypes.byref(function), 13000, ctypes.c_uint64(0), ctypes.byref(status)) == 0
assert status.value == 0 and function
table = ctypes.c_void_p(1)
for _ in range(2):
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(function.value)(ctypes.byref(table), bytes(16)) == 801
assert not table
"""
        said = execute(sys.executable, "-c", asks)
        self.assertEqual(said.count("nvcc -cudart shared"), 1, said)
        self.assertIn("libcudart.so.13 in front of LD_LIBRARY_PATH", said)

    @unittest.skipUnless("FA4_TEST_STATIC_PROGRAM" in os.environ, "the toolkit has no static runtime")
    def test_a_program_with_the_static_runtime(self):
        said = execute(os.environ["FA4_TEST_STATIC_PROGRAM"], "all", expect=None)
        self.assertEqual(said.count("nvcc -cudart shared"), 1, said)

    def test_a_variable_that_makes_no_sense(self):
        self.assertIn("FA4SIM_MODEL is 'gpu': isa or silicon is expected", run("race", expect=2, FA4SIM_MODEL="gpu"))
        self.assertIn("FA4SIM_GPU is 'h100': sm_90, sm_100 or sm_103 is expected", run("race", expect=2, FA4SIM_GPU="h100"))
        self.assertIn("FA4SIM_CHECK is 'yes'", run("race", expect=2, FA4SIM_CHECK="yes"))


unittest.main(argv=sys.argv[:1])
