"""Random expressions over the values that a program has at a place."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import autograph as ag

FLOAT_UNARY = [
    "ag.tanh({})", "ag.sin({})", "ag.abs({})", "-{}", "ag.nn.relu({})", "ag.sigmoid({})", "ag.square({})",
    "ag.exp(ag.minimum({}, 2.0))", "ag.sqrt(ag.abs({}))", "ag.floor({})", "ag.round({})", "ag.sign({})", "ag.cos({})",
    "ag.math.softplus({})", "ag.math.log1p(ag.abs({}))", "ag.math.erf({})", "ag.nn.softmax({})", "{} / 3.0",
    "ag.math.is_nan({})", "ag.math.ceil({})", "{} * 0.5", "1.0 / {}", "ag.math.rsqrt(ag.abs({}) + 1.0)", "{} ** 3",
    "{} ** -2", "ag.abs({}) ** 1.5", "ag.abs({}) ** 0.3", "ag.exp(-{0} * {0})",
]  # fmt: skip
INT_UNARY = ["ag.abs({})", "-{}", "ag.square({})", "ag.sign({})", "{} * 3", "{} + 7", "{} // 2", "{} % 3", "7 // {}"]
BOOL_UNARY = ["ag.logical_not({})", "~{}"]
ANY_UNARY = [
    "ag.reshape({}, [-1])", "ag.transpose({})", "ag.reverse({}, [0])", "{}[::-1]", "{}[1:]", "{}[:2]", "{}[..., 0]",
    "{}[0]", "{}[-1]", "{}[:, None]", "ag.expand_dims({}, -1)", "ag.tile({}, [2])", "ag.squeeze({})", "{}[::2]",
    "ag.concat([{0}, {0}], 0)", "ag.stack([{0}, {0}], 0)", "ag.roll({}, 1, 0)", "ag.zeros_like({})", "ag.ones_like({})",
    "ag.size({})", "ag.shape({})", "{}[:, 1:]", "ag.transpose({}, [1, 0])", "ag.repeat({}, 2, 0)", "{}[n]", "{}[n:]",
    "{}[:n]", "ag.reshape({}, [ag.size({})])", "{}[-2:, ..., None]", "ag.pad({}, [[1, 2]])",
    "ag.pad({}, [[1, 0], [0, 1]])",
    "ag.unstack({}, 3)[1]", "ag.split({}, 2)[1]", "ag.identity({})", "ag.transpose({}, [2, 0, 1])",
    "ag.pad({}, [[n, 0]])",
    "ag.tile({}, [1, n])", "ag.broadcast_to({}, [2, 3])", "ag.stop_gradient({})", "ag.repeat({}, n, 0)",
    "ag.linalg.diag_part({})", "ag.linalg.band_part({}, 1, 0)", "ag.reverse({}, [-1])", "ag.fill([3], {})",
]  # fmt: skip
REDUCTIONS = ["sum", "max", "min", "mean", "prod"]
BINARY = ["{} + {}", "{} - {}", "{} * {}", "ag.maximum({}, {})", "ag.minimum({}, {})"]
INT_BINARY = [
    "{} // {}", "{} % {}", "ag.math.floordiv({}, {})", "ag.truncatediv({}, {})", "ag.bitwise.bitwise_xor({}, {})",
    "ag.bitwise.bitwise_and({}, {})", "{} ** ag.abs({})",
]  # fmt: skip
FLOAT_BINARY = [
    "{} / {}", "ag.atan2({}, {})", "ag.math.floormod({}, {})", "ag.math.squared_difference({}, {})",
    "ag.math.divide_no_nan({}, {})", "ag.math.floordiv({}, {})", "ag.math.xlogy({}, ag.abs({}) + 1.0)",
    "ag.abs(ag.complex({0}, {1}) * ag.complex({1}, {0}))", "ag.math.real(ag.complex({0}, {1}) ** 3)",
]  # fmt: skip
BOOL_BINARY = ["{} & {}", "{} | {}", "{} ^ {}", "ag.logical_and({}, {})"]
# Not `==` and `!=`: of shapes that are found not to fit at run time they raise; eager they are False and True.
COMPARE = ["{} < {}", "{} >= {}", "ag.not_equal({}, {})", "{} > {}", "ag.equal({}, {})"]
LIMIT = 6_000_000  # elements of one value


class Expressions:
    """`values` are what names hold; `readable` further ones that must not be assigned."""

    def __init__(self, random: random.Random, values: dict[str, Any]) -> None:
        self.random = random
        self.values = values
        self.readable: dict[str, Any] = {}
        self.globals = {"ag": ag, "np": np, "v": ag.Variable([1.0, -2.0, 0.5]), "w": ag.Variable(3)}

    def value_of(self, text: str | None) -> Any:
        """What the expression gives now; None where it fails or gives something that programs here don't hold."""
        if text is None:
            return None
        try:
            value = eval(text, {**self.globals, **self.values, **self.readable})
            if not isinstance(value, ag.Tensor) or value.dtype.name in ("string", "complex64"):
                return None
            return value if np.size(value.numpy()) <= LIMIT and value.shape.rank <= 4 else None
        except Exception:
            return None

    def _pick(self, accept: Any = lambda value: True) -> str | None:
        names = [n for n, v in {**self.values, **self.readable}.items() if accept(v)]
        # The newest names make the deepest programs.
        return self.random.choice([*names, *names[-3:]]) if names else None

    def any(self) -> str | None:
        choose = self.random
        kind = choose.choices(
            ["unary", "binary", "compare", "shape", "reduce", "where", "gather", "scatter", "cast", "product", "misc"],
            [5, 6, 1, 5, 3, 1, 1.5, 1.5, 1.2, 0.8, 1.2],
        )[0]
        return getattr(self, f"_{kind}")()

    def like(self, name: str) -> str | None:
        """An expression that may have the type of `name`."""
        value = self.values[name]
        return self.of(value.dtype.name, tuple(value.shape), name)

    def of(self, dtype: str, shape: tuple[int, ...], own: str | None = None) -> str | None:
        choose = self.random

        def fits(value: Any) -> bool:
            return bool(value.dtype.name == dtype)

        def spreads(value: Any) -> bool:
            return fits(value) and (value.shape.rank == 0 or tuple(value.shape) == shape)

        first = own or self._pick(lambda value: fits(value) and tuple(value.shape) == shape)
        second = self._pick(spreads)
        if first is None or choose.random() < 0.1:
            # A literal constant of the type.
            return (
                f"ag.fill({list(shape)}, ag.constant({choose.randint(0, 3)}, ag.{dtype}))" if dtype != "bool" else None
            )
        second = second or first
        options = [*BOOL_BINARY] if dtype == "bool" else [*BINARY, *BINARY]
        if dtype.startswith(("int", "uint")):
            options += [*INT_BINARY[:2], "{0} % 7", "{0} + 1"]
        elif dtype != "bool":
            options += [
                "ag.tanh({0} * {1})",
                "ag.sin({0}) + {1}",
                "{0} * 0.5",
                "ag.where({0} > {1}, {1}, -{0})",
                "{0} / 2.0",
            ]
        if shape and shape[0]:
            row = choose.choice(["[[0]]", "[[n]]", f"[[{shape[0] - 1}], [0]]"])
            rows = "2" if "], [" in row else "1"
            options += [f"ag.tensor_scatter_nd_update({{0}}, {row}, {{1}}[:{rows}])", "{0}[::-1]", "ag.roll({0}, 1, 0)"]
            if dtype != "bool":
                options.append(f"ag.tensor_scatter_nd_add({{0}}, {row}, {{0}}[:{rows}])")
                options.append("ag.cumsum({0})" if dtype != "uint8" else "{0}")
                options.append(f"{{0}} + ag.reduce_{choose.choice(REDUCTIONS[:4])}({{1}})")
        index = next((x for x in ("i2", "i1", "i0") if x in self.values), None)
        if index and shape and shape[0] and choose.random() < 0.6:
            options = [f"{{0}} + {{0}}[{index}]", f"ag.tensor_scatter_nd_update({{0}}, [[{index}]], {{1}}[:1])"]
            options += ["{0} * {1}[" + index + "]"] if dtype != "bool" else []
            if dtype == "bool":
                options[0] = f"{{0}} | {{0}}[{index}]"
        return choose.choice(options).format(first, second)

    def condition(self) -> str | None:
        """The text of a scalar truth value."""
        choose = self.random
        flag = self._pick(lambda v: v.dtype.name == "bool" and v.shape.rank == 0)
        if flag and choose.random() < 0.4:
            return flag
        number = self._pick(lambda v: v.dtype.name != "bool" and v.shape.rank == 0)
        if number and choose.random() < 0.6:
            return f"{number} {choose.choice(['<', '>', '==', '>='])} {choose.randint(-2, 4)}"
        array = self._pick(lambda v: v.dtype.name != "bool" and v.shape.rank)
        if array:
            kind, sign = choose.choice(["sum", "max", "min"]), choose.choice("<>")
            return f"ag.reduce_{kind}({array}) {sign} {choose.randint(-3, 5)}"
        return None

    # --- kinds ---------------------------------------------------------------------------------------------------

    def _template(self, name: str) -> str:
        dtype = self._of(name).dtype
        if dtype.is_floating:
            return self.random.choice(FLOAT_UNARY)
        return self.random.choice(BOOL_UNARY if dtype.name == "bool" else INT_UNARY)

    def _of(self, name: str) -> Any:
        return self.values[name] if name in self.values else self.readable[name]

    def _unary(self) -> str | None:
        name = self._pick()
        text = name and self._template(name).format(name)
        if text and name and self.random.random() < 0.3 and self._of(name).dtype.is_floating:
            text = self.random.choice(FLOAT_UNARY).format(f"({text})")
        return text

    def _binary(self) -> str | None:
        if self.random.random() < 0.12:
            return self.random.choice(["v + {}", "{} * v", "w + {}", "v * 2.0", "w * w", "v.read_value() - {}"]).format(
                self._pick()
            )
        first = self._pick()
        if first is None:
            return None
        dtype = self._of(first).dtype
        second = self._pick(lambda v: v.dtype is dtype)
        options = BINARY + (FLOAT_BINARY if dtype.is_floating else INT_BINARY)
        return self.random.choice(BOOL_BINARY if dtype.name == "bool" else options).format(first, second)

    def _compare(self) -> str | None:
        first = self._pick(lambda v: v.dtype.name != "bool")
        if first is None:
            return None
        dtype = self._of(first).dtype
        return self.random.choice(COMPARE).format(first, self._pick(lambda v: v.dtype is dtype))

    def _shape(self) -> str | None:
        name = self._pick(lambda v: v.shape.rank or self.random.random() < 0.2)
        return name and self.random.choice(ANY_UNARY).replace("{0}", "{}").replace("{}", name)

    def _reduce(self) -> str | None:
        name = self._pick(lambda v: v.shape.rank)
        if name is None:
            return None
        value = self._of(name)
        axis = self.random.choice(["", f", {self.random.randrange(value.shape.rank)}", ", -1", ", 0"])
        if value.shape.rank > 1 and self.random.random() < 0.2:
            axis = ", [0, 1]" if self.random.random() < 0.5 else ", [0, -1]"
        keep = ", keepdims=True" if self.random.random() < 0.3 else ""
        if value.dtype.name == "bool":
            return f"ag.reduce_{self.random.choice(['any', 'all'])}({name}{axis}{keep})"
        kinds = [f"reduce_{k}" for k in REDUCTIONS * 2]
        if not keep:
            kinds += ["argmax", "argmin", "cumsum", "math.cumprod"]
        if value.dtype.is_floating:
            kinds += ["math.reduce_variance", "math.reduce_logsumexp", "math.reduce_std"]
        return f"ag.{self.random.choice(kinds)}({name}{axis}{keep})"

    def _where(self) -> str | None:
        flag = self._pick(lambda v: v.dtype.name == "bool")
        first = self._pick()
        if not (flag and first):
            return None
        return f"ag.where({flag}, {first}, {self._pick(lambda v: v.dtype is self._of(first).dtype)})"

    def _gather(self) -> str | None:
        name = self._pick(lambda v: v.shape.rank)
        index = self._pick(lambda v: v.dtype.name in ("int32", "int64"))
        if name is None:
            return None
        fixed = self.random.choice(
            ["[0]", "[1, 0, 1]", "[[0, 1], [1, 0]]", "n", f"{index} % 2", f"ag.abs({index}) % 3"]
        )
        axis = self.random.choice(["", ", axis=-1", ", axis=0"])
        if self.random.random() < 0.2:
            return f"ag.gather_nd({name}, {self.random.choice(['[[0]]', '[[0, 1]]', '[[0], [1]]'])})"
        return f"ag.gather({name}, {fixed}{axis})"

    def _scatter(self) -> str | None:
        name = self._pick(lambda v: v.shape.rank)
        if name is None:
            return None
        kind = self.random.choice(["update", "add", "max", "min", "sub"])
        rows = self.random.choice(["[[0]]", "[[0], [1]]", "[[1], [1]]", "[[n]]"])
        count = rows.count("],") + 1
        if self.random.random() < 0.3:
            index = self._pick(lambda v: v.dtype.name in ("int32", "int64") and v.shape.rank == 1)
            if index is not None:
                return f"ag.math.unsorted_segment_sum({name}, ag.abs({index}), 6)"
        return f"ag.tensor_scatter_nd_{kind}({name}, {rows}, {name}[:{count}])"

    def _cast(self) -> str | None:
        name = self._pick()
        narrow = ["float16", "bfloat16"]
        target = self.random.choice(
            ["float32", "float32", "float64", "int32", "int64", "bool", "uint8", "int8", *narrow]
        )
        return name and f"ag.cast({name}, ag.{target})"

    def _product(self) -> str | None:
        first = self._pick(lambda v: v.shape.rank and v.shape.rank >= 2)
        if first is None:
            return None
        dtype = self._of(first).dtype
        second = self._pick(lambda v: v.dtype is dtype and v.shape.rank >= 2)
        flags = self.random.choice(["", ", transpose_b=True", ", transpose_a=True"])
        return f"ag.matmul({first}, {second}{flags})"

    def _misc(self) -> str | None:
        name, other = self._pick(), self._pick(lambda v: v.dtype.name in ("int32", "int64"))
        if name is None:
            return None
        return self.random.choice(
            ["ag.sort({a})", "ag.one_hot({b}, 4)", "ag.concat([{a}, {a}[:1]], 0)", "ag.range(n)", "ag.zeros([n, 2])",
             "ag.math.top_k({a}, 2)[0]", "ag.reshape({a}, [1, -1])",
             "ag.reshape({a}, [-1, 1]) + ag.reshape({a}, [1, -1])",
             "ag.stack([ag.reduce_max({a}), ag.reduce_min({a})])", "ag.clip_by_value({a}, -1, 2)",
             "ag.broadcast_to({a}, [n, 3])",
             "ag.range(ag.size({a}))", "ag.ones([3]) * v", "ag.linalg.trace({a})", "ag.cumsum({a}, reverse=True)",
             "ag.cumsum({a}, exclusive=True)", "ag.boolean_mask({a}, {a} == {a})", "ag.where({a} > v)",
             "ag.unique(ag.reshape({a}, [-1]))[0]", "ag.repeat({a}, ag.range(ag.shape({a})[0]) % 3, axis=0)",
             "ag.fill([n, 2], w)", "ag.eye(3)",
             "ag.tensordot({a}, {a}, 1)", "ag.math.reduce_euclidean_norm({a})",
             "ag.random.stateless_uniform(ag.shape({a}), [3, 7])", "ag.random.stateless_normal([n, 2], [n, 1])",
             "ag.random.stateless_uniform([n + 7], [1, n], 0, 9, ag.int32)", "ag.random.stateless_normal([], [n, 2])",
             "ag.linalg.cholesky(ag.matmul({a}, {a}, transpose_b=True) + ag.eye(ag.shape({a})[-2], dtype={a}.dtype))",
             "ag.searchsorted(ag.sort({a}), {a})"]
        ).format(a=name, b=other)  # fmt: skip
