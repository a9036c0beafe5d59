"""Approximate instructions of GPUs (`codegen/math/vector_builder.py`, `approximate`).

The formulas keep their bounds if these are off by at most 1 unit in the last place. On an H200 they are so:
`tests/device/test_gpu_functions.py` runs there too. Subnormal operands and results become 0. This computer gives
correctly rounded results.
"""

from __future__ import annotations

from collections.abc import Iterable

# name -> LLVM's intrinsic, and the instructions that compute it on this computer from the float64 %x
_INSTRUCTIONS = {
    "rcp": ("llvm.nvvm.rcp.approx.ftz.f", "fdiv double 1.0, %x"),
    "ex2": ("llvm.nvvm.ex2.approx.ftz.f", "call double @exp2(double %x)"),
}

ERROR = 0  # the error of this computer's results in units in the last place, for tests


def definitions(modules: Iterable[str], for_gpu: bool) -> str:
    """The module that defines those of these instructions that other modules call; empty if they call none."""
    texts = list(modules)
    used = [name for name in _INSTRUCTIONS if any(f'@"{symbol(name)}"(' in text for text in texts)]
    if not used:
        return ""
    return _on_gpu(used) if for_gpu else _on_host(used)


def symbol(name: str) -> str:
    return f"gpu_{name}"


def _on_gpu(names: Iterable[str]) -> str:
    return "\n".join(
        f"""
declare float @{_INSTRUCTIONS[name][0]}(float)
define linkonce_odr float @{symbol(name)}(float %x) alwaysinline nounwind memory(none) {{
  %found = call float @{_INSTRUCTIONS[name][0]}(float %x)
  ret float %found
}}"""
        for name in names
    )


def _on_host(names: Iterable[str]) -> str:
    text = """
declare double @exp2(double) nounwind memory(none)
declare float @llvm.fabs.f32(float)
declare float @llvm.copysign.f32(float, float)
define internal float @without_subnormals(float %x) alwaysinline {
  %size = call float @llvm.fabs.f32(float %x)
  %small = fcmp olt float %size, 0x3810000000000000
  %zero = call float @llvm.copysign.f32(float 0.0, float %x)
  %found = select i1 %small, float %zero, float %x
  ret float %found
}
"""
    for name in names:
        text += f"""
define linkonce_odr float @{symbol(name)}(float %given) nounwind memory(none) {{
  %normal = call float @without_subnormals(float %given)
  %x = fpext float %normal to double
  %wide = {_INSTRUCTIONS[name][1]}
  %right = fptrunc double %wide to float
  %bits = bitcast float %right to i32
  %other = add i32 %bits, {ERROR}
  %off = bitcast i32 %other to float
  %size = call float @llvm.fabs.f32(float %right)
  %some = fcmp one float %size, 0.0
  %finite = fcmp one float %size, 0x7FF0000000000000
  %inexact = and i1 %some, %finite
  %near = select i1 %inexact, float %off, float %right
  %found = call float @without_subnormals(float %near)
  ret float %found
}}
"""
    return text
