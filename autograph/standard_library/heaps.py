"""`heapq`: binary heaps in lists.

The steps are those of CPython, so that the heap has the same order after each of them, also where items are equal.
"""


def heappush(heap, item):
    heap.append(item)
    _sift_down(heap, 0, len(heap) - 1)


def heappop(heap):
    if len(heap) == 0:
        raise IndexError("index out of range")
    last = heap.pop()
    if len(heap) == 0:
        return last
    smallest = heap[0]
    heap[0] = last
    _sift_up(heap, 0)
    return smallest


def heapreplace(heap, item):
    if len(heap) == 0:
        raise IndexError("index out of range")
    smallest = heap[0]
    heap[0] = item
    _sift_up(heap, 0)
    return smallest


def heappushpop(heap, item):
    if len(heap) == 0:
        return item
    smallest = heap[0]
    if not smallest < item:
        return item
    heap[0] = item
    _sift_up(heap, 0)
    return smallest


def heapify(heap):
    for position in range(len(heap) // 2 - 1, -1, -1):
        _sift_up(heap, position)


def _sift_down(heap, start, position):
    """Moves the item at a position towards the root, past all that are larger, but not beyond ``start``."""
    item = heap[position]
    while position > start:
        above = (position - 1) >> 1
        parent = heap[above]
        if not item < parent:
            break
        heap[position] = parent
        position = above
    heap[position] = item


def _sift_up(heap, position):
    """Moves the item at a position to a leaf, past the smaller child each time, and from there to where it belongs."""
    end = len(heap)
    start = position
    item = heap[position]
    child = 2 * position + 1
    while child < end:
        right = child + 1
        if right < end and not heap[child] < heap[right]:
            child = right
        heap[position] = heap[child]
        position = child
        child = 2 * position + 1
    heap[position] = item
    _sift_down(heap, start, position)


def nsmallest(n, iterable, key=None):
    return sorted(iterable, key=key)[: max(n, 0)]


def nlargest(n, iterable, key=None):
    return sorted(iterable, key=key, reverse=True)[: max(n, 0)]


def merge(*iterables, key=None, reverse=False):
    if len(iterables) == 0:
        return []
    merged = list(iterables[0])
    for each in iterables[1:]:
        merged = _merged(merged, each, key, reverse)
    return merged


def _merged(first, second, key, reverse):
    """Two lists as one: always the smaller of both next items, the one of the first list where they are equal."""
    first = list(first)
    second = list(second)
    if len(first) == 0:
        return second
    if len(second) == 0:
        return first
    merged = []
    i = 0
    j = 0
    while i < len(first) and j < len(second):
        left = first[i]
        right = second[j]
        left_key = left if key is None else key(left)
        right_key = right if key is None else key(right)
        if left_key < right_key if reverse else right_key < left_key:
            merged.append(right)
            j += 1
        else:
            merged.append(left)
            i += 1
    return merged + first[i:] + second[j:]
