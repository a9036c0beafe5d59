"""Starts programs of `tests/distribute/programs` by MPI, as `mpiexec -n N python program.py` does."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent / "programs"
ROOT = Path(__file__).resolve().parents[2]


def settings() -> dict[str, str]:
    """What Open MPI asks containers, where everybody is root, and small machines to say: that this is meant."""
    return {
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMP_NUM_THREADS": "1",
    }  # fmt: skip


def mpiexec() -> str | None:
    """The launcher beside this Python, or the system's."""
    return shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")


def why_not() -> str:
    """Why programs can't be started; "" if they can."""
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py isn't installed: pip install -e '.[mpi]'"
    return "" if mpiexec() else "there is no mpiexec: pip install -e '.[mpi]'"


needs_mpi = pytest.mark.skipif(bool(why_not()), reason=why_not() or "needs MPI")


def run(program: str | Path, workers: int, *arguments: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
    """Runs a program (a file's name here, or a path) in several processes, for at most so long."""
    path = PROGRAMS / program
    return _run([str(mpiexec()), "-n", str(workers), sys.executable, str(path), *arguments], seconds)


def run_alone(program: str, seconds: float = 300) -> list[str]:
    """What a program prints, line by line, that is started without MPI and must end without an error."""
    done = _run([sys.executable, str(PROGRAMS / program)], seconds)
    assert done.returncode == 0, f"{done.args}\n{done.stdout}\n{done.stderr}"
    return done.stdout.splitlines()


def _run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, **settings(), "PYTHONPATH": paths}
    environment.pop("PYTHONUNBUFFERED", None)  # else a line and its end are written apart, others' lines between them
    # In a group of its own, all of which is ended with it.
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        out, err = process.communicate()
        raise AssertionError(f"{command} took over {seconds} s\n{out}\n{err}") from None
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def check(program: str | Path, workers: int, *arguments: str, seconds: float = 300) -> list[str]:
    """What a program prints, line by line, which must end without an error."""
    done = run(program, workers, *arguments, seconds=seconds)
    assert done.returncode == 0, f"{done.args}\n{done.stdout}\n{done.stderr}"
    return done.stdout.splitlines()
