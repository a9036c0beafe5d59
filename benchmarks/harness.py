"""Build every implementation of a workload, check that all agree, then time them side by side.

Times drift on a shared machine, so what counts is a ratio: each round times a block of calls of every implementation in
turn, starting with another one each round, and the median over the rounds is compared. First calls (tracing and
compiling) are timed apart and never mixed in.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks import peers

Call = Callable[[], Any]
Build = Callable[[bool], Call]  # told whether the run is a quick one


@dataclass(frozen=True)
class Case:
    """One thing that is timed: the same computation, written for several libraries.

    implementations: label → a function that prepares the inputs and returns a call without arguments. The call
    returns arrays that all the implementations agree on, within `rtol` of the largest magnitude in each. `kind` says
    which targets it has to meet (targets.py). `compared` makes of a result what has to agree.
    """

    name: str
    title: str
    implementations: dict[str, Build]
    rtol: float = 1e-5
    kind: str = ""
    compared: Callable[[np.ndarray], np.ndarray] = lambda array: array


@dataclass
class Row:
    """What one implementation came to; times in seconds. `note` says why there are none."""

    label: str
    median: float | None = None
    first_call: float | None = None
    note: str = ""
    times: list[float] = field(default_factory=list)


class Disagreement(Exception):
    """Two implementations that should compute the same don't."""


def run(case: Case, quick: bool = False, only: Sequence[str] | None = None) -> list[Row]:
    """Times a case, or its implementations `only`.

    Raises whatever ours raises, and Disagreement; a peer that fails gets a note in its row.
    """
    rows, calls, expected = [], {}, None
    for label, build in case.implementations.items():
        if only is not None and label not in only:
            continue
        row = Row(label)
        rows.append(row)
        try:
            call = build(quick)
            began = time.perf_counter()
            result = arrays(call())
            row.first_call = time.perf_counter() - began
        except peers.Absent as absent:
            row.note = str(absent)
            continue
        except Exception as error:
            if label == peers.AUTOGRAPH:
                raise
            first_line = str(error).strip().partition("\n")[0]
            row.note = f"fails: {type(error).__name__}: {first_line[:120]}"
            continue
        if expected is None:
            expected = result
        check(case, label, result, expected)
        calls[label] = call
    timed = [row for row in rows if row.label in calls]
    _time(timed, calls, block=0.005 if quick else 0.02, rounds=3 if quick else 7)
    return rows


def arrays(result: Any) -> list[np.ndarray]:
    """The arrays in a result: a tensor of any library, a number, or a tuple or list of them."""
    if isinstance(result, (tuple, list)):
        return [array for part in result for array in arrays(part)]
    if hasattr(result, "detach"):
        result = result.detach()
    return [np.asarray(result.numpy() if hasattr(result, "numpy") else result)]


def check(case: Case, label: str, result: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Raises Disagreement unless the results agree."""
    if len(result) != len(expected):
        raise Disagreement(f"{case.name}: {label} returns {len(result)} results, not {len(expected)}")
    for index, (ours, theirs) in enumerate(zip(result, expected, strict=True)):
        if ours.shape != theirs.shape:
            raise Disagreement(f"{case.name}: result {index} of {label} has shape {ours.shape}, not {theirs.shape}")
        ours, theirs = case.compared(ours), case.compared(theirs)
        scale = np.max(np.abs(theirs), initial=1e-30)
        gap = np.max(np.abs(ours.astype(np.float64) - theirs), initial=0.0) / scale
        if not gap <= case.rtol:
            raise Disagreement(f"{case.name}: result {index} of {label} is off by {gap:.2e} (relative)")


# Seconds between blocks: the threads of some libraries wait for work in a loop for longer than 2 ms after the last one.
_PAUSE = 0.05


def _time(rows: list[Row], calls: dict[str, Call], block: float, rounds: int) -> None:
    """Fills in the medians: `rounds` blocks of calls, each lasting about `block` seconds."""
    counts = {row.label: repeats(calls[row.label], block) for row in rows}
    for turn in range(rounds):
        start = turn % max(len(rows), 1)
        for row in rows[start:] + rows[:start]:
            call, count = calls[row.label], counts[row.label]
            time.sleep(_PAUSE)
            call()  # and have this one's data in the caches
            began = time.perf_counter()
            for _ in range(count):
                call()
            row.times.append((time.perf_counter() - began) / count)
    for row in rows:
        row.median = statistics.median(row.times)


def repeats(call: Call, block: float) -> int:
    """How many calls last about `block` seconds."""
    count = 1
    while True:
        began = time.perf_counter()
        for _ in range(count):
            call()
        spent = time.perf_counter() - began
        if spent >= block / 4:
            return max(1, min(100_000, round(count * block / spent)))
        count *= 4
