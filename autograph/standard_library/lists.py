"""Methods and comparisons of lists, `min` and `max`, by what ``==`` and ``<`` say of single items."""


def index(items, value, start=0, stop=None):
    size = len(items)
    if start < 0:
        start = max(start + size, 0)
    if stop is None or stop > size:
        stop = size
    elif stop < 0:
        stop = stop + size
    for position in range(start, stop):
        if items[position] == value:
            return position
    raise ValueError("list.index(x): x not in list")


def remove(items, value):
    size = len(items)
    for position in range(size):
        if items[position] == value:
            del items[position]
            return
    raise ValueError("list.remove(x): x not in list")


def count(items, value):
    found = 0
    for each in items:
        if each == value:
            found += 1
    return found


def contains(items, value):
    for each in items:
        if each == value:
            return True
    return False


def require_length(size, least, most, text):
    if size < least:
        raise ValueError("not enough " + text)
    if most is not None and size > most:
        raise ValueError("too many " + text)


def equal(one, other):
    if len(one) != len(other):
        return False
    for position in range(len(one)):
        if one[position] != other[position]:
            return False
    return True


def less(one, other):
    for position in range(_common(one, other)):
        if one[position] != other[position]:
            return one[position] < other[position]
    return len(one) < len(other)


def less_equal(one, other):
    for position in range(_common(one, other)):
        if one[position] != other[position]:
            return one[position] <= other[position]
    return len(one) <= len(other)


def _common(one, other):
    """The number of items that both lists have."""
    return min(len(one), len(other))


def smallest(items, key=None):
    found = items[0]
    if key is None:
        for position in range(1, len(items)):
            item = items[position]
            if item < found:
                found = item
        return found
    least = key(found)
    for position in range(1, len(items)):
        item = items[position]
        its_key = key(item)
        if its_key < least:
            found = item
            least = its_key
    return found


def largest(items, key=None):
    found = items[0]
    if key is None:
        for position in range(1, len(items)):
            item = items[position]
            if found < item:
                found = item
        return found
    most = key(found)
    for position in range(1, len(items)):
        item = items[position]
        its_key = key(item)
        if most < its_key:
            found = item
            most = its_key
    return found


def sorted_places(keys, reverse):
    """The positions of keys in the order of the keys; where they are equal the lower one comes first."""
    places = list(range(len(keys)))
    width = 1
    while width < len(keys):
        merged = []
        for start in range(0, len(keys), 2 * width):
            left = start
            middle = min(start + width, len(keys))
            right = middle
            end = min(start + 2 * width, len(keys))
            while left < middle or right < end:
                takes_right = left >= middle
                if left < middle and right < end:
                    one = keys[places[left]]
                    other = keys[places[right]]
                    takes_right = one < other if reverse else other < one
                if takes_right:
                    merged.append(places[right])
                    right += 1
                else:
                    merged.append(places[left])
                    left += 1
        places = merged
        width *= 2
    return places
