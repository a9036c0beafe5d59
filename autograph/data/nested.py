"""Datasets as elements of datasets: windows, groups, and what mapped functions make.

Eagerly such an element is a dataset like any other. In a program it is a tensor of one object, its plan, so that a
traced function can be handed another one in each run; what is made of it there is a plan with a hole (`Hole`), which
is filled when the program asks for elements. So are the tensors of plans that are made there (`computed`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from autograph.data.elements import as_element, call
from autograph.data.plans import Follower, Plan, Zipped
from runtime import composites, dtypes, nest
from runtime.errors import FailedPreconditionError
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor, SymbolicTensor


class DatasetSpec:
    """Describes a dataset whose elements have a spec, as an element of another dataset or an argument of a function."""

    __ag_composite__ = "dataset"
    __ag_exact__ = True
    make: Callable[[Plan], Any]  # makes the element of a plan: set where that class is

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        if tuple(dataset_shape):
            raise ValueError(f"dataset_shape must be (), for a single dataset, got {dataset_shape}")
        self.element_spec = element_spec
        self.dtype = dtypes.string
        self._shape = ()

    @property
    def shape(self) -> Any:
        return TensorSpec((), dtypes.string).shape

    @classmethod
    def from_value(cls, value: Any) -> DatasetSpec:
        """The spec of a dataset."""
        return cls(value.element_spec)

    def is_compatible_with(self, value: Any) -> bool:
        """Whether a dataset, or a spec of one, has elements of this spec."""
        return bool(getattr(value, "element_spec", None) == self.element_spec)

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return self, (TensorSpec((), dtypes.string),)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Any:
        return unflattened(metadata, components[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetSpec) and self.element_spec == other.element_spec

    def __hash__(self) -> int:
        return hash(tuple(nest.flatten(self.element_spec)))

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec!r}, TensorShape([]))"


def unflattened(spec: DatasetSpec, component: Any) -> Any:
    """The dataset that a tensor represents, given its spec; a spec is returned unchanged."""
    if isinstance(component, TensorSpec):
        return spec
    plan = component._array.item() if isinstance(component, EagerTensor) else Hole(spec.element_spec, component)
    return DatasetSpec.make(plan)


class Listed(Plan):
    """Elements that are there, eager ones."""

    is_copied = True

    def __init__(self, found: list[Any], spec: Any) -> None:
        self.found, self.spec = found, spec

    def cardinality(self) -> Any:
        return len(self.found)

    def elements(self) -> Iterator[Any]:
        return iter(self.found)


class Hole(Plan):
    """In a program: the plan that a tensor of one object holds, which only a run of the program knows."""

    def __init__(self, spec: Any, handle: Any) -> None:
        self.spec, self.handle = spec, handle

    @property
    def waits(self) -> bool:
        return True

    def elements(self) -> Iterator[Any]:
        raise FailedPreconditionError(
            "This dataset is an element of another one in a traced function: its elements exist only at run time"
        )


class MappedDatasets(Follower):
    """A function of each element, where elements or results hold datasets: it is called as the Python that it is."""

    def __init__(self, source: Plan, function: Callable[..., Any], spec: Any) -> None:
        super().__init__(source)
        self.indexed = False
        self.function, self.spec = function, spec

    @property
    def is_copied(self) -> bool:
        return False

    @property
    def waits(self) -> bool:
        return True

    def elements(self) -> Iterator[Any]:
        return map(self._made, self.source.elements())

    def _made(self, element: Any) -> Any:
        return as_element(call(self.function, element))


def computed(plan: Plan) -> list[SymbolicTensor]:
    """The tensors that a plan has from the program: its holes' and those that it holds, each once."""
    held = [getattr(plan, name) for name in plan.held]
    own = [plan.handle] if isinstance(plan, Hole) else composites.flatten(held, expand_composites=True)
    found = {id(leaf): leaf for leaf in own if isinstance(leaf, SymbolicTensor)}
    for source in plan.sources:
        found.update({id(leaf): leaf for leaf in computed(source)})
    return list(found.values())


def filled(plan: Plan, given: dict[int, EagerTensor]) -> Plan:
    """A plan with values in place of `computed` tensors, which are known by their `id`."""
    if isinstance(plan, Hole):
        return given[id(plan.handle)]._array.item()
    if not computed(plan):
        return plan
    made = copy.copy(plan)
    for name in plan.held:
        held = getattr(plan, name)
        values = [given.get(id(leaf), leaf) for leaf in composites.flatten(held, expand_composites=True)]
        setattr(made, name, composites.pack_sequence_as(held, values, expand_composites=True))
    if isinstance(made, Zipped):
        made.structure = nest.map_structure(lambda each: filled(each, given), made.structure)
        made.flat = nest.flatten(made.structure)
        return made
    for name, value in vars(plan).items():
        if isinstance(value, Plan):
            setattr(made, name, filled(value, given))
        elif isinstance(value, list) and value and all(isinstance(each, Plan) for each in value):
            setattr(made, name, [filled(each, given) for each in value])
    return made


def component(plan: Plan) -> Any:
    """The tensor that stands for a dataset with a plan."""
    if isinstance(plan, Hole):
        return plan.handle
    if computed(plan):
        raise FailedPreconditionError(
            "A traced function can't return or pass on a dataset made from its tensors or from an element of another "
            "dataset: loop over it in the function, or make it in `flat_map`"
        )
    array = np.empty((), object)
    array[()] = plan
    return EagerTensor(array, dtypes.string)
