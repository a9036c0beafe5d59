"""`tensorflow.python.autograph`: the parts of TensorFlow's converter that TensorFlow Probability's auto-batching names.

Ours has other parts. `import tensorflow_probability` finds the names; auto-batching itself is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import autograph as ag

_ROOT = "tensorflow.python.autograph"


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise ag.errors.UnimplementedError(
            f"{_ROOT}.{name} is a part of TensorFlow's own converter, which autograph doesn't have: auto-batching "
            "isn't supported; write the function for one example and call ag.vectorized_map"
        )

    return refuse


_FUNCTIONS = {
    "converters.break_statements": "transform",
    "converters.continue_statements": "transform",
    "converters.return_statements": "transform",
    "core.converter": "ConversionOptions ProgramContext standard_analysis",
    "pyct.anno": "getanno hasanno",
    "pyct.common_transformers.anf": "transform",
    "pyct.inspect_utils": "getfutureimports getnamespace",
    "pyct.loader": "load_ast",
    "pyct.naming": "Namer",
    "pyct.parser": "parse_entity",
    "pyct.qual_names": "QN resolve",
    "pyct.static_analysis.activity": "resolve",
    "pyct.templates": "replace replace_as_expression",
    "pyct.transformer": "Context EntityInfo",
}
MODULES: dict[str, dict[str, Any]] = {
    f"{_ROOT}.{module}": {name: _refused(f"{module}.{name}") for name in names.split()}
    for module, names in _FUNCTIONS.items()
}
MODULES[f"{_ROOT}.pyct.transformer"]["Base"] = ast.NodeTransformer
