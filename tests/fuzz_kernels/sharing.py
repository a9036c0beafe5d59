"""Statements after which several names may be the same memory: aliases, exchanges, arrays, lists, element updates.

What native code gets wrong here is a value that was handed on (by a name, a branch, a loop, `stack()`) and read after
something wrote in place into the memory that it lies in. So these programs hand on much, write much, and return all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import autograph as ag
from tests.fuzz_kernels.program import Statement

SHAPES: list[tuple[int, ...]] = [(3,), (3,), (3,), (2, 2), (3, 3), (4,), ()]


@dataclass
class Elements:
    """A TensorArray or list: what its elements are, and how many there are at least."""

    dtype: str
    shape: tuple[int, ...]
    count: int
    grows: bool = False


class Sharing:
    """To be mixed into `Generator`, whose `values`, `expressions` and `random` it uses."""

    random: Any
    values: dict[str, Any]
    expressions: Any
    serial: int
    arrays: dict[str, Elements]
    lists: dict[str, Elements]

    def _fresh(self, letter: str) -> str:
        self.serial += 1
        return f"{letter}{self.serial}"

    def _index(self, count: int) -> str:
        """The text of an index that is mostly in range."""
        counters = [name for name in ("i0", "i1", "i2") if name in self.values]
        return self.random.choice(
            ["0", str(count - 1), f"n % {count}", *(f"{name} % {count}" for name in counters * 2), *counters[:1]]
        )

    def _sample(self, elements: Elements, *more: int) -> Any:
        return ag.constant(np.ones((*more, *elements.shape), elements.dtype))

    def _element(self, elements: Elements) -> str | None:
        """An expression for a new element; often a value as it is, or another element."""
        same = [
            name for name, v in self.values.items()
            if v.dtype.name == elements.dtype and tuple(v.shape) == elements.shape
        ]  # fmt: skip
        if same and self.random.random() < 0.4:
            return str(self.random.choice(same))
        text = self.expressions.of(elements.dtype, elements.shape)
        value = self.expressions.value_of(text)
        if value is None or value.dtype.name != elements.dtype or tuple(value.shape) != elements.shape:
            return None
        return str(text)

    # --- statements ----------------------------------------------------------------------------------------------

    def _alias(self, depth: int) -> list[Statement]:
        """Another name for a value; inside of blocks also one that was there before."""
        source = self.random.choice(list(self.values))
        value = self.values[source]
        old = [
            name for name, v in self.values.items()
            if name[0] not in "in" and name != source and v.dtype is value.dtype and v.shape == value.shape
        ]  # fmt: skip
        target = self.random.choice(old) if old and self.random.random() < (0.8 if depth else 0.3) else self._fresh("y")
        self.values[target] = value
        return [Statement(f"{target} = {source}")]

    def _swap(self, depth: int) -> list[Statement]:
        """Two or three names change places."""
        first = self.random.choice([name for name in self.values if name[0] not in "in"])
        value = self.values[first]
        others = [
            name for name, v in self.values.items()
            if name[0] not in "in" and name != first and v.dtype is value.dtype and v.shape == value.shape
        ]  # fmt: skip
        if not others:
            return []
        names = [first, *self.random.sample(others, min(len(others), self.random.choice([1, 1, 2])))]
        turned = names[1:] + names[:1]
        text = self.expressions.like(names[-1])
        new = self.expressions.value_of(text)
        if new is not None and new.dtype is value.dtype and new.shape == value.shape and self.random.random() < 0.4:
            turned[self.random.randrange(len(turned))] = text
        return [Statement(f"{', '.join(names)} = {', '.join(turned)}")]

    def _array(self, depth: int) -> list[Statement]:
        """A TensorArray filled from a tensor, or a second name for one."""
        if self.arrays and self.random.random() < 0.3:
            name, source = self._fresh("t"), self.random.choice(list(self.arrays))
            if depth and len(self.arrays) > 1:
                same = [t for t, e in self.arrays.items() if e == self.arrays[source]]
                name = self.random.choice(same)
            self.arrays[name] = self.arrays[source]
            return [Statement(f"{name} = {source}")]
        full = [n for n, v in self.values.items() if v.shape.rank and v.shape[0] and v.dtype.name != "bool"]
        if not full:
            return []
        source, name = self.random.choice(full), self._fresh("t")
        value = self.values[source]
        grows = self.random.random() < 0.3
        size = "size=0, dynamic_size=True" if grows else f"size={value.shape[0]}"
        shape = tuple(value.shape)[1:]
        self.arrays[name] = Elements(value.dtype.name, shape, value.shape[0], grows)
        made = f"ag.TensorArray(ag.{value.dtype.name}, {size}, element_shape={list(shape)}, clear_after_read=False)"
        return [Statement(f"{name} = {made}.unstack({source})")]

    def _write(self, depth: int) -> list[Statement]:
        if not self.arrays:
            return self._array(depth)
        name = self.random.choice(list(self.arrays))
        array = self.arrays[name]
        text = self._element(array)
        if self.random.random() < 0.3:
            text = f"{name}.read({self._index(array.count)})"
        target = self._fresh("t") if self.random.random() < 0.15 else name
        if target != name and not depth:
            self.arrays[target] = array
        return [Statement(f"{target} = {name}.write({self._index(array.count)}, {text})")] if text else []

    def _take(self, depth: int) -> list[Statement]:
        """What an array or list holds becomes a tensor: as a whole, or one element."""
        choices = [*self.arrays, *self.lists]
        if not choices:
            return self._array(depth)
        source = self.random.choice(choices)
        array = source in self.arrays
        elements = self.arrays[source] if array else self.lists[source]
        if self.random.random() < 0.6:
            text, value = (
                f"{source}.stack()" if array else f"ag.stack({source})",
                self._sample(elements, elements.count),
            )
        else:
            index = self._index(elements.count)
            text, value = f"{source}.read({index})" if array else f"{source}[{index}]", self._sample(elements)
        old = [
            n for n, v in self.values.items() if n[0] not in "in" and v.dtype is value.dtype and v.shape == value.shape
        ]
        name = self.random.choice(old) if old and self.random.random() < (0.6 if depth else 0.2) else self._fresh("x")
        self.values[name] = value
        return [Statement(f"{name} = {text}")]

    def _list(self, depth: int) -> list[Statement]:
        """A list that a loop fills, or one of a few tensors."""
        name = self._fresh("l")
        source = self.random.choice([n for n in self.values if n[0] not in "in"])
        value = self.values[source]
        shape = tuple(value.shape)
        if shape and shape[0] and self.random.random() < 0.5:
            item, self.lists[name] = self._fresh("e"), Elements(value.dtype.name, shape[1:], shape[0])
            changed = item if value.dtype.name == "bool" else self.random.choice([item, f"{item} * {item}", f"-{item}"])
            return [
                Statement(f"{name} = []"),
                Statement(f"for {item} in {source}:", [Statement(f"{name}.append({changed})")]),
            ]
        self.lists[name] = Elements(value.dtype.name, shape, 2)
        text = self._element(self.lists[name]) or source
        return [Statement(f"{name} = [{source}, {text}]")]

    def _change(self, depth: int) -> list[Statement]:
        """An element of a list is replaced, added or taken off."""
        if not self.lists:
            return self._list(depth)
        name = self.random.choice(list(self.lists))
        elements = self.lists[name]
        text = self._element(elements)
        if text is None:
            return []
        put = Statement(f"{name}[{self._index(elements.count)}] = {text}")
        add = Statement(f"{name}.append({text})")
        kind = self.random.choice(["put", "put", "add", "pop"])
        if kind == "pop":
            taken = self._fresh("x")
            if not depth:
                self.values[taken] = self._sample(elements)
            return [Statement(f"{taken} = {name}.pop()"), add]
        return [put if kind == "put" else add]

    def _element_update(self, depth: int) -> list[Statement]:
        """One or two elements of a tensor change; the old tensor often has a second name."""
        full = [n for n, v in self.values.items() if n[0] not in "in" and v.shape.rank and 0 not in tuple(v.shape)]
        if not full:
            return []
        name = self.random.choice(full)
        value = self.values[name]
        size, shape = int(value.shape[0]), tuple(value.shape)
        kinds = ["update"] * 3 + (["add", "sub", "max", "min"] if value.dtype.name != "bool" else [])
        call = f"ag.tensor_scatter_nd_{self.random.choice(kinds)}"
        place = self._index(size)
        if len(shape) == 2 and self.random.random() < 0.6:
            row, column = self._index(size), self._index(shape[1])
            text = f"{call}({name}, [[{place}, {column}]], [{name}[{row}, {column}]])"
        elif self.random.random() < 0.4:
            text = f"{call}({name}, [[{place}], [{self._index(size)}]], {name}[:2])"
        else:
            item = self._element(Elements(value.dtype.name, shape[1:], 1))
            text = f"{call}({name}, [[{place}]], [{item or f'{name}[0]'}])"
        before: list[Statement] = []
        if self.random.random() < 0.4:
            kept = self._fresh("y")
            if not depth:
                self.values[kept] = value
                before = [Statement(f"{kept} = {name}")]
        return [*before, Statement(f"{name} = {text}")]

    def _small(self, depth: int) -> list[Statement]:
        """Ops on tensors of a few elements, as native loops print them element by element."""
        name = self.random.choice([n for n in self.values if n[0] not in "in"])
        value = self.values[name]
        rank, number = value.shape.rank, value.dtype.name != "bool"
        options = ["ag.reshape({a}, {s})", "ag.identity({a})"]
        if rank and value.shape[0]:
            options += [
                "ag.concat([{a}[1:], {a}[:1]], 0)",
                "ag.stack(ag.unstack({a}, {z})[::-1])",
                "ag.roll({a}, 1, 0)",
            ]
            options += ["ag.gather({a}, [0, {i}] + list(range(2, {z})))"] if value.shape[0] >= 2 else []
            options += ["ag.gather_nd({a}, [[{i}]] * {z})", "{a}[::-1]"]
        if number and rank and value.shape[0]:
            options += ["{a} + ag.reduce_max({a}, 0)", "{a} * {a}[{i}]", "{a} - ag.reduce_sum({a}, 0, keepdims=True)"]
        if rank == 2 and value.shape[0] == value.shape[1]:
            options += ["ag.transpose({a})"] * 2
            if number and value.dtype.name != "uint8":
                options += ["ag.matmul({a}, {a})", "ag.matmul({a}, {b}, transpose_b=True)", "ag.matmul({b}, {a}) - {a}"]
        same = [n for n, v in self.values.items() if v.dtype is value.dtype and v.shape == value.shape]
        text = self.random.choice(options).format(
            a=name, b=self.random.choice(same), s=list(value.shape), z=value.shape[0] if rank else 0,
            i=self._index(value.shape[0]) if rank and value.shape[0] else "0",
        )  # fmt: skip
        if value.dtype.is_floating and self.random.random() < 0.6:
            text = self.random.choice(["ag.tanh({})", "ag.sin({})", "{}"]).format(text)
        found = self.expressions.value_of(text)
        if found is None or found.dtype is not value.dtype or found.shape != value.shape:
            return []
        return [Statement(f"{self.random.choice(same) if depth and same[0] != 'n' else name} = {text}")]

    def _slice_assign(self, depth: int) -> list[Statement]:
        """Part of a variable is assigned, from itself or from a value."""
        source = [n for n, v in self.values.items() if v.dtype.name == "float32" and tuple(v.shape) == (3,)]
        place = self._index(3)
        texts = [f"v[{place}].assign(v[{self._index(3)}] * 0.5)", "v[1:].assign(v[:2])"]
        if source:
            name = self.random.choice(source)
            texts += [f"v.assign({name})", f"v[:2].assign({name}[1:])", f"v[{place}].assign({name}[0])"]
            self.values[name] = self._sample(Elements("float32", (3,), 1))
            texts += [f"{name} = v.read_value()", f"{name} = v.value() * 1.0"]
        return [Statement(self.random.choice(texts))]
