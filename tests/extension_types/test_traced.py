"""Extension types as arguments and results of traced functions, in loops and branches, and with gradients."""

import numpy as np
import pytest

import autograph as ag
from tests.extension_types.kinds import Described, Fixed, Masked, Mixed, Node, Player

X = Masked([1.0, 2.0, 3.0], [True, False, True])


def counted(function, **options):
    """A traced function, and the list to which each of its traces adds."""
    traces = []

    def counting(*args):
        traces.append(args)
        return function(*args)

    return ag.function(counting, **options), traces


def test_a_function_is_traced_once_for_each_spec():
    f, traces = counted(lambda player: Player("anonymous", player.scores))
    found = f(Player("Anne", {"height": 8.3, "speed": 28.1}))
    assert found.name == "anonymous" and found.scores["speed"].numpy() == np.float32(28.1)
    assert isinstance(traces[0][0], Player) and traces[0][0].name == "Anne"
    f(Player("Anne", {"speed": 25.3, "height": 8.1}))
    assert len(traces) == 1
    f(Player("Anne", {"height": 11.0, "jump": 5.3}))
    f(Player("Bart", {"height": 11.0, "jump": 5.3}))
    f(Player("Bart", {"height": 11.0, "jump": 5.3}, limit=3.0))  # not 3
    assert len(traces) == 4


def test_values_without_tensors():
    f, traces = counted(lambda fixed, x: (Fixed(fixed.n + 1), x * fixed.n))
    for n in (2, 3, 2):
        made, product = f(Fixed(n), ag.constant(5))
        assert made.n == n + 1 and product.numpy() == 5 * n
    assert len(traces) == 2
    concrete = f.get_concrete_function(Fixed.Spec(2), ag.TensorSpec([], ag.int32))
    assert concrete(Fixed(2), ag.constant(7))[1].numpy() == 14


def test_all_kinds_of_parts():
    mixed = Mixed(ag.ragged.constant([[1], []]), ag.sparse.from_dense([0, 5]), X, [2, None], "float32")

    @ag.function
    def f(mixed):
        assert mixed.shape == ag.TensorShape([2, None]) and mixed.dtype is ag.float32
        return Mixed(mixed.ragged * 2, mixed.sparse * 3, X, mixed.shape, mixed.dtype, True)

    found = f(mixed)
    assert found.ragged.to_list() == [[2], []] and ag.sparse.to_dense(found.sparse).numpy().tolist() == [0, 15]
    assert found.flag is True and bool(found.masked == X)


def test_input_signature():
    spec = Player.Spec("Anne", {"height": ag.TensorSpec(None)}, (), None, 3)
    f, traces = counted(lambda player: player.scores["height"] + 1, input_signature=[spec])
    assert f(Player("Anne", {"height": 1.0})).numpy() == 2
    assert f(Player("Anne", {"height": [1.0, 2.0]})).numpy().tolist() == [2, 3]
    assert len(traces) == 1
    for wrong in (Player("Bart", {"height": 1.0}), Player("Anne", {"height": 1}), X):
        with pytest.raises(TypeError, match="incompatible with input_signature"):
            f(wrong)


def test_a_signature_may_be_more_general_in_shapes():
    class Shaped(ag.experimental.ExtensionType):
        shape: ag.TensorShape
        x: ag.Tensor

    f, traces = counted(lambda value: value, input_signature=[Shaped.Spec([None], ag.TensorSpec(None))])
    assert f(Shaped([2], [1.0, 2.0])).x.numpy().tolist() == [1, 2] and f(Shaped([3], 1.0)).x.numpy() == 1
    assert len(traces) == 1
    with pytest.raises(TypeError, match="doesn't fit"):
        f(Shaped([2, 2], 1.0))


def test_concrete_functions():
    f = ag.function(lambda player, x: player.scores["a"] + x)
    concrete = f.get_concrete_function(Player.Spec("Anne", {"a": ag.TensorSpec([])}, (), None, 3), ag.TensorSpec([]))
    assert concrete(Player("Anne", {"a": 1.0}), ag.constant(2.0)).numpy() == 3
    with pytest.raises(TypeError, match="doesn't have the structure of Player.Spec"):
        concrete(Player("Bart", {"a": 1.0}), ag.constant(2.0))
    assert "Player.Spec(name='Anne'" in str(concrete.function_type)


# --- loops and branches ----------------------------------------------------------------------------------------------


def test_statements():
    def f(x, flag, n):
        x = Masked(x, x < 0) if flag else Masked(x, x > 0)
        tree = Node(x.values)
        for _ in ag.range(n):
            if x.values[0] > 3:
                x = x.with_values(x.values * 2)
            else:
                x = Masked(x.values + 1, x.mask)
            tree = Node(tree.value + x.values, ())
        return x.with_default(-1.0), tree

    traced = ag.function(f)
    for flag in (True, False):
        for n in (0, 1, 5):
            given = ag.constant([1.0, -2.0, 3.0]), ag.constant(flag), ag.constant(n)
            (found, tree), (expected, its_tree) = traced(*given), f(*given)
            assert found.numpy().tolist() == expected.numpy().tolist()
            assert tree.value.numpy().tolist() == its_tree.value.numpy().tolist()


