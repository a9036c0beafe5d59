"""Whether a loop's next trips run in lanes or by themselves: whichever was faster lately.

Where few lanes have work while the others wait, or where machines have no vector form of an operation, trips by
themselves are faster. The text doesn't tell, so the loop takes the time: of each `_EVERY` runs one is timed in lanes
and one trip by trip, and the others go the way that took less. Results are the same either way.
"""

from __future__ import annotations

import platform

from runtime.llvm.writer import Writer

_EVERY = 64  # a power of two
# The cycle counter of x86; other machines don't let programs read theirs, but have clocks.
_CLOCK = "@llvm.readcyclecounter" if platform.machine() in ("x86_64", "AMD64") else "@llvm.readsteadycounter"


class Pace:
    """What a loop knows of its own speed: it lasts as long as the call of the kernel."""

    def __init__(self, w: Writer) -> None:
        self.w = w
        self._runs, self._lanes, self._alone, self._began, self._count, self._rest = (self._place() for _ in range(6))

    def _place(self) -> str:
        place = self.w.stack("i64")
        self.w.entry.append(f"  store i64 0, ptr {place}")
        return place

    def choose(self, active: str, together: str, alone: str) -> None:
        """Goes where the next `active` trips are to run. A run by itself comes here before each trip."""
        w = self.w
        on, ready, timed, decide, single = (w.label() for _ in range(5))
        rest = self._load(self._rest)
        w.branch(w.op(f"icmp ne i64 {rest}, 0"), on, ready)
        w.block(on)
        self._store(w.op(f"sub i64 {rest}, 1"), self._rest)
        w.jump(alone)
        w.block(ready)
        count = self._load(self._count)
        w.branch(w.op(f"icmp ne i64 {count}, 0"), timed, decide)
        w.block(timed)
        self._store(self._cost(count), self._alone)
        self._store("0", self._count)
        w.jump(decide)
        w.block(decide)
        runs = self._load(self._runs)
        self._store(w.op(f"add i64 {runs}, 1"), self._runs)
        phase = w.op(f"and i64 {runs}, {_EVERY - 1}")
        second = w.op(f"icmp eq i64 {phase}, 1")
        now = w.op(f"icmp ule i64 {phase}, 1")
        faster = w.op(f"icmp ule i64 {self._load(self._lanes)}, {self._load(self._alone)}")
        chosen = w.op(f"select i1 {now}, i1 {w.op(f'xor i1 {second}, true')}, i1 {faster}")
        clock, going = w.label(), w.label()
        w.branch(now, clock, going)
        w.block(clock)
        self._store(self._clock(), self._began)
        w.jump(going)
        w.block(going)
        self._store(w.op(f"select i1 {second}, i64 {active}, i64 0"), self._count)
        w.branch(chosen, together, single)
        w.block(single)
        self._store(w.op(f"sub i64 {active}, 1"), self._rest)
        w.jump(alone)

    def lanes_done(self, active: str) -> None:
        """Takes the time of a run in lanes that was to be timed."""
        w = self.w
        timed, on = w.label(), w.label()
        # The run's number has been counted already.
        phase = w.op(f"and i64 {self._load(self._runs)}, {_EVERY - 1}")
        w.branch(w.op(f"icmp eq i64 {phase}, 1"), timed, on)
        w.block(timed)
        self._store(self._cost(active), self._lanes)
        w.jump(on)
        w.block(on)

    def _cost(self, trips: str) -> str:
        """Time since the clock was last read, for each 64 trips."""
        w = self.w
        spent = w.op(f"sub i64 {self._clock()}, {self._load(self._began)}")
        return w.op(f"udiv i64 {w.op(f'shl i64 {spent}, 6')}, {trips}")

    def _clock(self) -> str:
        self.w.program.declare(f"declare i64 {_CLOCK}()")
        return self.w.op(f"call i64 {_CLOCK}()")

    def _load(self, place: str) -> str:
        return self.w.op(f"load i64, ptr {place}")

    def _store(self, text: str, place: str) -> None:
        self.w.line(f"store i64 {text}, ptr {place}")
