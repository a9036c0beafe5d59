"""`collections.deque`: the items of a list from a position on."""


class Deque:
    """What `collections.deque` makes in a trace.

    items    a list; what stands before the position ``head`` is no item any more, or none yet
    maxlen   as Python's
    """

    def __init__(self, iterable=(), maxlen=None):
        if maxlen is not None and maxlen < 0:
            raise ValueError("maxlen must be non-negative")
        self.items = []
        self.head = 0
        self.maxlen = maxlen
        self.extend(iterable)

    # --- ends ------------------------------------------------------------------------------------------------------

    def append(self, item):
        self.items.append(item)
        if self.maxlen is not None and len(self.items) - self.head > self.maxlen:
            self._drop_first()

    def appendleft(self, item):
        if self.head == 0:
            front = []
            for _ in range(len(self.items) + 4):  # as many as there are: each item is moved rarely
                front.append(item)
            self.head = len(front)
            self.items = front + self.items
        self.head -= 1
        self.items[self.head] = item
        if self.maxlen is not None and len(self.items) - self.head > self.maxlen:
            self.items.pop()

    def pop(self):
        if len(self.items) == self.head:
            raise IndexError("pop from an empty deque")
        return self.items.pop()

    def popleft(self):
        if len(self.items) == self.head:
            raise IndexError("pop from an empty deque")
        item = self.items[self.head]
        self._drop_first()
        return item

    def _drop_first(self):
        self.head += 1
        if self.head >= 32 and 2 * self.head >= len(self.items):
            self._move_to_start()

    def _move_to_start(self):
        """Moves the items to the list's start; one by one, so that it keeps the memory that it has."""
        count = len(self.items) - self.head
        for place in range(count):
            self.items[place] = self.items[self.head + place]
        for _ in range(self.head):
            self.items.pop()
        self.head = 0

    def extend(self, iterable):
        for each in list(iterable):
            self.append(each)

    def extendleft(self, iterable):
        for each in list(iterable):
            self.appendleft(each)

    def rotate(self, n=1):
        count = len(self.items) - self.head
        if count > 1:
            items = list(self)
            first = -n % count
            self.items = items[first:] + items[:first]
            self.head = 0

    # --- places ----------------------------------------------------------------------------------------------------

    def _place(self, index):
        count = len(self.items) - self.head
        if index < -count or index >= count:
            raise IndexError("deque index out of range")
        return self.head + index if index >= 0 else len(self.items) + index

    def __getitem__(self, index):
        return self.items[self._place(index)]

    def __setitem__(self, index, item):
        self.items[self._place(index)] = item

    def __delitem__(self, index):
        del self.items[self._place(index)]

    def insert(self, index, item):
        if self.maxlen is not None and len(self.items) - self.head >= self.maxlen:
            raise IndexError("deque already at its maximum size")
        items = list(self)
        items.insert(index, item)
        self._hold(items)

    def remove(self, value):
        items = list(self)
        items.remove(value)
        self._hold(items)

    def reverse(self):
        items = list(self)
        items.reverse()
        self._hold(items)

    def clear(self):
        self.items.clear()
        self.head = 0

    def _hold(self, items):
        self.items = items
        self.head = 0

    def index(self, value, *bounds):
        return list(self).index(value, *bounds)

    def count(self, value):
        return list(self).count(value)

    def copy(self):
        return Deque(self, self.maxlen)

    __copy__ = copy

    # --- operators -------------------------------------------------------------------------------------------------

    def __eq__(self, other):
        return list(self) == list(other) if isinstance(other, Deque) else NotImplemented

    def __ne__(self, other):
        return list(self) != list(other) if isinstance(other, Deque) else NotImplemented

    def __lt__(self, other):
        return list(self) < list(other) if isinstance(other, Deque) else NotImplemented

    def __le__(self, other):
        return list(self) <= list(other) if isinstance(other, Deque) else NotImplemented

    def __gt__(self, other):
        return list(self) > list(other) if isinstance(other, Deque) else NotImplemented

    def __ge__(self, other):
        return list(self) >= list(other) if isinstance(other, Deque) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other):
        if not isinstance(other, Deque):
            return NotImplemented
        made = self.copy()
        made.extend(other)
        return made

    def __iadd__(self, other):
        self.extend(other)
        return self

    def __mul__(self, times):
        return Deque(list(self) * times, self.maxlen)

    __rmul__ = __mul__

    def __imul__(self, times):
        self._hold(list(Deque(list(self) * times, self.maxlen)))
        return self
