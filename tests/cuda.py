"""`python -m tests.cuda [--out FOLDER] [--only STEP ...] [--emulated | --pretended]`: what needs a GPU, in less than
nine minutes.

The steps, the most telling first, each with a time limit of its own:

    driver                   what is installed, and the first calls of the driver, one after the other
    programs                 placed functions: control flow, gradients, variables, errors, what stays on the CPU
    benchmark                beside JAX, CuPy, torch.compile and a copy (`benchmarks/gpu.py`)
    single operations        eager rows of the op table, products by cuBLAS, the accuracy of elementary functions
    exchange                 arrays from and to torch, CuPy and JAX
    the op table as kernels  beside the interpreter, floats to the last bits and the others to the bit
    memcheck, racecheck, synccheck   compute-sanitizer, where it is installed, on some programs

`--only memcheck 'the op table as kernels'` runs those steps; the results of the others stay as they are, each with its
date.

FOLDER (docs/) gets `benchmarks_gpu.md`, `benchmarks_gpu.json` and `cuda_results.json`, which is written after each
step, and `cuda_results/`, with the output and the outcome of each test as soon as it is known. A step that a crash has
ended, or an error after which the driver refuses the process, goes on behind the test that was at fault.

The machine needs the dependencies of this package, and pytest. If it has no network, make a folder of what it lacks
elsewhere, by the same Python, and name it in PYTHONPATH:

    python -m pip install --target needed --no-deps gast astunparse six wheel safetensors ml_dtypes \\
        pytest pluggy iniconfig packaging pygments

Without a GPU: `--emulated` runs the steps on the emulator, `--pretended` with a library in place of the driver
(`tests/device/driver.c`). Their results are nobody's: FOLDER has to be given.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from tests.device.outcomes import LOST, known

ROOT = Path(__file__).resolve().parents[1]
_WHOLE = 530.0  # seconds
_TOOLS = ("memcheck", "racecheck", "synccheck")
_SHOWN = 40  # lines of a step's output that are shown where it fails
_CRASHES = 5  # after which a step is given up


@dataclass(frozen=True)
class Step:
    """A part of the session. most: seconds. tests: whether it is pytest's. again: what a crashed step goes on with.
    processes: how many share its tests."""

    name: str
    command: list[str]
    most: float
    tests: bool = True
    again: tuple[str, ...] = ()
    processes: int = 1


@dataclass
class Result:
    """What a step gave. code: 0; None where it wasn't finished in time, negative for a signal. failures: the texts of
    tests that failed, by their names."""

    name: str
    command: str
    date: str = ""
    seconds: float = 0.0
    code: int | None = None
    counts: dict[str, int] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    crashes: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return self.code == 0 and not self.failures and not self.crashes


def _pytest(*arguments: str) -> list[str]:
    plugin = ("-p", "tests.device.outcomes")
    return [sys.executable, "-X", "faulthandler", "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *arguments]


def steps(kind: str, folder: Path) -> list[Step]:
    """kind: "cuda", "emulated" or "pretended". folder: for what they write."""
    real = kind == "cuda"
    placed = "tests/device/test_placed_functions.py"
    quick = ["--seconds", "1.0"] if real else [f"--{kind}", "--seconds", "0.05"]
    measure = [sys.executable, "-X", "faulthandler", "-m", "benchmarks.gpu", "--out", str(folder), *quick]
    # Most of the time of single operations goes to compiling, on the processor.
    sharing = max(1, min(12, (os.cpu_count() or 1) - 2)) if real else 1
    table = "float or int or bool" if real else "abs or add or sum"
    found = [
        Step("driver", [sys.executable, "-X", "faulthandler", "-m", "tests.device.first_calls"], 60, tests=False),
        Step("programs", _pytest(placed), 100),
        Step("benchmark", measure, 170, tests=False, again=("--resume",)),
        Step(
            "single operations",
            _pytest(
                "tests/device/test_eager_rows.py",
                "tests/device/test_library_products.py",
                "tests/device/test_gpu_functions.py",
            ),
            90,
            processes=sharing,
        ),
        Step("exchange", _pytest("tests/device/test_exchange.py"), 30),
        Step(
            "the op table as kernels",
            _pytest("-p", "tests.device.on_device", "tests/codegen/test_table.py", "-k", table),
            240,
            processes=sharing,
        ),
    ]
    sanitizer = "compute-sanitizer"
    if real and shutil.which(sanitizer):
        some = _pytest(placed, "-k", "loops or training")
        found += [Step(tool, [sanitizer, "--tool", tool, "--error-exitcode", "9", *some], 40) for tool in _TOOLS]
    return found


class Session:
    """only: the names of the steps to run (all)."""

    def __init__(self, kind: str, folder: Path, only: Collection[str] = ()) -> None:
        self.kind, self.folder = kind, folder
        self.details = folder / "cuda_results"
        self.steps = steps(kind, folder)
        self.only = only or [step.name for step in self.steps]
        earlier = {each.name: each for each in self._earlier()} if only else {}
        self.results = [earlier.get(step.name) or Result(step.name, "") for step in self.steps]
        self._start = time.monotonic()

    def run(self) -> int:
        """Runs the steps for which there is time; the exit code is 1 where one has failed."""
        self.details.mkdir(parents=True, exist_ok=True)
        for number, step in enumerate(self.steps):
            if step.name not in self.only:
                continue
            left = self._left()
            # As it is typed, without paths of the machine.
            said = " ".join(step.command).replace(sys.executable, "python").replace(str(self.folder), "FOLDER")
            date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
            result = self.results[number] = Result(step.name, said, date)
            self._write()
            if left < 5:
                print(f"{step.name}: left out, since the time is over", flush=True)
                continue
            name = f"{number}_{step.name.replace(' ', '_')}"
            for path in self.details.glob(f"{name}*"):
                path.unlink()
            self._run(step, result, name)
            self._write()
            self._say(result)
        failed = [each.name for each in self.results if not each.passed and each.name in self.only]
        seconds = time.monotonic() - self._start
        print(f"{seconds:.0f} s; {f'failed: {failed}' if failed else 'all steps passed'}", flush=True)
        return int(bool(failed))

    def _left(self) -> float:
        return _WHOLE - (time.monotonic() - self._start)

    def _run(self, step: Step, result: Result, name: str) -> None:
        start, most = time.monotonic(), min(self._left(), step.most)
        print(f"{step.name} (at most {most:.0f} s)", flush=True)
        stems = [self.details / (f"{name}_{part}" if step.processes > 1 else name) for part in range(step.processes)]
        with ThreadPoolExecutor(len(stems)) as pool:
            parts = [f"{part}/{step.processes}" for part in range(step.processes)]
            found = list(pool.map(lambda stem, part: self._run_part(step, stem, part, start + most), stems, parts))
        codes = [code for code, _ in found]
        result.code = None if None in codes else next((code for code in codes if code), 0)
        result.seconds = round(time.monotonic() - start, 1)
        for stem, (_, crashes) in zip(stems, found, strict=True):
            result.crashes += crashes
            result.output.append(str(stem.with_suffix(".txt").relative_to(self.folder)))
            for each in known(stem.with_suffix(".jsonl")):
                result.counts[each["outcome"]] = result.counts.get(each["outcome"], 0) + 1
                if each["outcome"] == "failed":
                    result.failures[each["test"]] = each["text"]

    def _run_part(self, step: Step, stem: Path, part: str, end: float) -> tuple[int | None, list[str]]:
        """The exit code of a process with its part of a step's tests, and the tests that have ended it."""
        outcomes, output = stem.with_suffix(".jsonl"), stem.with_suffix(".txt")
        environment = {
            **os.environ, "AUTOGRAPH_TEST_DEVICE": {"emulated": "2x2"}.get(self.kind, self.kind),
            "AUTOGRAPH_OUTCOMES": str(outcomes), "AUTOGRAPH_PART": part, "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }  # fmt: skip
        if self.kind == "cuda":
            environment["AUTOGRAPH_FULL_TESTS"] = "1"
        crashes: list[str] = []
        command = step.command
        while True:
            code = _in_time(command, environment, output, end - time.monotonic())
            if code is None or 0 <= code != LOST or len(crashes) == _CRASHES:
                return code, crashes
            begun = [each["test"] for each in known(outcomes) if each["outcome"] == "begun"]
            crashes.append(begun[-1] if begun else f"exit code {code}")
            if not (step.tests or step.again):
                return code, crashes
            command = [*step.command, *step.again]

    def _say(self, result: Result) -> None:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(result.counts.items()))
        end = "not finished in time" if result.code is None else f"exit code {result.code}"
        print(f"  {result.seconds:.0f} s, {end}{f', {counts}' if counts else ''}", flush=True)
        for test in result.crashes:
            print(f"  the process ended in {test}", flush=True)
        for test, text in list(result.failures.items())[:3]:
            print(f"  {test}\n{text[-1500:]}", flush=True)
        if not result.passed and not result.failures:
            for path in result.output:
                lines = (self.folder / path).read_text(encoding="utf-8", errors="replace").splitlines()
                print("\n".join(f"  | {line}" for line in lines[-_SHOWN:]), flush=True)

    @property
    def _path(self) -> Path:
        return self.folder / "cuda_results.json"

    def _earlier(self) -> list[Result]:
        if not self._path.exists():
            return []
        content = json.loads(self._path.read_text(encoding="utf-8"))
        if content["kind"] != self.kind:
            return []
        names = {each.name for each in fields(Result)}
        return [Result(**{name: value for name, value in step.items() if name in names}) for step in content["steps"]]

    def _write(self) -> None:
        content = {
            "kind": self.kind, "python": sys.version.split()[0],
            "steps": [{**asdict(each), "passed": each.passed} for each in self.results],
        }  # fmt: skip
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        new.replace(self._path)


