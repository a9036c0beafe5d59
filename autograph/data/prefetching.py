"""Elements made before the loop asks for them: by a thread that runs ahead of it, or by several at once.

The threads know only the buffer that they fill, so that an iterator which nobody has any more is collected, which ends
its thread. An error takes the place of the element that it belongs to.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import contextvars
import itertools
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from autograph.data.plans import Mapped, Plan, Same
from autograph.data.streams import Interleaved
from runtime import nest
from runtime.context import ctx
from runtime.errors import FailedPreconditionError

# What a buffer holds where the loop leaves its size to us.
_DEFAULT_SIZE = 8
# Bytes of an element that is copied faster than a thread is woken, and a size that isn't known, such as a batch's.
_LIGHT = 1 << 20
_TYPICAL = 64
_SLOW = 5e-4  # seconds that an element takes which is worth a thread
_SLOW_ONES = 2  # the first ones take long because they are compiled
_EXIT_TIMEOUT = 2.0  # seconds that the exit waits for each thread
_threads: weakref.WeakKeyDictionary[threading.Thread, _Buffer] = weakref.WeakKeyDictionary()


class _Buffer:
    """What a thread has made and nobody has taken yet: pairs of an error, or None, and an element.

    Taking one wakes the thread only when half of the buffer is free, so that the two don't take turns.
    """

    def __init__(self, size: int, condition: threading.Condition | None = None) -> None:
        self.size = size
        self.waiting: collections.deque[tuple[BaseException | None, Any]] = collections.deque()
        self.condition = threading.Condition() if condition is None else condition
        self.ended = False  # there is nothing to come
        self.closed = False  # nobody will take anything

    def put(self, item: tuple[BaseException | None, Any]) -> bool:
        """Adds an item as soon as there is room. Returns False if the iterator is gone."""
        with self.condition:
            if len(self.waiting) >= self.size:
                self.condition.wait_for(lambda: self.closed or len(self.waiting) <= self.size // 2)
            if not self.closed:
                self.waiting.append(item)
                self.condition.notify_all()
            return not self.closed

    def end(self) -> None:
        with self.condition:
            self.ended = True
            self.condition.notify_all()

    def close(self) -> None:
        with self.condition:
            self.closed = True
            self.waiting.clear()
            self.condition.notify_all()


def _fill(buffer: _Buffer, source: Iterator[Any], device: str | None, gate: Any) -> None:
    ctx.device = device
    try:
        while not buffer.closed:
            with gate:
                try:
                    item: tuple[BaseException | None, Any] = None, next(source)
                except StopIteration:
                    return
                except BaseException as error:
                    item = error, None
            if not buffer.put(item):
                return
            del item
    finally:
        buffer.end()


class Ahead:
    """An iterator over what another one gives, which a thread runs through, at most `size` elements ahead.

    The thread starts with the first element that is asked for, or by `start`. gate: a context manager that the thread
    is in while it makes an element. condition: is notified when there is one.
    """

    def __init__(
        self, source: Iterator[Any], size: int, gate: Any = None, condition: threading.Condition | None = None
    ) -> None:
        self._buffer = _Buffer(size, condition)
        self._source: Iterator[Any] | None = source
        self._gate = contextlib.nullcontext() if gate is None else gate
        self._thread: threading.Thread | None = None

    def start(self) -> Ahead:
        """Has the thread begin."""
        if self._thread is None:
            run = contextvars.copy_context().run
            arguments = (_fill, self._buffer, self._source, ctx.device, self._gate)
            self._source = None
            self._thread = threading.Thread(target=run, args=arguments, name="autograph.data", daemon=True)
            _threads[self._thread] = self._buffer
            weakref.finalize(self, self._buffer.close).atexit = False
            self._thread.start()
        return self

    @property
    def is_ready(self) -> bool:
        """Whether the next element, or that there is none, is known without waiting."""
        return bool(self._buffer.waiting) or self._buffer.ended

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        thread, buffer = self.start()._thread, self._buffer
        while not buffer.waiting:
            if buffer.ended and not buffer.waiting:
                raise StopIteration
            with buffer.condition:
                buffer.condition.wait_for(lambda: buffer.waiting or buffer.ended, 1.0)
            if not buffer.waiting and not buffer.ended and thread is not None and not thread.is_alive():
                raise FailedPreconditionError(
                    "This iterator reads ahead in a thread, which a forked process doesn't have: make the iterator "
                    "in the process that uses it"
                )
        error, element = buffer.waiting.popleft()
        if len(buffer.waiting) == buffer.size // 2:
            with buffer.condition:
                buffer.condition.notify_all()
        if error is not None:
            raise error
        return element


def _end_threads() -> None:
    for thread, buffer in list(_threads.items()):
        buffer.close()
        thread.join(_EXIT_TIMEOUT)


atexit.register(_end_threads)


class Prefetched(Same):
    """The elements of a source, made by a thread while the loop works on earlier ones.

    Elements that only have to be copied from memory aren't worth one, and those that an open tape watches are made
    where it sees them. Whoever takes them by index or in blocks looks ahead by itself.
    """

    def __init__(self, source: Plan, size: int) -> None:
        super().__init__(source)
        self.size = size if size > 0 else _DEFAULT_SIZE
        self.indexed = source.indexed and not source.waits

    def elements(self) -> Iterator[Any]:
        source = self.source.elements()
        is_light = self.source.is_copied and _bytes_of(self.spec) < _LIGHT
        if is_light or self.source.is_watched:
            return source
        return Ahead(source, self.size) if self.source.waits else _AheadIfSlow(source, self.size)


class _AheadIfSlow:
    """An iterator over what another one computes: by a thread, once some elements have taken long enough to gain by it.

    Two threads that wait for each other's elements take longer than one that makes them, where these are quick.
    """

    def __init__(self, source: Iterator[Any], size: int) -> None:
        self._source, self._size = source, size
        self._slow = 0
        self._ahead: Ahead | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._ahead is not None:
            return next(self._ahead)
        start = time.perf_counter()
        element = next(self._source)
        # A quick one makes up for a slow one, during which another process may have had the processor.
        self._slow = self._slow + 1 if time.perf_counter() - start > _SLOW else max(self._slow - 1, 0)
        if self._slow > _SLOW_ONES:
            self._ahead = Ahead(self._source, self._size).start()
        return element


def _bytes_of(spec: Any) -> int:
    """An estimate of an element's size in bytes; unknown dimensions count as those of typical batches."""
    sizes = [[_TYPICAL if n is None else n for n in leaf._shape or ()] for leaf in nest.flatten(spec)]
    return sum(math.prod(shape) * leaf.dtype._np.itemsize for shape, leaf in zip(sizes, nest.flatten(spec)))


