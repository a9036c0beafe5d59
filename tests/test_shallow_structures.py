"""Structures compared and flattened as deep as another one goes, with TensorFlow's results."""

import collections

import pytest

import autograph as ag
from runtime import shallow_structures as shallow

Point = collections.namedtuple("Point", "x y")


def test_flatten_up_to():
    assert shallow.flatten_up_to([1, 2], [[3], {"a": 4}]) == [[3], {"a": 4}]
    assert shallow.flatten_up_to({"b": 0, "a": [0, 0]}, {"a": [1, (2, 3)], "b": 4}) == [1, (2, 3), 4]
    assert shallow.flatten_up_to(Point(0, [0]), Point([1], [2])) == [[1], 2]
    assert shallow.flatten_up_to(0, [1, 2]) == [[1, 2]]


@pytest.mark.parametrize(
    ("tree", "value", "error", "message"),
    [
        ([0, 0], 1, TypeError, "must also be a sequence"),
        ([0, 0], [1], ValueError, "same sequence length"),
        ([0], (1,), TypeError, "same sequence type"),
        ({"a": 0}, {"b": 1}, ValueError, "same keys"),
        (Point(0, 0), (1, 2), None, ""),
        ([[0]], [1], TypeError, "must also be a sequence"),
    ],
)
def test_structures_that_differ(tree, value, error, message):
    if error is None:
        shallow.assert_shallow_structure(tree, value)
        return
    with pytest.raises(error, match=message):
        shallow.assert_shallow_structure(tree, value)


def test_types_need_not_be_checked():
    shallow.assert_shallow_structure([0], (1,), check_types=False)


def test_map_structure_up_to():
    assert shallow.map_structure_up_to([0, (0,)], lambda a, b: (a, b), [1, (2,)], [[3], ([4],)]) == [
        (1, [3]),
        ((2, [4]),),
    ]
    with pytest.raises(ValueError, match="empty"):
        shallow.map_structure_up_to([0], lambda: 0)
    named = shallow.map_structure_with_tuple_paths_up_to({"a": [0, 0]}, lambda path, x: (path, x), {"a": [1, [2]]})
    assert named == {"a": [(("a", 0), 1), (("a", 1), [2])]}
    text = shallow.map_structure_with_path_up_to({"a": [0]}, lambda path, x: f"{path}={x}", {"a": [5]})
    assert text == {"a": ["a/0=5"]}


def test_paths():
    value = {"b": Point(1, [2]), "a": (3,)}
    assert shallow.flatten_with_tuple_paths(value) == [(("a", 0), 3), (("b", "x"), 1), (("b", "y", 0), 2)]
    assert shallow.flatten_with_joined_string_paths(value) == [("a/0", 3), ("b/x", 1), ("b/y/0", 2)]
    assert list(shallow.yield_flat_paths([1, [2]])) == [(0,), (1, 0)]
    assert shallow.map_structure_with_paths(lambda path, x, y: (path, x + y), [1, [2]], [3, [4]]) == [
        ("0", 4), [("1/0", 6)]
    ]  # fmt: skip


def test_composites_are_leaves_unless_expanded():
    value = [ag.ragged.constant([[1], [2, 3]])]
    assert shallow.flatten_with_tuple_paths(value) == [((0,), value[0])]
    assert [path for path, _ in shallow.flatten_with_tuple_paths(value, expand_composites=True)] == [(0, 0), (0, 1)]


def test_how_far_to_look():
    value = [1, [2, [3]], {"a": 4}]
    assert shallow.get_traverse_shallow_structure(lambda part: not isinstance(part, dict), value) == [
        True, [True, [True]], False
    ]  # fmt: skip
    assert shallow.get_traverse_shallow_structure(
        lambda part: [True, False] if isinstance(part, list) else True, [1, [2]]
    ) == [True, False]
    with pytest.raises(TypeError, match="neither"):
        shallow.get_traverse_shallow_structure(lambda part: 3, [1])
    with pytest.raises(TypeError, match="True or False"):
        shallow.get_traverse_shallow_structure(lambda part: [True], 1)


def test_what_things_are():
    assert shallow.is_mapping(collections.OrderedDict()) and not shallow.is_mapping([1])
    assert shallow.is_namedtuple(Point(1, 2)) and not shallow.is_namedtuple((1, 2))
    assert shallow.is_namedtuple(Point(1, 2), strict=True)
    assert shallow.list_to_tuple([1, {"a": [2]}, [3, (4,)]]) == (1, {"a": (2,)}, (3, (4,)))