def _in_time(command: list[str], environment: dict[str, str], output: Path, most: float) -> int | None:
    """A command's exit code; None where it took too long. Its output goes behind what is in the file."""
    with open(output, "ab") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return process.wait(max(most, 0.1))
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):  # it, and what it has started
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def main(arguments: list[str] | None = None) -> int:
    """Runs the session; the exit code is 1 where a step has failed, 2 where there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m tests.cuda")
    parser.add_argument("--out", type=Path, help="the folder of the results (docs)")
    parser.add_argument("--only", nargs="+", metavar="STEP", default=[], help="steps to run (all)")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--emulated", action="store_true", help="on an emulated GPU")
    kinds.add_argument("--pretended", action="store_true", help="with a library in place of the driver")
    chosen: Any = parser.parse_args(arguments)
    kind = "emulated" if chosen.emulated else "pretended" if chosen.pretended else "cuda"
    if kind != "cuda" and chosen.out is None:
        parser.error(f"--{kind} needs --out: what it finds is no result")
    folder: Path = chosen.out or ROOT / "docs"
    names = [step.name for step in steps(kind, folder)]
    if unknown := set(chosen.only) - set(names):
        parser.error(f"no step {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
    folder.mkdir(parents=True, exist_ok=True)
    return Session(kind, folder.resolve(), chosen.only).run()


if __name__ == "__main__":
    sys.exit(main())
