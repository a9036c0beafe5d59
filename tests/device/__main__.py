"""`python -m tests.device [DEVICE ...] [-- pytest's arguments]`: the tests of generated code on devices.

A device is BLOCKSxTHREADS of the emulator. Without arguments: one thread, 4 in 2 blocks and 7 of one block, which takes
some ten minutes each.

`python -m tests.device cuda` is for a machine with a GPU: what fits into nine minutes, the most telling first. Placed
programs, gradients and errors, the op table as kernels and as single operations, compute-sanitizer (where it is
installed) on some of these, and the benchmark, which writes docs/benchmarks_gpu.md and benchmarks_gpu.json beside it.
`--emulated` runs the same on the emulator, the benchmark in a small form whose results are thrown away.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHAPES = ("1x1", "2x2", "1x7")
# What is about the cache of the processor's kernels, or about their text.
OTHERS = ("test_graph_cache.py", "test_golden.py", "test_gemm.py", "test_thread_pool.py", "test_allocator.py")
_DESELECTED = "tests/codegen/test_shape_env.py::test_a_kernel_that_an_earlier_process_made_finds_the_other_one"
_WHOLE = 540.0  # seconds of a session on a GPU
_TOOLS = ("memcheck", "racecheck", "synccheck")


@dataclass(frozen=True)
class Step:
    """A part of the session on a GPU. most: seconds."""

    name: str
    command: list[str]
    most: float


def _pytest(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]


def session(emulated: bool, folder: str) -> list[Step]:
    """The steps of a session, the most telling first. folder: for what the emulated benchmark writes."""
    placed = "tests/device/test_placed_functions.py"
    on_device = ("-p", "tests.device.on_device")
    quick = ["--emulated", "--out", folder, "--seconds", "0.1"] if emulated else ["--seconds", "1.5"]
    table = "float32" if emulated else "float or int or bool"
    steps = [
        Step("programs", _pytest(placed), 90),
        Step("benchmark", [sys.executable, "-m", "benchmarks.gpu", *quick], 170),
        Step("single operations", _pytest("tests/device/test_eager_rows.py"), 60),
        Step("the op table as kernels", _pytest(*on_device, "tests/codegen/test_table.py", "-k", table), 120),
    ]
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is not None and not emulated:
        some = _pytest(placed, "-k", "loops or training")
        steps += [Step(tool, [sanitizer, "--tool", tool, "--error-exitcode", "9", *some], 45) for tool in _TOOLS]
    return steps


def run_session(emulated: bool) -> int:
    """Runs the steps for which there is time; the exit code is 1 where one has failed."""
    start = time.monotonic()
    environment = {**os.environ, "AUTOGRAPH_TEST_DEVICE": "2x2" if emulated else "cuda"}
    if not emulated:
        environment["AUTOGRAPH_FULL_TESTS"] = "1"
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for step in session(emulated, folder):
            left = _WHOLE - (time.monotonic() - start)
            if left < 10:
                print(f"{step.name}: left out, since the time is over", flush=True)
                continue
            print(f"{step.name} (at most {min(left, step.most):.0f} s)", flush=True)
            try:
                code = subprocess.run(step.command, cwd=ROOT, env=environment, timeout=min(left, step.most)).returncode
            except subprocess.TimeoutExpired:
                code = -1
                print(f"{step.name}: not finished in time", flush=True)
            if code:
                failed.append(step.name)
    print(f"{time.monotonic() - start:.0f} s; {f'failed: {failed}' if failed else 'all steps passed'}", flush=True)
    return int(bool(failed))


def main() -> int:
    """Runs them; the exit code is that of the first run that fails."""
    arguments = sys.argv[1:]
    if arguments in (["cuda"], ["--emulated"]):
        return run_session(arguments == ["--emulated"])
    at = arguments.index("--") if "--" in arguments else len(arguments)
    shapes, rest = arguments[:at] or list(SHAPES), arguments[at + 1 :]
    ignored = [f"--ignore=tests/codegen/{name}" for name in OTHERS]
    rest = rest or ["tests/codegen", *ignored, f"--deselect={_DESELECTED}"]
    worst = 0
    for shape in shapes:
        print(f"on {shape}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.device.on_device", *rest]
        environment = {**os.environ, "AUTOGRAPH_TEST_DEVICE": shape}
        worst = worst or subprocess.run(command, cwd=ROOT, env=environment).returncode
    return worst


if __name__ == "__main__":
    sys.exit(main())
