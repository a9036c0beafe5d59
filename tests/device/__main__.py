"""`python -m tests.device [DEVICE ...] [-- pytest's arguments]`: the tests of generated code on devices.

A device is BLOCKSxTHREADS of the emulator. Without arguments: one thread, 4 in 2 blocks and 7 of one block, which takes
some ten minutes each. `python -m tests.cuda` is for a machine with a GPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHAPES = ("1x1", "2x2", "1x7")
# What is about the cache of the processor's kernels, about its threads, or about the text of its kernels.
OTHERS = (
    "test_graph_cache.py", "test_golden.py", "test_gemm.py", "test_thread_pool.py", "test_allocator.py",
    "test_parallelize.py",
)  # fmt: skip
_DESELECTED = (
    "test_shape_env.py::test_a_kernel_that_an_earlier_process_made_finds_the_other_one",
    "test_scan.py::test_large_ones_run_on_threads",
    "test_concat_views.py::test_many_rolls_along_three_axes_are_one_nest",
    "test_reductions.py::test_what_is_printed",
    "test_reductions.py::test_a_function_of_each_short_row_has_a_loop_of_its_own",
)


def main() -> int:
    """Runs them; the exit code is that of the first run that fails."""
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    shapes, rest = arguments[:at] or list(SHAPES), arguments[at + 1 :]
    ignored = [f"--ignore=tests/codegen/{name}" for name in OTHERS]
    rest = rest or ["tests/codegen", *ignored, *(f"--deselect=tests/codegen/{name}" for name in _DESELECTED)]
    worst = 0
    for shape in shapes:
        print(f"on {shape}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.device.on_device", *rest]
        environment = {**os.environ, "AUTOGRAPH_TEST_DEVICE": shape}
        worst = worst or subprocess.run(command, cwd=ROOT, env=environment).returncode
    return worst


if __name__ == "__main__":
    sys.exit(main())
