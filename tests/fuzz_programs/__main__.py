"""Random Python programs: eager execution beside the staged function, with gradients, for as long as asked.

    python -m tests.fuzz_programs [--minutes 10] [--seed 0] [--compiled-every 5] [--rows | --kinds]

Each program is written from a seed of its own and run at five points: values, errors and gradients by its arguments
must agree. Every fifth is also compiled (`jit_compile=True`) and run in the default mode until native code takes over.
One that differs is made smaller and printed; `--minutes 0 --seed SEED` tries that one again. Refusals (staging errors)
are counted by their message. Exit code 1 if any differed.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import re
import sys
import time
import traceback

from tests.fuzz_programs.compare import Difference, check, forget, shrink
from tests.fuzz_programs.kinds import random_kinds_program
from tests.fuzz_programs.rows import random_rows_program
from tests.fuzz_programs.writer import PRELUDE, random_program

_PATIENCE = 900  # seconds for one program, after which the process ends with its stacks


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_programs", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled-every", type=int, default=5, metavar="N", help="0: never")
    parser.add_argument("--most", type=int, default=0, metavar="N", help="end after so many differences")
    parser.add_argument("--refusals", action="store_true", help="print a program for each kind of refusal")
    parser.add_argument("--rows", action="store_true", help="programs with lists of lists, dictionaries, objects")
    parser.add_argument("--kinds", action="store_true", help="programs with classes, enums, strings, state of helpers")
    options = parser.parse_args()
    write = random_rows_program if options.rows else random_kinds_program if options.kinds else random_program
    end = time.monotonic() + 60.0 * options.minutes
    seed, counts, failed = options.seed, collections.Counter[str](), []
    while True:
        compiled = options.compiled_every > 0 and seed % options.compiled_every == 0
        text = write(seed)
        faulthandler.dump_traceback_later(_PATIENCE, exit=True)
        try:
            verdict = re.sub(r"'[^']*'", "...", check(text, compiled))
            if options.refusals and verdict.startswith("refused") and not counts[verdict]:
                print(f"\nseed {seed}: {verdict}\n{text[len(PRELUDE) :]}", flush=True)
        except Difference as found:
            verdict = f"differs: {found.kind}"
            failed.append(seed)
            small = shrink(text, found.kind, compiled)
            print(f"\n{'=' * 100}\nseed {seed}: {verdict}\n{found}\n{small[len(PRELUDE) :]}", flush=True)
        except Exception:
            verdict = "breaks"
            failed.append(seed)
            print(f"\nseed {seed}\n{text[len(PRELUDE) :]}\n{traceback.format_exc(limit=-6)}", flush=True)
        finally:
            faulthandler.cancel_dump_traceback_later()
            forget()
        counts[verdict] += 1
        seed += 1
        if time.monotonic() >= end or (options.most and len(failed) >= options.most):
            break
    for verdict, count in counts.most_common():
        print(f"{count:6}  {verdict}")
    print(f"{seed - options.seed} programs, failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
