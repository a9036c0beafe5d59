"""Compares gradients of random programs with the eager tape and with finite differences, for as long as asked.

    python -m tests.fuzz_gradients [--minutes 10] [--seed 0] [--compiled-every 10]

Each program is written from a seed of its own and tried at one point, to second order; every tenth is compiled instead,
to first order, because that takes most of a minute. A failing one is printed with its seed and what differs;
`--minutes 0 --seed SEED` tries that one again. Exit code 1 if any failed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback

from tests.autodiff.random_programs import check, forget, point_of, random_program


def attempt(seed: int, compiled: bool) -> str | None:
    """What is wrong with the program of a seed, as text; None, or "skipped", where nothing is."""
    choices = random.Random(seed)
    text = random_program(choices.choice)
    n = choices.choice([0, 1, 2, 3, 4])
    try:
        smooth = check(text, point_of(seed), n, compiled, second=not compiled)
    except Exception:
        return f"seed {seed}, n = {n}:\n{text}\n{traceback.format_exc(limit=-6)}"
    finally:
        forget()
    return None if smooth else "skipped"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_gradients", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled-every", type=int, default=10, metavar="N", help="0: never")
    options = parser.parse_args()
    end = time.monotonic() + 60.0 * options.minutes
    seed, skipped, failed = options.seed, 0, []
    while True:
        compiled = options.compiled_every > 0 and seed % options.compiled_every == 0
        wrong = attempt(seed, compiled)
        if wrong == "skipped":
            skipped += 1
        elif wrong is not None:
            failed.append(seed)
            print(wrong, flush=True)
        seed += 1
        if time.monotonic() >= end:
            break
    tried = seed - options.seed
    print(f"{tried} programs, {skipped} without differences to compare with (near a jump or a kink), failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
