"""TensorFlow's options of the conversion: `Feature`, and what `ag.function` and `to_graph` take of it."""

import pytest

import autograph as ag

Feature = ag.autograph.experimental.Feature


def shout(x):
    print("x is", x, {"a": 1})
    return x


@pytest.mark.parametrize("features", [Feature.BUILTIN_FUNCTIONS, Feature.ALL, (Feature.LISTS, Feature.ALL)])
def test_prints_of_tensors_run_with_the_program(features, capsys):
    shouting = ag.function(shout, experimental_autograph_options=features)
    shouting(ag.constant([1, 2]))
    shouting(ag.constant([3, 4]))
    assert capsys.readouterr().out == "x is [1 2] {'a': 1}\nx is [3 4] {'a': 1}\n"


@pytest.mark.parametrize("features", [None, Feature.LISTS])
def test_without_the_feature_they_run_while_tracing(features, capsys):
    shouting = ag.function(shout, experimental_autograph_options=features)
    shouting(ag.constant([1, 2]))
    shouting(ag.constant([3, 4]))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("x is Tensor(")


def test_prints_of_python_values_stay_pythons(capsys):
    @ag.function(experimental_autograph_options=Feature.BUILTIN_FUNCTIONS)
    def f(x):
        print("tracing", 3, sep="-")
        return x

    f(ag.constant(1))
    f(ag.constant(2))
    assert capsys.readouterr().out == "tracing-3\n"


def test_sets_of_features():
    assert Feature.LISTS in Feature.all() and Feature.LISTS not in Feature.all_but(Feature.LISTS)
    assert not {Feature.LISTS, Feature.NAME_SCOPES} & set(Feature.all_but([Feature.LISTS, Feature.NAME_SCOPES]))
    with pytest.raises(TypeError, match="Feature"):
        ag.function(shout, experimental_autograph_options="LISTS")
    assert ag.autograph.to_graph(shout, experimental_optional_features=Feature.ALL)(1) == 1


def test_the_old_name_of_jit_compile():
    assert float(ag.function(lambda x: x * 2, experimental_compile=True)(ag.constant(2.0))) == 4.0


def test_generators_are_refused():
    @ag.function
    def numbers(n):
        for i in range(n):
            yield i

    with pytest.raises(NotImplementedError, match="generators are not supported"):
        numbers(3)


def test_unbound_variables_in_python_say_so_in_tensorflows_words_too():
    @ag.function
    def last(n):
        for i in range(n):
            pass
        return i

    with pytest.raises(UnboundLocalError, match="local variable 'i'.*: 'i' is used before assignment$"):
        last(0)
