"""`variable_creator_scope`: functions that make variables in place of their class."""

import autograph as ag


def test_creators_see_the_arguments_and_may_change_them():
    seen = []

    def creator(next_creator, **options):
        seen.append((options["name"], options["trainable"]))
        return next_creator(**{**options, "trainable": False})

    with ag.variable_creator_scope(creator):
        variable = ag.Variable(1.0, name="v")
    assert seen == [("v", None)]
    assert not variable.trainable
    assert ag.Variable(1.0).trainable


def test_the_innermost_is_asked_first():
    order = []

    def named(name):
        def creator(next_creator, **options):
            order.append(name)
            return next_creator(**options)

        return creator

    with ag.variable_creator_scope(named("outer")), ag.variable_creator_scope(named("inner")):
        assert float(ag.Variable(2.0)) == 2
    assert order == ["inner", "outer"]


def test_a_creator_may_give_something_else():
    with ag.variable_creator_scope(lambda next_creator, **options: "instead"):
        assert ag.Variable(1.0) == "instead"


def test_variables_of_functions_are_made_by_creators():
    seen = []

    def creator(next_creator, **options):
        seen.append(options["name"])
        return next_creator(**options)

    made = []

    @ag.function
    def function(x):
        if not made:
            made.append(ag.Variable(2.0, name="inside"))
        return x * made[0]

    with ag.variable_creator_scope(creator):
        assert float(function(3.0)) == 6
    assert "inside" in seen