def test_functions_for_control_flow():
    other = Masked([22.0, 33.0, 108.0, 55.0], [True, True, True, False])
    for run in (lambda f: f, ag.function):
        choose = run(lambda flag: ag.cond(flag, lambda: X, lambda: other))
        assert choose(ag.constant(True)).values.shape == [3] and bool(choose(ag.constant(False)) == other)
        case = run(lambda i: ag.switch_case(i, [lambda: X, lambda: other]))
        assert bool(case(ag.constant(1)) == other)
        loop = run(
            lambda x: ag.while_loop(lambda i, _: i < 10, lambda i, x: (i + 1, x.with_values(x.values + 0.5)), [0, x])
        )
        assert loop(X)[1].values.numpy().tolist() == [6, 7, 8]


def test_shapes_may_grow_in_a_loop():
    @ag.function
    def f(x, n):
        for _ in ag.range(n):
            x = Masked(ag.concat([x.values, x.values], 0), ag.concat([x.mask, x.mask], 0))
        return x

    assert f(X, ag.constant(3)).values.shape == [24] and f(X, ag.constant(0)).mask.numpy().tolist() == [
        True,
        False,
        True,
    ]


def test_what_is_fixed_stays_so_in_loops_and_branches():
    @ag.function
    def branch(x):
        return Player("Anne", {"a": x}) if x > 0 else Player("Bart", {"a": x})

    @ag.function
    def loop(player, n):
        for _ in ag.range(n):
            player = Player(player.name + "x", player.scores)
        return player

    @ag.function
    def number(fixed, n):
        for _ in ag.range(n):
            fixed = Fixed(fixed.n + 1)
        return n

    with pytest.raises(ValueError, match=r"Player.Spec\(name='Anne'.* in the first, Player.Spec\(name='Bart'"):
        branch(ag.constant(1.0))
    with pytest.raises(TypeError, match=r"Player.Spec\(name='Anne'.*before, Player.Spec\(name='Annex'"):
        loop(Player("Anne", {"a": 1.0}), ag.constant(2))
    with pytest.raises(TypeError, match=r"Fixed.Spec\(n=1\) before, Fixed.Spec\(n=2\) after"):
        number(Fixed(1), ag.constant(2))


def test_errors_name_the_field():
    @ag.function
    def f(x):
        player = Player("Anne", {"height": x})
        for _ in ag.range(x):
            player = Player("Anne", {"height": ag.cast(player.scores["height"], ag.float32)})
        return player

    with pytest.raises(TypeError, match=r"player.scores\['height'\]"):
        f(ag.constant(2))


def test_a_field_takes_no_number_that_is_computed():
    @ag.function
    def f(n):
        count = 0
        for _ in ag.range(n):
            count += 1
        return Fixed(count)

    with pytest.raises(TypeError, match="annotate the field as a Tensor"):
        f(ag.constant(3))


def test_methods_may_be_traced():
    class Scale(ag.experimental.ExtensionType):
        factor: ag.Tensor

        @ag.function
        def apply(self, x):
            return x * self.factor if self.factor > 0 else x

        @staticmethod
        def of(factor):
            return Scale(factor)

    assert Scale.of(2.0).apply(ag.constant(3.0)).numpy() == 6 and Scale(-2.0).apply(ag.constant(3.0)).numpy() == 3


# --- gradients and the rest ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [lambda f: f, ag.function])
def test_gradients(run):
    @run
    def f(value, n):
        for _ in ag.range(n):
            value = Described(value.values * value.values, value.mask)
        return ag.reduce_sum(ag.where(value.mask, value.values, 0.0))

    value = Described([1.0, 2.0, 3.0], [True, False, True])
    with ag.GradientTape() as tape:
        tape.watch(value.values)
        total = f(value, ag.constant(2))
    assert tape.gradient(total, value.values).numpy().tolist() == [4, 0, 108]


@pytest.mark.parametrize("run", [lambda f: f, ag.function])
def test_identity(run):
    mixed = Mixed(ag.ragged.constant([[1], []]), ag.sparse.from_dense([0, 5]), X, [2, None], "float32")
    found = run(lambda value: ag.identity(value))(mixed)
    assert found.ragged.to_list() == [[1], []] and ag.sparse.to_dense(found.sparse).numpy().tolist() == [0, 5]
    assert bool(found.masked == X) and found.masked.values is not X.values and found.dtype is ag.float32


def test_nests():
    pair = {"x": X, "n": 3}
    assert ag.nest.flatten(pair)[1] is X
    assert len(ag.nest.flatten(pair, expand_composites=True)) == 3
    doubled = ag.nest.map_structure(lambda x: x * 2.0 if x.dtype is ag.float32 else x, X, expand_composites=True)
    assert doubled.values.numpy().tolist() == [2, 4, 6]
    ag.nest.assert_same_structure(X, Masked([1.0], [True]), expand_composites=True)
    with pytest.raises(TypeError, match="same sequence type"):
        ag.nest.assert_same_structure(Fixed(1), Fixed(2), expand_composites=True)
    with pytest.raises(TypeError, match="same sequence type"):
        ag.nest.assert_same_structure(X, Described([1.0], [True]), expand_composites=True)


def test_traces_on_extension_types_are_not_saved(tmp_path):
    model = ag.Module()
    model.grow = ag.function(lambda x: ag.reduce_sum(x.values * 2.0))
    model.grow(X)
    with pytest.warns(UserWarning, match=r"A trace of .* isn't saved, .* an argument is of the class Masked.Spec"):
        ag.saved_model.save(model, tmp_path)
