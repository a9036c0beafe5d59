"""Declaring extension types and making values: what TensorFlow's documentation says of both."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import autograph as ag
from tests.extension_types.kinds import Described, Fixed, Masked, Mixed, Node, Player, Scaled

MASKED = Masked([1, 2, 3], [True, True, False])


def test_fields_are_converted():
    assert MASKED.values.numpy().tolist() == [1, 2, 3] and MASKED.mask.dtype is ag.bool
    player = Player("Anne", {"height": 8.3}, [1, 2.5], limit=2.5)
    assert isinstance(player.path, tuple) and player.path[0].dtype is ag.int32
    assert player.scores["height"].dtype is ag.float32 and player.weight is None and player.limit == 2.5
    assert Player("Anne", {}, weight=1).weight.numpy() == 1
    assert repr(player.scores).startswith("ImmutableDict({'height'")
    with pytest.raises(TypeError, match="does not support item assignment"):
        player.scores["height"] = 1.0


def test_a_default_that_is_a_tensor_is_made_for_each_value():
    class Pencil(ag.experimental.ExtensionType):
        color: str = "black"
        length: ag.Tensor = 1.0

    assert Pencil().length.numpy() == 1 and Pencil(length=0.5, color="blue").length.numpy() == 0.5
    assert Pencil.length == 1.0
    assert str(inspect.signature(Pencil)).startswith("(color: str = 'black', length:")
    assert repr(Pencil("red", 2)).endswith(
        "Pencil(color='red', length=<tf.Tensor: shape=(), dtype=int32, numpy=2>)"
    )  # fmt: skip


def test_fields_without_default_after_one_with_are_by_keyword():
    class Late(ag.experimental.ExtensionType):
        a: int = 1
        b: int

    assert (Late(b=2).a, Late(3, b=2).a) == (1, 3)
    with pytest.raises(TypeError, match="too many positional"):
        Late(1, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Masked([1], None), "mask: expected a Tensor, got 'NoneType'"),
        (lambda: Masked([1]), "Masked: missing a required argument: 'mask'; its fields are"),
        (lambda: Player(3, {}), "name: expected 'str', got 'int'"),
        (lambda: Player("a", [1]), "scores: expected mapping, got 'list'"),
        (lambda: Player("a", {1: 2.0}), r"scores\[<key>\]: expected 'str', got 'int'"),
        (lambda: Player("a", {"b": None}), r"scores\['b'\]: expected a Tensor"),
        (lambda: Player("a", {}, 3), "path: expected tuple, got 'int'"),
        (lambda: Player("a", {}, limit="x"), r"limit: expected (typing.Union|int \| float)"),
        (lambda: Node(1, [2]), r"children\[0\]: expected 'Node', got 'int'"),
        (lambda: Fixed(2.0), "n: expected 'int', got 'float'"),
        (lambda: Masked.Spec([1], ag.TensorSpec([1], ag.bool)), "values: expected a TensorSpec, got 'list'"),
        (lambda: Node.Spec(ag.TensorSpec([]), [ag.TensorSpec([])]), "expected a TypeSpec for 'Node'"),
        (ag.experimental.ExtensionType, "ExtensionType is abstract"),
    ],
)
def test_wrong_values(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_validation():
    with pytest.raises(AssertionError, match=r"mask.dtype must be bool"):
        Masked([1, 2], [0, 1])
    with pytest.raises(ValueError, match="incompatible"):
        Masked([1, 2], [True])


def test_a_constructor_must_set_every_field():
    class Half(ag.experimental.ExtensionType):
        a: int
        b: int

        def __init__(self):
            self.a = 1

    class Surplus(ag.experimental.ExtensionType):
        a: int

        def __init__(self):
            self.a = 1
            self.b = 2

    with pytest.raises(ValueError, match=r"Missing required fields: \{'b'\}"):
        Half()
    with pytest.raises(AttributeError, match="attribute `b`.*no such field"):
        Surplus()


def test_values_are_immutable():
    for change in (lambda: setattr(MASKED, "mask", 1), lambda: delattr(MASKED, "mask")):
        with pytest.raises(AttributeError, match="Cannot mutate attribute `mask`.*make another"):
            change()
    with pytest.raises(AttributeError, match="Cannot mutate attribute `values`"):
        Masked.Spec.from_value(MASKED).values = None


def test_subclasses():
    scaled = Scaled([1.0, 2.0])
    assert isinstance(scaled, Masked) and scaled.with_default(0.0).numpy().tolist() == [1, 2]
    assert len(ag.nest.flatten(scaled, expand_composites=True)) == 3
    assert repr(Scaled.Spec.from_value(scaled)).startswith("Scaled.Spec(values=TensorSpec(shape=(2,)")

    class Longer(Scaled):
        extra: int

        def __init__(self):
            super().__init__([1.0])
            self.extra = 4

    assert Longer().extra == 4 and Longer().factor.numpy() == 2


def test_forward_references():
    tree = Node(3, [Node(5), Node(2)])
    assert [child.value.numpy() for child in tree.children] == [5, 2]


def test_annotations_as_strings(tmp_path, monkeypatch):
    (tmp_path / "with_strings.py").write_text(
        "from __future__ import annotations\n"
        "import autograph as ag\n"
        "class First(ag.experimental.ExtensionType):\n"
        "    second: Second | None = None\n"
        "    sizes: tuple[int, ...] = (1, 2)\n"
        "    others: tuple[Second, ...] = ()\n"
        "class Second(ag.experimental.ExtensionType):\n"
        "    x: ag.Tensor\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import with_strings

    assert with_strings.First(with_strings.Second(3)).second.x.numpy() == 3 and with_strings.First().sizes == (1, 2)
    with pytest.raises(TypeError, match="second: expected"):
        with_strings.First(3)


@pytest.mark.parametrize("kind", [list[int], np.ndarray, dict, "list[int]"])
def test_annotations_that_no_field_may_have(kind):
    with pytest.raises(TypeError, match="In field 'x': Unsupported type annotation"):
        type("Wrong", (ag.experimental.ExtensionType,), {"__annotations__": {"x": kind}, "__module__": __name__})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"x": 3}, "Field x is missing a type annotation"),
        ({"__annotations__": {"Spec": int}}, "must be a nested class"),
        ({"__annotations__": {"_type_spec": int}}, "'_type_spec' is reserved"),
        ({"Spec": 3}, "must be a nested class"),
        ({"__annotations__": {"x": int}, "Spec": type("Spec", (), {"x": 1})}, "defines 'x', which is a field"),
        ({"__annotations__": {"x": int}, "Spec": type("Spec", (), {"value_type": 1})}, "reserved name 'value_type'"),
    ],
)
def test_names_that_no_field_may_have(body, message):
    with pytest.raises(ValueError, match=message):
        type("Wrong", (ag.experimental.ExtensionType,), {"__module__": __name__, **body})


def test_a_name_that_is_never_defined():
    class Open(ag.experimental.ExtensionType):
        x: "Undefined"  # noqa: F821

    with pytest.raises(TypeError, match="x: the annotation 'Undefined' names a class that isn't defined"):
        Open(1)


def test_equality():
    other = Masked([[3, 4], [5, 6]], [[False, True], [True, True]])
    assert bool(MASKED == Masked([1, 2, 3], [True, True, False])) and not bool(MASKED != MASKED)  # noqa: PLR0124
    assert not bool(MASKED == Masked([1, 2, 4], [True, True, False]))
    assert (MASKED == other) is False and (MASKED != other) is True and (MASKED == MASKED.values) is False
    assert (Fixed(1) == Fixed(1)) is True and (Fixed(1) == Fixed(2)) is False
    assert (Player("a", {"x": 1, "y": 2}) == Player("a", {"y": 2, "x": 1})).numpy()
    with pytest.raises(TypeError, match="unhashable"):
        hash(MASKED)

    @ag.function(input_signature=[Masked.Spec(ag.TensorSpec([None]), ag.TensorSpec([None], ag.bool))] * 2)
    def same(x, y):
        return x == y

    three = Masked([1.0, 2.0, 3.0], [True] * 3)
    assert bool(same(three, three)) and not bool(same(three, Masked([1.0], [True])))


def test_copies_and_pickles():
    for again in (copy.copy(MASKED), copy.deepcopy(MASKED), pickle.loads(pickle.dumps(MASKED))):
        assert bool(again == MASKED)
    spec = Described.Spec([None, 2])
    assert pickle.loads(pickle.dumps(spec)) == spec


# --- specs -----------------------------------------------------------------------------------------------------------


def test_specs():
    anne = Player("Anne", {"height": 8.3}, [1, 2])
    spec = Player.Spec.from_value(anne)
    assert spec.name == "Anne" and spec.scores == {"height": ag.TensorSpec([], ag.float32)}
    assert spec == Player.Spec.from_value(Player("Anne", {"height": 1.5}, [3, 4])) and hash(spec) == hash(spec)
    assert spec != Player.Spec.from_value(Player("Bart", {"height": 1.5}, [3, 4]))
    assert Fixed.Spec(1) != Fixed.Spec(True) and Fixed.Spec(1) == Fixed.Spec(1)
    assert Player.Spec.value_type is Player
    with pytest.raises(TypeError, match=r"Player.Spec.from_value expects a Player, got a Fixed"):
        Player.Spec.from_value(Fixed(3))


def test_a_spec_of_ones_own():
    spec = Described.Spec([None, 2])
    assert repr(spec) == "Described.Spec((None, 2))" and spec.mask == ag.TensorSpec([None, 2], ag.bool)
    with pytest.raises(AttributeError, match="has no such field"):
        type("Wrong", (ag.experimental.ExtensionType,), {"Spec": type("Spec", (), {"__init__": _set_more})}).Spec()


def _set_more(self):
    self.more = 1


def test_compatible_values():
    spec = Described.Spec([None, 2])
    assert spec.is_compatible_with(Described([[1.0, 2.0]], [[True, True]]))
    assert spec.is_compatible_with(Described.Spec([3, None]))
    assert not spec.is_compatible_with(Described([1.0, 2.0], [True, True]))
    assert not spec.is_compatible_with(Described([[1, 2]], [[True, True]]))
    assert not spec.is_compatible_with(Masked([[1.0, 2.0]], [[True, True]])) and not spec.is_compatible_with(3)
    assert Fixed.Spec(1).is_compatible_with(Fixed(1)) and not Fixed.Spec(1).is_compatible_with(Fixed(2))


def test_all_kinds_of_parts():
    mixed = Mixed(ag.ragged.constant([[1], []]), ag.sparse.from_dense([0, 5]), MASKED, [2, None], "float32")
    assert mixed.shape == ag.TensorShape([2, None]) and mixed.dtype is ag.float32
    spec = Mixed.Spec.from_value(mixed)
    assert spec.ragged == ag.RaggedTensorSpec([2, None], ag.int32) and spec.masked == Masked.Spec.from_value(MASKED)
    assert spec.sparse.shape == ag.TensorShape([2])
    assert Mixed.Spec(spec.ragged, spec.sparse, spec.masked, [2, None], ag.float32, False) == spec
    with pytest.raises(TypeError, match="shape: expected 'tf.TensorShape', got 'str'"):
        Mixed(mixed.ragged, mixed.sparse, MASKED, "a", "float32")
    with pytest.raises(TypeError, match="ragged: expected 'RaggedTensor', got 'list'"):
        Mixed([1], mixed.sparse, MASKED, None, "float32")
