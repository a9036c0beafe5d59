"""A slice of the suite as processors without AVX-512, or AVX, run it; `python -m tests.processors` runs the whole."""

import os
import subprocess
import sys

import pytest

from runtime.llvm import processor
from tests.processors import LEVELS, ROOT, available, environment

X86 = processor.family() == "x86-64"
SLICE = ["tests/graph/test_switches.py", "tests/llvm/test_outer_loops.py", "tests/test_docstrings.py", "-k"]
SLICE.append("switch or lanes or math or linalg or nn or acos")


def run(code, **variables):
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True
    )


@pytest.mark.skipif(not X86, reason="the levels are those of x86-64")
@pytest.mark.parametrize("level", ["sse2", "avx2"])
def test_a_slice_of_the_suite(level, tmp_path):
    if level not in available():
        pytest.skip(f"this processor has no {level}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SLICE],
        cwd=ROOT, env=environment(level, str(tmp_path)), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.skipif(not X86, reason="the levels are those of x86-64")
def test_a_level_limits_what_code_is_made_for():
    code = (
        "from runtime.llvm import processor as p; print(p.name(), sorted(n for n in p.features() if p.features()[n]))"
    )
    least = run(code, AUTOGRAPH_PROCESSOR="x86-64").stdout
    assert least.startswith("x86-64 ") and "'sse2'" in least and "sse3" not in least and "avx" not in least
    assert "avx512" not in run(code, AUTOGRAPH_PROCESSOR="x86-64-v3").stdout
    keys = {
        run(
            "from runtime.codegen.cache.kernel_cache import platform_key as key; print(key())",
            AUTOGRAPH_PROCESSOR=name,
        ).stdout
        for name, _ in LEVELS.values()
    }
    assert len(keys) == len(LEVELS)  # kernels of one level aren't taken for those of another


def test_an_unknown_level_is_refused():
    done = run("from runtime.llvm import processor; processor.name()", AUTOGRAPH_PROCESSOR="pentium")
    assert (
        "AUTOGRAPH_PROCESSOR='pentium': it must be one of x86-64, x86-64-v2, x86-64-v3, x86-64-v4, or not be set"
        in done.stderr
    )


def test_a_level_of_another_kind_of_processor_is_refused(monkeypatch):
    monkeypatch.setattr(processor, "family", lambda: "arm64")
    monkeypatch.setenv(processor.VARIABLE, "x86-64-v3")
    with pytest.raises(ValueError, match="AUTOGRAPH_PROCESSOR='x86-64-v3' is a level of x86-64, and this is arm64"):
        processor._limit()


def test_this_machine_is_not_limited():
    if not os.environ.get(processor.VARIABLE):
        import llvmlite.binding

        assert processor.name() == llvmlite.binding.get_host_cpu_name()
        assert processor.features() == dict(llvmlite.binding.get_host_cpu_features())
