"""Nested structures: order, types kept, errors."""

import collections
import dataclasses
import operator

import pytest

from runtime import nest

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass(frozen=True)
class Pair:
    left: object
    right: object


class AttrsLike:
    """What attrs makes, as far as nest looks at it."""

    def __init__(self, width, height):
        self.width, self.height = width, height

    __attrs_attrs__ = tuple(collections.namedtuple("Attribute", "name")(n) for n in ("width", "height"))


STRUCTURES = [
    (1, [1]),
    (None, [None]),
    ([1, (2, [3]), []], [1, 2, 3]),
    ({"b": 1, "a": (2, [3])}, [2, 3, 1]),
    (Point(1, Pair(2, 3)), [1, 2, 3]),
    (collections.OrderedDict([("z", 1), ("a", 2)]), [2, 1]),
    (collections.defaultdict(list, {"k": 1}), [1]),
    ("text", ["text"]),
    ({}, []),
]


@pytest.mark.parametrize("structure, leaves", STRUCTURES)
def test_flatten_and_pack(structure, leaves):
    assert nest.flatten(structure) == leaves
    packed = nest.pack_sequence_as(structure, leaves)
    assert packed == structure
    assert type(packed) is type(structure)
    if isinstance(structure, dict):
        assert list(packed) == list(structure)


def test_attrs_classes():
    shape = AttrsLike(1, [2, 3])
    assert nest.flatten(shape) == [1, 2, 3]
    packed = nest.pack_sequence_as(shape, "abc")
    assert (packed.width, packed.height) == ("a", ["b", "c"])


def test_map_structure():
    assert nest.map_structure(lambda a, b: a + b, {"x": 1, "y": [2]}, {"x": 10, "y": [20]}) == {"x": 11, "y": [22]}
    assert nest.map_structure(str, 3) == "3"
    assert nest.map_structure(lambda a, b: (a, b), [1], (2,), check_types=False) == [(1, 2)]
    with pytest.raises(TypeError, match="func must be callable"):
        nest.map_structure(3, [1])


@pytest.mark.parametrize(
    "first, second, error, message",
    [
        ([1], (1,), TypeError, "same sequence type"),
        ([1], [1, 2], ValueError, "same number of elements"),
        ([1], 1, ValueError, "the other is not"),
        ({"a": 1}, {"b": 1}, ValueError, "same set of keys"),
        ([1, [2]], [1, [2, 3]], ValueError, "same number of elements"),
    ],
)
def test_different_structures(first, second, error, message):
    with pytest.raises(error, match=message):
        nest.assert_same_structure(first, second)
    with pytest.raises(error):
        nest.map_structure(lambda a, b: a, first, second)


def test_packing_the_wrong_number():
    with pytest.raises(ValueError, match="Structure had 2 atoms, but flat_sequence had 1 items"):
        nest.pack_sequence_as([1, 2], [1])
    with pytest.raises(ValueError, match="had 3 items"):
        nest.pack_sequence_as([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="of length 2"):
        nest.pack_sequence_as(1, [1, 2])


def test_keys_that_cannot_be_sorted():
    with pytest.raises(TypeError, match="sortable keys"):
        nest.flatten({1: "a", "b": 2})


@pytest.mark.parametrize(("structure", "leaves"), STRUCTURES)
def test_packer(structure, leaves):
    pack = nest.packer(structure)
    others = [object() for _ in leaves]
    for _ in range(2):
        made, expected = pack(others), nest.pack_sequence_as(structure, others)
        assert type(made) is type(expected)
        assert all(map(operator.is_, nest.flatten(made), others))
        nest.assert_same_structure(made, expected)
        if isinstance(structure, dict):
            assert list(made) == list(structure)
            assert made is not structure
