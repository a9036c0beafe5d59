"""What is said of a public name that isn't there: where it is, what TensorFlow calls it now, or what to use instead."""

from __future__ import annotations

from types import ModuleType
from typing import Any

_NO_FILES = (
    "read and write other files with Python (open, numpy.load, numpy.save), in a dataset by py_function or "
    "from_generator"
)
_NO_GRAPHS = "there are no graphs to build by hand: decorate a Python function with function"
# By TensorFlow's full name, or its beginning with a star.
_INSTEAD = {
    "layers": "they are Keras': ag.keras.layers",
    "initializers": "they are Keras': ag.keras.initializers; random_normal_initializer and its like are here",
    "losses": "they are Keras': ag.keras.losses",
    "metrics": "they are Keras': ag.keras.metrics",
    "optimizers": "they are Keras': ag.keras.optimizers",
    "estimator": "TensorFlow has no estimators any more: ag.keras.Model has fit",
    "feature_column": "Keras' preprocessing layers do this: ag.keras.layers, ag.keras.utils.FeatureSpace",
    "contrib": "TensorFlow 2 has no contrib either",
    "compat.v1": "only TensorFlow 2's names are here; with TensorFlow 1's programs, `tf_upgrade_v2` comes first",
    "train.*": "optimisers are Keras': ag.keras.optimizers",
    "summary.*": "summary.write writes any tensor; the kinds that have a function of their own are here",
    "queue": "there are no queues: data.Dataset with prefetch reads ahead",
    "raw_ops": "operations have no raw form: use the public functions",
    "tpu": "there are no TPUs here: programs run on the CPU and on GPUs",
    "lite": "ag.export.c_library and ag.onnx.export make programs for elsewhere (docs/deploy.md)",
    "xla": "function(jit_compile=True) compiles, without XLA",
    "mlir": "the stages of a program are shown by `autograph to-code`, `autograph graph` and f.explain (docs/cli.md)",
    "quantization.*": "there are no quantised dtypes",
    "dtensor": "tensors live on one machine",
    "io.*": _NO_FILES,
    "image.*": "images are arrays: use Pillow or SciPy before they are tensors, or write it with the ops that are here",
    "linalg.LinearOperator*": "they are in the facade: import tensorflow after ag.compat.install(), and use tf.linalg",
    "Graph": _NO_GRAPHS,
    "Operation": _NO_GRAPHS,
    "Session": f"TensorFlow 2 has no sessions, functions are called; {_NO_GRAPHS}",
    "InteractiveSession": "TensorFlow 2 has no sessions: tensors have their values at once",
    "placeholder": "TensorFlow 2 has no placeholders: they are a function's parameters (input_signature)",
    "get_variable": "TensorFlow 2 has none: make a Variable, and keep it in a Module",
    "variable_scope": "TensorFlow 2 has none: name_scope names operations, a Module keeps variables",
    "global_variables_initializer": "TensorFlow 2 has none: variables have their values when they are made",
    "enable_eager_execution": "eager execution is always on outside of functions",
    "disable_eager_execution": f"eager execution is always on outside of functions; {_NO_GRAPHS}",
    "hessians": "GradientTape in a GradientTape gives second derivatives, `tape.jacobian` all of them",
    "test.TestCase": "use unittest.TestCase or pytest, and numpy.testing",
    "test.is_gpu_available": "config.list_physical_devices() says what there is",
}
# TensorFlow 1's names, and what they are called now.
_RENAMED = {
    "assign": "Variable.assign", "assign_add": "Variable.assign_add", "assign_sub": "Variable.assign_sub",
    "cross": "linalg.cross", "count_nonzero": "math.count_nonzero", "div": "divide", "Print": "print",
    "diag": "linalg.diag", "diag_part": "linalg.diag_part", "floordiv": "math.floordiv", "mod": "math.mod",
    "random_normal": "random.normal", "random_shuffle": "random.shuffle", "random_uniform": "random.uniform",
    "set_random_seed": "random.set_seed", "sparse_tensor_to_dense": "sparse.to_dense", "log": "math.log",
    "string_join": "strings.join", "sub": "subtract", "mul": "multiply", "neg": "negative",
    "to_double": "cast(x, float64)", "to_float": "cast(x, float32)", "to_int32": "cast(x, int32)",
    "to_int64": "cast(x, int64)", "truncated_normal": "random.truncated_normal", "where_v2": "where",
    "concatenate": "concat", "array": "constant", "tensor": "constant", "as_tensor": "convert_to_tensor",
    "asarray": "convert_to_tensor", "sum": "reduce_sum", "mean": "reduce_mean", "max": "reduce_max",
    "min": "reduce_min", "prod": "reduce_prod", "any": "reduce_any", "all": "reduce_all", "dot": "tensordot",
    "jit": "function(jit_compile=True)", "grad": "GradientTape", "gradient": "GradientTape", "vmap": "vectorized_map",
    "arange": "range", "permute": "transpose", "absolute": "abs", "float": "float32", "int": "int32", "str": "string",
}  # fmt: skip


def message(package: Any, namespace: str, name: str) -> str:
    """What an AttributeError says. namespace: that of the name in `package`, "" or "math."."""
    said = f"module 'autograph{'.' if namespace else ''}{namespace.rstrip('.')}' has no attribute '{name}'"
    full = namespace + name
    fix = _INSTEAD.get(full) or next(
        (text for key, text in _INSTEAD.items() if key.endswith("*") and full.startswith(key[:-1])), None
    )
    if fix is not None:
        return f"{said}: {fix}"
    elsewhere = [found for found in _places(package, "") if found.rpartition(".")[2] == name]
    elsewhere.sort(key=lambda found: found.count("."))
    if not namespace and name in _RENAMED:
        elsewhere = [_RENAMED[name]]
    if elsewhere:
        return f"{said}: it is ag.{' or ag.'.join(elsewhere[:2])}"
    module = package
    for part in namespace.split(".")[:-1]:
        module = getattr(module, part)
    import difflib  # only here, where somebody has made a mistake

    close = difflib.get_close_matches(name, module.__all__, 2, 0.75)
    return f"{said}. Did you mean: {' or '.join(repr(each) for each in close)}?" if close else said


def _places(module: Any, namespace: str) -> list[str]:
    """The full names of what is public."""
    found = []
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, ModuleType) and value.__name__.startswith("autograph.namespaces."):
            found += _places(value, f"{namespace}{name}.")
        elif not isinstance(value, ModuleType):
            found.append(namespace + name)
    return found
