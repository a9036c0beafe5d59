"""PTX, which NVIDIA's assembler takes (where it is installed), and the text of kernels in SPMD form."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm

import autograph as ag
from autograph import cli
from runtime.codegen.device import pipeline
from runtime.codegen.device.device_module import device_module
from runtime.codegen.device.kernel import Kernel
from runtime.codegen.device.pipeline import run_passes
from runtime.codegen.kernel.source import KernelSource
from runtime.codegen.lower.lower_graph import is_native, lower
from runtime.kernel_ir import ir
from runtime.kernel_ir.verify import InvalidKernel
from runtime.ops.table import OpDef
from tests.codegen import test_table
from tests.codegen.golden_cases import KERNELS, cases_in, concrete
from tests.convert import golden
from tests.device.test_programs import PROGRAMS
from tests.device.toolkit import ptxas

DEVICE_KERNELS = golden.FOLDER / "device_kernels"
CASES = cases_in(DEVICE_KERNELS)
PTXAS = ptxas()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_device_kernels(case: golden.Case, request: Any) -> None:
    """Golden cases: `--update-golden` rewrites them."""
    function, gradient = concrete(case.source)
    golden.compare(case, function.as_text("device-kernel", gradient) + "\n", request)


def test_a_pass_that_forgets_a_type_is_named(monkeypatch: Any) -> None:
    def forgetful(kernel: Kernel) -> None:
        kernel.functions[-1].body.insert(0, ir.assign("n", ir.Var("x")))

    source = lower(ag.function(ag.tanh).get_concrete_function(ag.TensorSpec([None], ag.float32)).graph, for_device=True)
    run_passes(Kernel.of(source))
    monkeypatch.setattr(pipeline, "PASSES", (*pipeline.PASSES, ("forgetting", forgetful)))
    with pytest.raises(InvalidKernel, match="'x' has no type, in 'kernel' after forgetting"):
        run_passes(Kernel.of(source))


@pytest.mark.parametrize("size", [64, None])
def test_products_are_tiled_whether_their_sizes_are_known_or_not(size: int | None) -> None:
    concrete = ag.function(ag.matmul).get_concrete_function(*[ag.TensorSpec([size, size], ag.float32)] * 2)
    assert "tiled_matmul" in concrete.as_text("device-kernel")


@pytest.mark.parametrize(
    ("shape", "forms"),
    [
        ([8192, 1024], ["warp_total_"]),
        ([8192, 4], []),
        ([2, 4096], ["total_"]),
        ([None, 1024], ["total_", "warp_total_"]),
    ],
)
def test_a_row_has_only_forms_for_its_size(shape: list[int | None], forms: list[str]) -> None:
    text = ag.function(ag.nn.softmax).get_concrete_function(ag.TensorSpec(shape, ag.float32)).as_text("device-kernel")
    assert [form for form in ("total_", "warp_total_") if f"def {form}add" in text] == forms


@pytest.mark.parametrize(("inner", "is_tiled"), [(5, False), (32, True), (None, True)])
def test_small_products_have_no_tiles(inner: int | None, is_tiled: bool) -> None:
    specs = [ag.TensorSpec(shape, ag.float32) for shape in ([64, inner], [inner, 64])]
    text = ag.function(ag.matmul).get_concrete_function(*specs).as_text("device-kernel")
    assert ("tiled_matmul" in text) == is_tiled


def test_products_and_sums_stay_two_roundings() -> None:
    concrete = ag.function(lambda x, y: x * y + 1.0).get_concrete_function(*[ag.TensorSpec([None], ag.float32)] * 2)
    text = concrete.as_text("ptx")
    assert ".visible .entry kernel(" in text
    assert "mul.rn.f32" in text and "add.rn.f32" in text
    assert "fma" not in text


@pytest.mark.skipif(llvm.llvm_version_info < (22,), reason="before LLVM 22 fewer accesses are joined")
def test_whole_numbers_of_64_bits_are_loaded_at_once() -> None:
    concrete = ag.function(lambda x: x + 1).get_concrete_function(ag.TensorSpec([None], ag.int64))
    text = concrete.as_text("ptx")
    assert "ld.global.v2.b64" in text and "ld.global.b64" in text
    assert ".b32" not in "".join(line for line in text.splitlines() if "ld.global" in line or "st.global" in line)


def test_nothing_is_called_that_a_gpu_lacks() -> None:
    @ag.function
    def program(x: Any) -> Any:
        y = ag.sin(x) + ag.cos(x) + ag.tan(x) + ag.math.lgamma(x) + ag.exp(x) + ag.math.log(x) + ag.pow(x, x)
        return y + ag.random.stateless_normal([10], [1, 2], dtype=ag.float64)

    text = program.get_concrete_function(ag.TensorSpec([10], ag.float64)).as_text("ptx")
    assert ".extern" not in text


def assembled(text: str, folder: Path, processor: str = "sm_90") -> str:
    """Runs the assembler; what it says."""
    path = folder / "kernel.ptx"
    path.write_text(text)
    assert PTXAS is not None
    command = [PTXAS, "-v", "--gpu-name", processor, "-o", str(folder / "kernel.cubin"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.skipif(PTXAS is None, reason="NVIDIA's assembler isn't installed")
@pytest.mark.parametrize("dtype", [ag.float32, ag.float64])
def test_the_reduction_of_large_angles_needs_no_stack(dtype: Any, tmp_path: Path) -> None:
    program = ag.function(lambda x: ag.sin(x) * ag.cos(x) + ag.sin(x + 1.0) + ag.tan(x))
    said = assembled(program.get_concrete_function(ag.TensorSpec([None], dtype)).as_text("ptx"), tmp_path)
    assert "0 bytes stack frame" in said and "statically" not in said


@pytest.mark.skipif(PTXAS is None, reason="NVIDIA's assembler isn't installed")
@pytest.mark.parametrize("case", [*cases_in(KERNELS)[::4], *CASES], ids=lambda case: case.name)
def test_golden_kernels_assemble(case: golden.Case, tmp_path: Path) -> None:
    function, gradient = concrete(case.source)
    try:
        text = function.as_text("ptx", gradient)
    except ag.errors.UnimplementedError as reason:
        assert "call themselves" in str(reason)
        return
    for number, kernel in enumerate(text.split("\n// kernel ")):
        assembled(kernel if not number else "// " + kernel, tmp_path)


@pytest.mark.skipif(PTXAS is None, reason="NVIDIA's assembler isn't installed")
@pytest.mark.parametrize(("program", "argument"), PROGRAMS)
def test_programs_assemble(program: Any, argument: Any, tmp_path: Path) -> None:
    spec = ag.TensorSpec(np.shape(argument), np.asarray(argument).dtype)
    assembled(ag.function(program).get_concrete_function(spec).as_text("ptx"), tmp_path)


# The first sample of each row that has kernels, for its first dtype.
ROWS = {case.values[0].name: case.values for case in reversed(test_table.cases())}  # type: ignore[attr-defined]


def row_kernel(op: OpDef, dtype: Any) -> KernelSource | None:
    """The kernel of a row; None of one that kernels have other rows for."""
    random = np.random.default_rng(7)
    for sample, unknown in [(sample, unknown) for unknown in (True, False) for sample in op.samples or ()]:
        graph = test_table.traced(op, sample.attrs, test_table.operands(sample, dtype, random), unknown)
        if graph is not None and all(map(is_native, graph.nodes)):
            return lower(graph, for_device=True)
    return None


@pytest.mark.parametrize("name", sorted(ROWS))
def test_rows(name: str, tmp_path: Path) -> None:
    """Each row has PTX, which calls nothing that a GPU lacks, for the oldest GPU and a new one."""
    source = row_kernel(*ROWS[name])
    if source is None:
        pytest.skip("kernels have stateless rows in place of it")
    module = device_module(source)
    for processor in ("sm_75", "sm_90"):
        text = module.ptx(processor)
        assert f".target {processor}" in text and ".extern" not in text
        if PTXAS is not None:
            assembled(text, tmp_path, processor)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.py"
    path.write_text("import autograph as ag\n\n\n@ag.function\ndef f(x):\n    return ag.reduce_sum(x * x)\n")
    assert cli.main(["graph", f"{path}:f", "--signature", "x: float32[None]", "--device-kernel"]) == 0
    assert "gpu.threads()" in capsys.readouterr().out
    assert cli.main(["graph", f"{path}:f", "--signature", "x: float32[None]", "--ptx"]) == 0
    assert ".target sm_90" in capsys.readouterr().out