class InterleavedInParallel(Interleaved):
    """An `Interleaved` whose datasets are each read by a thread; at most ``threads`` of them make elements at a
    time."""

    def __init__(
        self, source: Plan, make: Callable[[Any], Plan], spec: Any, cycle: int, block: int, threads: int, in_order: bool
    ) -> None:
        super().__init__(source, make, spec, cycle, block)
        self.threads, self.in_order = threads, in_order

    def elements(self) -> Iterator[Any]:
        source = self.source.elements()
        if self.is_watched:
            return self._interleaved(map(self.opened, source))
        condition = threading.Condition()
        begun = self._begun(source, condition)
        return self._interleaved(begun) if self.in_order else self._as_they_come(begun, condition)

    def _begun(self, source: Iterator[Any], condition: threading.Condition) -> Iterator[Ahead]:
        """Iterators whose threads run: as many as are read in turns begin together, each other one before its turn."""
        gate = threading.Semaphore(self.threads)
        waiting: collections.deque[Ahead] = collections.deque()
        wanted = self.cycle
        for element in source:
            waiting.append(Ahead(self.opened(element), max(_DEFAULT_SIZE, self.block), gate, condition).start())
            if len(waiting) >= wanted:
                yield waiting.popleft()
                wanted = max(wanted - 1, 1)
        yield from waiting

    def _as_they_come(self, begun: Iterator[Ahead], condition: threading.Condition) -> Iterator[Any]:
        running = list(itertools.islice(begun, self.cycle))

        def one_is_ready() -> bool:
            return any(each.is_ready for each in running)

        while running:
            with condition:
                condition.wait_for(one_is_ready, 1.0)
            chosen = next((each for each in running if each.is_ready), running[0])
            given = 0
            for element in itertools.islice(chosen, self.block):
                given += 1
                yield element
            running.remove(chosen)  # the others come before it is chosen again
            if given == self.block:
                running.append(chosen)
            else:
                running += itertools.islice(begun, 1)


class MappedInParallel(Mapped):
    """A function of each element, of so many elements at a time, for functions that wait: they call Python or read
    files. Others gain nothing from threads of ours."""

    def __init__(self, mapped: Mapped, count: int, in_order: bool) -> None:
        super().__init__(mapped.source, mapped.function, mapped.spec)
        self.count, self.in_order = count, in_order
        self.indexed = False

    def elements(self) -> Iterator[Any]:
        if self.is_watched:
            return super().elements()
        return _InParallel(self.made, self.source.elements(), self.count, self.in_order)


class _InParallel:
    """``function`` of what a source gives, of ``count`` elements at a time."""

    def __init__(self, function: Callable[[Any], Any], source: Iterator[Any], count: int, in_order: bool) -> None:
        self._function, self._source = function, source
        self._count, self._in_order = count, in_order
        self._pool: ThreadPoolExecutor | None = None
        self._running: collections.deque[Future[Any]] = collections.deque()
        self._device = ctx.device
        self._ended = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while not self._ended and len(self._running) < self._count:
            self._begin_one()
        if not self._running:
            raise StopIteration
        chosen = self._running[0]
        if not self._in_order:
            done = wait(self._running, return_when=FIRST_COMPLETED).done
            chosen = next(future for future in self._running if future in done)
        self._running.remove(chosen)
        return chosen.result()

    def _begin_one(self) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(
                self._count, "autograph.data", initializer=_on_device, initargs=(ctx.device,)
            )
            weakref.finalize(self, self._pool.shutdown, wait=False, cancel_futures=True)
        try:
            element = next(self._source)
        except StopIteration:
            self._ended = True
        except Exception as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            self._running.append(failed)
        else:
            run = contextvars.copy_context().run
            self._running.append(self._pool.submit(run, self._function, element))


def _on_device(device: str | None) -> None:
    ctx.device = device
