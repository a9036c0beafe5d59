"""``while`` and ``for`` loops: Python's own on Python values, staged on symbolic tensors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from types import CellType
from typing import Any

from autograph.errors import StagingError, user_location
from autograph.operators.changing_conditions import ConditionChangesState, moved_test
from autograph.operators.containers import iterator_over_staged_list
from autograph.operators.frame import Frame
from autograph.operators.iterables import ListItems, SelfIterator, Staged, rest_of, staged, watched
from autograph.operators.iterators import taking_all_from, taking_from
from autograph.operators.live import LIST_ITERATOR, pending
from autograph.operators.logic import and_
from autograph.operators.peeling import start_of
from autograph.operators.raising import forget_refused, keeps_refusals
from autograph.operators.staged_if import stage_branches
from autograph.operators.staged_while import stage_while
from autograph.operators.state import Block, LocalSlot, read_cell, slots
from autograph.operators.streams import stage_stream, stream_of
from autograph.operators.symbolic import DECIDED, UNSTAGED, condition, truth
from autograph.operators.unbound import as_unbound_local, run
from runtime.context import ctx
from runtime.graph.unrolled import note_unrolled
from runtime.staged_list import Moved, StagedList

# An endless iterator whose loop only a tensor could leave is unrolled at most this far.
_MOST_UNROLLED = 10_000
# A loop on Python values may make at most so many operations: they take a gigabyte. Looked at now and then.
_MOST_OPERATIONS = 1_000_000
_CHECKED_EACH = 256


def while_stmt(test: Block, body: Block, names: tuple[str, ...] = ()) -> None:
    """Runs ``body`` as long as ``test`` holds.

    names: the variables that it sets and that matter in the next iteration or afterwards. A test that turns out to be
    a symbolic tensor, at first or after some iterations on Python values, stages the loop from there on.
    """
    builder = ctx.builder
    probe = None
    try:
        if builder is None:  # nothing is being traced
            while test():
                body()
            return
        before, trips, cells = len(builder.graph.nodes), 0, test.__closure__ or ()
        start = start_of(test, body, names)
        if start is not None and start.stage_at_once():
            return
        while True:
            probe = _Probe(builder, cells)
            going = test()
            staging = type(going) not in DECIDED and truth(going) is not None
            if staging or not going:
                if staging and trips == 1 and start is not None and start.stage_with_first_trip():
                    return
                if trips:
                    note_unrolled(builder, trips, before)
                if staging:
                    break
                return
            body()
            trips += 1
            if trips % _CHECKED_EACH == 0:
                _check_size(len(builder.graph.nodes) - before, trips)
    except NameError as error:
        changed = as_unbound_local(error, test.__code__, body.__code__)
        if changed is error:
            raise
    else:
        assert probe is not None
        _stage_while(probe, going, test, body, names)
        return
    raise changed


def _check_size(made: int, trips: int) -> None:
    """Raises StagingError for a loop that would fill the memory with its copies, as one that Python never ends."""
    if made > _MOST_OPERATIONS:
        raise StagingError(
            f"a loop on Python values was unrolled {trips} times, which made {made} operations",
            location=user_location(),
            cause="Python decides how often it runs while the function is traced, so each iteration becomes a copy",
            fix="loop over ag.range(n), or give `while` a condition on tensors, so that the program has the loop once; "
            "or end it, if it never ends",
        )


def for_stmt(iterable: Any, body: Block, test: Block | None = None, names: tuple[str, ...] = ()) -> None:
    """Runs ``body`` for each item; after an iteration ``test`` tells whether to go on."""
    if type(iterable) not in UNSTAGED:
        source = staged(iterable)
        if source is not None:
            if type(iterable) is LIST_ITERATOR:
                taking_from(iterable)
                if test is not None:
                    taking_all_from(iterable)
                deque(iterable, maxlen=0)  # nothing is left in it
            elif isinstance(iterable, SelfIterator) and not iterable.use(test is not None):
                return
            if type(iterable) is StagedList and iterable.is_generator:
                if test is not None:
                    taking_all_from(iterable)
                blocks = (body,) if test is None else (body, test)
                _stage_for(source, watched(iterable, body), test, names, blocks)
                iterable.taken()
            else:
                _stage_for(source, body, test, names)
            return
        stream = stream_of(iterable)
        if stream is not None:
            stage_stream(stream, body, test, names)
            return
        taking_from(iterable)
    # Only the loop itself may keep the iterator alive, as in Python: a generator is closed when its loop is left.
    holder = [iterable]
    plain = iterable if type(iterable) in (list, LIST_ITERATOR) else None
    del iterable
    rest: ListItems | None = None
    passed = 0
    builder = ctx.builder
    before = len(builder.graph.nodes) if builder is not None else 0
    count = len(pending.objects)
    if builder is not None:
        pending.objects.append(holder[0])
    try:
        if builder is None:
            _run_python(holder, body, test)
        elif test is None:
            for item in holder.pop():
                if type(item) is Moved:
                    rest = _rest_of(plain, item, passed)
                    break
                body(item)
                passed += 1
                if passed % _CHECKED_EACH == 0:
                    _check_size(len(builder.graph.nodes) - before, passed)
        else:
            holder.append(iter(holder.pop()))
            for item in holder[0]:
                if type(item) is Moved:
                    rest = _rest_of(plain, item, passed)
                    break
                body(item)
                passed += 1
                if passed % _CHECKED_EACH == 0:
                    _check_size(len(builder.graph.nodes) - before, passed)
                going = test()
                if type(going) not in DECIDED and truth(going) is not None:
                    passed += _unroll_rest(holder[0], body, test, names)
                    break
                if not going:
                    break
    except NameError as error:
        changed = as_unbound_local(error, body.__code__)
        if changed is error:
            raise
    else:
        if passed and ctx.builder is builder and builder is not None:
            note_unrolled(builder, passed, before)
        if rest is not None:  # the body has made the list a staged one
            _stage_for(rest, body, test, names)
        return
    finally:
        holder.clear()
        del pending.objects[count:]
    raise changed


@keeps_refusals
def _rest_of(iterable: Any, item: Moved, passed: int) -> ListItems | None:
    """The items that follow after some of a list that has become a staged one, of which ``item`` is left."""
    if type(iterable) is list:
        return ListItems(item.moved_to, passed)
    if iterable is None:
        raise iterator_over_staged_list()
    found = rest_of(iterable, 1)
    deque(iterable, maxlen=0)
    return found


def _run_python(holder: list[Any], body: Block, test: Block | None) -> None:
    """The loop over the iterable in ``holder`` while nothing is being traced."""
    if test is None:
        for item in holder.pop():
            body(item)
        return
    for item in holder.pop():
        body(item)
        if not test():
            break


def _stage_while(probe: _Probe, going: Any, test: Block, body: Block, names: tuple[str, ...]) -> None:
    state, blocks = slots(names, (test, body)), (test, body)
    if not probe.test_sets_variables():
        redo = probe.undo()
        try:
            stage_while(lambda: run(test), lambda: run(body), state, blocks)
            return
        except ConditionChangesState:
            forget_refused(ctx.builder)
            redo()
    # `while (y := f(x)) > 0`: what the test sets, the body reads. The test runs before the loop and after each body.
    go, step = moved_test(going, lambda: run(test), lambda: run(body))
    stage_while(go.get, step, [go, *state], blocks)


@keeps_refusals
def _unroll_rest(iterator: Iterator[Any], body: Block, test: Block, names: tuple[str, ...]) -> int:
    """The iterations after a ``break`` that may or may not have happened: each runs under a condition. Gives their
    number."""
    taking_all_from(iterator)
    blocks = (body, test)
    count = -1
    for count, item in enumerate(iterator):
        if count >= _MOST_UNROLLED:
            raise StagingError(
                f"a loop over a Python iterator that only a tensor can end was unrolled {count} times",
                location=user_location(),
                cause="whether a `break` on a tensor happens is known only at run time, but the iterator runs now",
                fix="loop over ag.range(...) or a tensor, or with `while`",
            )
        going = run(test)
        tensor = truth(going)
        if tensor is None:
            if not going:
                return count
            run(body, item)
            continue
        branches: list[Callable[[], Any]] = [lambda item=item: run(body, item), lambda: None]  # type: ignore[misc]
        stage_branches(condition(tensor, "break"), branches, slots(names, blocks), Frame(blocks))
    return count + 1


def _stage_for(
    source: Staged,
    body: Callable[[Any], Any],
    test: Block | None,
    names: tuple[str, ...],
    blocks: tuple[Block, ...] = (),
) -> None:
    """A loop over a tensor or a range: a ``while`` loop that counts.

    blocks: the loop's own, if another stands for them.
    """
    count = None if source.lists else source.count()
    index = LocalSlot("index", source.first_index())

    def more() -> Any:
        # A list may grow while the loop runs over it.
        going = source.more(index.get()) if count is None else index.get() < count
        return going if test is None else and_(going, lambda: run(test))

    def step() -> None:
        position = index.get()
        run(body, source.item(position))
        index.set(position + 1)

    blocks = blocks or ((body,) if test is None else (body, test))
    stage_while(more, step, [index, *slots(names, blocks)], blocks, source.lists)


class _Probe:
    """What a builder held before a loop's test was evaluated, to take it back: the staged loop evaluates it again."""

    __slots__ = ("builder", "count", "state", "variables", "written")

    def __init__(self, builder: Any, cells: tuple[CellType, ...]) -> None:
        self.builder = builder
        self.count = len(builder.graph.nodes)
        self.state = builder.state.copy()
        self.written = builder.written.copy()
        self.variables = [(cell, read_cell(cell)) for cell in cells]

    def test_sets_variables(self) -> bool:
        return any(read_cell(cell) is not value for cell, value in self.variables)

    def undo(self) -> Callable[[], None]:
        """Takes the evaluation back; gives what brings it back again."""
        builder = self.builder
        removed, state, written = builder.graph.nodes[self.count :], builder.state.copy(), builder.written.copy()

        def redo() -> None:
            builder.graph.nodes[self.count : self.count] = removed
            builder.state.update(state)
            builder.written.update(written)

        del builder.graph.nodes[self.count :]
        # A first read of state makes an input of the graph, which stays; only values made by dropped nodes go.
        for key, value in builder.state.items():
            self.state.setdefault(key, value if value.node is None else builder.state_inputs[key])
        builder.state.clear()
        builder.state.update(self.state)
        builder.written.clear()
        builder.written.update(self.written)
        return redo
