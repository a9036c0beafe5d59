"""Writes docs/api.md: each public name of `autograph`, TensorFlow's name for it, and the difference in a line.

The names, kinds and first lines come from the package; what differs is kept by hand in `DIFFERENCES` and `ONLY_HERE`,
made by comparing with TensorFlow 2.21's signatures. `python -m docs.make_api` writes the page; a test keeps it so.
"""

from __future__ import annotations

import inspect
import re
import types
from pathlib import Path
from typing import Any

import autograph as ag

PAGE = Path(__file__).resolve().parent / "api.md"

# Names that TensorFlow doesn't have (or has elsewhere: then that is said).
ONLY_HERE = {
    "autograph.do_not_convert": "tf.autograph.experimental.do_not_convert",
    "compat.FacadeError": "",
    "compat.install": "",
    "compat.is_installed": "",
    "compat.uninstall": "",
    "config.enable_op_determinism": "tf.config.experimental.enable_op_determinism",
    "config.get_gradient_memory": "",
    "config.set_gradient_memory": "",
    "data.Optional": "tf.experimental.Optional",
    "errors.AutographError": "",
    "errors.ConversionError": "",
    "errors.DTypeError": "",
    "errors.InaccessibleTensorError": "",
    "errors.KernelError": "",
    "errors.NoneValueError": "",
    "errors.StagingError": "",
    "errors.StagingTypeError": "",
    "errors.StagingValueError": "",
    "errors.UnsetAttributeError": "",
    "errors.UnsetItemError": "",
    "errors.UnsetVariableError": "",
    "export.CLibrary": "",
    "export.c_library": "",
    "image.projective_transform": "tf.raw_ops.ImageProjectiveTransformV3",
    "math.matmul": "tf.linalg.matmul",
    "math.truncatediv": "tf.truncatediv",
    "math.truncatemod": "tf.truncatemod",
    "nn.log_sigmoid": "tf.math.log_sigmoid",
    "random.stateless_shuffle": "tf.random.experimental.stateless_shuffle",
    "test.GradientReport": "",
    "test.check_gradients": "tf.test.compute_gradient",
    "test.max_error": "",
    "types.experimental.TracingContext": "",
}
_LAYOUT = "without `layout`"
_INDICES = "without `bad_indices_policy`: a bad index raises on every tier"
_NODE = "takes message and op; no node_def"
DIFFERENCES = {
    "GradientTape": "loops need no `maximum_iterations`; `parallel_iterations` is taken and has no effect",
    "TensorArray": "without `handle`, `flow`, `colocate_with_first_write_call`",
    "autograph.to_code": "takes the function alone; the text holds operators of this project",
    "autograph.to_graph": "takes the function alone",
    "autograph.set_verbosity": "the same levels; what is written differs",
    "config.optimizer.set_jit": "has the meanings of `jit_compile`: True before the first run, False never, None aside",
    "config.threading.set_inter_op_parallelism_threads": "warns: operations run one after another",
    "debugging.enable_check_numerics": "the limits are taken and have no effect: the whole traceback is shown",
    "device": "the CPU stands in for devices that aren't there, unless soft placement is off",
    "errors.FailedPreconditionError": _NODE,
    "errors.InternalError": _NODE,
    "errors.InvalidArgumentError": _NODE,
    "errors.NotFoundError": _NODE,
    "errors.OpError": _NODE,
    "errors.OutOfRangeError": _NODE,
    "errors.UnimplementedError": _NODE,
    "fill": _LAYOUT,
    "function": "changed Python values are noticed; without `experimental_implements` and the like (taken, no effect)",
    "gather": "a bad index raises on every tier",
    "gather_nd": _INDICES,
    "gradients": "without `gate_gradients`, `aggregation_method`, `stop_gradients`",
    "image.crop_and_resize": "differentiable by boxes and images together, to any order",
    "image.decode_image": "by Pillow: JPEG, PNG, GIF, BMP, WebP; no JPEG XL",
    "image.decode_jpeg": "by Pillow: pixels may differ by a few levels; most options are taken and have no effect",
    "image.encode_jpeg": "by Pillow: without metadata",
    "image.encode_png": "uint16 with one channel only",
    "image.resize": "has a gradient for `area`, too",
    "image.rgb_to_hsv": "the gradient of saturation isn't 0 where a channel is 0 or less",
    "io.gfile.GFile": "files of this machine only",
    "linalg.diag": "the main diagonal only: without `k`, `num_rows`, `num_cols`, `padding_value`, `align`",
    "linalg.diag_part": "the main diagonal only: without `k`, `padding_value`, `align`",
    "linalg.set_diag": "without `align`",
    "lookup.experimental.DenseHashTable": "`export` gives the entries, without empty buckets",
    "nn.ctc_loss": "`unique` is taken and has no effect; has derivatives of all orders",
    "nn.embedding_lookup_sparse": "one table",
    "nn.safe_embedding_lookup_sparse": "one table",
    "ones": _LAYOUT,
    "ones_like": _LAYOUT,
    "scatter_nd": _INDICES,
    "strided_slice": "takes a tensor and a Python index expression, not begin, end, strides and masks",
    "strings.unicode_decode": "without `replace_control_characters`",
    "tensor_scatter_nd_add": _INDICES,
    "tensor_scatter_nd_max": _INDICES,
    "tensor_scatter_nd_min": _INDICES,
    "tensor_scatter_nd_sub": _INDICES,
    "tensor_scatter_nd_update": "a bad index raises on every tier",
    "while_loop": "`parallel_iterations` and `swap_memory` are taken and have no effect",
    "zeros": _LAYOUT,
    "zeros_like": _LAYOUT,
}
_HEAD = """\
# All names

Each public name, TensorFlow's name for it, what it is, and where it differs. Most differences that matter to a whole
program stand in [From TensorFlow](migrating.md). Made by `python -m docs.make_api` from the package itself.
"""


def sections(module: Any = ag, prefix: str = "") -> list[tuple[str, dict[str, Any]]]:
    """For each namespace its dotted name ("" for the package) and its public names with their values."""
    own: dict[str, Any] = {}
    inner: list[tuple[str, dict[str, Any]]] = []
    for name in sorted(module.__all__, key=lambda each: (each.lower(), each)):
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            inner += sections(value, f"{prefix}{name}.")
        else:
            own[prefix + name] = value
    return [(prefix.rstrip("."), own), *inner]


def first_sentence(value: Any) -> str:
    """The first sentence of a docstring, as one line of a table."""
    if not (callable(value) or inspect.isclass(value)):
        return "a value" if value is None else f"a {type(value).__name__}"
    text = inspect.getdoc(value) or ""
    # In the first paragraph.
    text = " ".join(text.split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.!?]) (?=[A-Z])", text)[0].rstrip(".")
    return sentence.replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")


def page() -> str:
    """The text of docs/api.md."""
    lines = [_HEAD]
    for namespace, names in sections():
        if not names:
            continue
        lines += [f"## {'ag.' + namespace if namespace else 'ag'}", "", "| name | TensorFlow | | differences |"]
        lines.append("| --- | --- | --- | --- |")
        for name, value in names.items():
            theirs = ONLY_HERE.get(name, "" if name.startswith("array_api.") else f"tf.{name}")
            shown = f"`{theirs}`" if theirs else "–"
            lines.append(f"| `{name}` | {shown} | {first_sentence(value)} | {DIFFERENCES.get(name, '')} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
