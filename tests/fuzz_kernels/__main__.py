"""Random programs, eager against interpreted against native.

    python -m tests.fuzz_kernels [--minutes N] [--count N] [--seed S] [--keep-going] [--gpu]

Each seed is one program: elementwise ops, reductions, reshapes, slices, gathers, scatters, products, loops, branches,
TensorArrays, assertions, divisions by zero, unknown and empty dimensions, large arrays, variables, gradients, random
and complex numbers. Values, error classes, first lines of messages and variables after errors must agree. On a
difference the program is shrunk and printed as Python source that shows it; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import sys
import time
from collections import Counter
from pathlib import Path

import autograph as ag
from tests.fuzz_kernels.compare import DEVICE, difference, shrink
from tests.fuzz_kernels.generate import make

_PATIENCE = 900  # seconds for one program, after which the process ends with its stacks


def main(arguments: list[str] | None = None) -> int:
    """Runs programs until the time is over; the exit code says whether they agreed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_kernels", description=__doc__)
    parser.add_argument("--minutes", type=float, default=None, help="how long to go on (default: --count programs)")
    parser.add_argument("--count", type=int, default=100, help="how many programs, where no time is given")
    parser.add_argument("--seed", type=int, default=0, help="programs are the same for the same seed")
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--keep-going", action="store_true", help="don't end at the first difference")
    parser.add_argument(
        "--gpu", nargs="?", const="2x2", metavar="BLOCKSxTHREADS",
        help="compiled programs run on an emulated GPU of so many threads (2x2)",
    )  # fmt: skip
    parser.add_argument("--current", type=Path, help="a file for the program in work, which a crash leaves behind")
    options = parser.parse_args(arguments)
    os.environ["AUTOGRAPH_STRICT"] = "1"
    faulthandler.enable()
    if options.gpu:
        blocks, threads = map(int, options.gpu.split("x"))
        ag.config.emulate_gpus(1, blocks=blocks, threads=threads)
        DEVICE[0] = "/GPU:0"
    start = time.monotonic()
    kinds: Counter[str] = Counter()
    index = options.first
    while _goes_on(options, start, index):
        seed = f"{options.seed}/{index}"
        index += 1
        program = make(seed)
        if options.current:
            options.current.write_text(f"# seed {seed}\n{program.script()}")
        faulthandler.dump_traceback_later(_PATIENCE, exit=True)
        found = difference(program)
        faulthandler.cancel_dump_traceback_later()
        kinds["agree" if found is None else found[0]] += 1
        if found is not None and found[0] != "invalid":
            small = shrink(program, found[0])
            again = difference(small) or found
            print(f"\n{'=' * 100}\nseed {seed}: {again[0]}\n{again[1]}\n{'-' * 100}\n{small.script()}", flush=True)
            if not options.keep_going:
                break
    seconds = time.monotonic() - start
    print(f"{index - options.first} programs in {seconds:.0f} s: {dict(kinds.most_common())}")
    return int(any(kind not in ("agree", "invalid") for kind in kinds))


def _goes_on(options: argparse.Namespace, start: float, index: int) -> bool:
    if options.minutes is not None:
        return time.monotonic() - start < options.minutes * 60
    return bool(index - options.first < options.count)


if __name__ == "__main__":
    sys.exit(main())
