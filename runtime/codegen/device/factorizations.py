"""The part of the library of kernels in SPMD form that factors matrices and solves equations.

A team of threads takes a matrix: a block, or the grid if there are few matrices and these are large. An element is
changed in the same order as on the processor, and gets the same bits.
"""

from __future__ import annotations

from runtime.codegen import cost_model

# function -> its parameters after `matrices, count, size`
_PARAMETERS = {
    "solve_each": "out, columns, swaps",
    "cholesky_of_each": "sound",
    "substitute_each": "out, columns, lower, transposed, sound",
}


def _choice(name: str) -> str:
    """The function that chooses the team."""
    given = f"matrices, count, size, {_PARAMETERS[name]}"
    return f"""
def {name}({given}):
    if count < gpu.blocks() and size >= {cost_model.DEVICE_LARGE_MATRIX}:
        grid_{name}({given})
    else:
        block_{name}({given})
"""


_FACTORS = """
def TEAM_solve_each(matrices, count, size, out, columns, swaps):
    number = FIRST
    while number < count:
        at = number * size * size
        to = number * size * columns
        found = 0
        k = 0
        while k < size and found >= 0:
            own = at + k * size
            pivot = own
            for i in range(k + 1, size):
                row = at + i * size
                pivot = row if abs(matrices[row + k]) > abs(matrices[pivot + k]) else pivot
            if matrices[pivot + k] == 0:
                found = -1
            BARRIER()
            if found >= 0:
                if pivot != own:
                    found = found + 1
                    other = (pivot - at) // size
                    j = THREAD
                    while j < size + columns:
                        if j < size:
                            kept = matrices[own + j]
                            matrices[own + j] = matrices[pivot + j]
                            matrices[pivot + j] = kept
                        else:
                            moved = out[to + k * columns + j - size]
                            out[to + k * columns + j - size] = out[to + other * columns + j - size]
                            out[to + other * columns + j - size] = moved
                        j = j + THREADS
                    BARRIER()
                i = k + 1 + THREAD
                while i < size:
                    matrices[at + i * size + k] = matrices[at + i * size + k] / matrices[own + k]
                    i = i + THREADS
                BARRIER()
                left = size - k - 1
                width = left + columns
                element = THREAD
                while element < left * width:
                    i = k + 1 + element // width
                    j = element % width
                    factor = matrices[at + i * size + k]
                    if j < left:
                        place = at + i * size + k + 1 + j
                        matrices[place] = matrices[place] - factor * matrices[own + k + 1 + j]
                    else:
                        place = to + i * columns + j - left
                        out[place] = out[place] - factor * out[to + k * columns + j - left]
                    element = element + THREADS
                BARRIER()
            k = k + 1
        i = size - 1 if found >= 0 else -1
        while i >= 0:
            j = THREAD
            while j < columns:
                out[to + i * columns + j] = out[to + i * columns + j] / matrices[at + i * size + i]
                j = j + THREADS
            BARRIER()
            element = THREAD
            while element < i * columns:
                row = element // columns
                j = element % columns
                place = to + row * columns + j
                out[place] = out[place] - matrices[at + row * size + i] * out[to + i * columns + j]
                element = element + THREADS
            BARRIER()
            i = i - 1
        if THREAD == 0:
            swaps[number] = found
        number = number + STEP
    gpu.barrier()


def TEAM_cholesky_of_each(matrices, count, size, sound):
    number = FIRST
    while number < count:
        at = number * size * size
        is_sound = True
        k = 0
        while k < size and is_sound:
            pivot = matrices[at + k * size + k]
            is_sound = not pivot <= 0
            root = np.sqrt(pivot)
            BARRIER()
            i = k + THREAD
            while i < size and is_sound:
                matrices[at + i * size + k] = root if i == k else matrices[at + i * size + k] / root
                i = i + THREADS
            BARRIER()
            left = size - k - 1
            element = THREAD
            while element < left * left and is_sound:
                i = k + 1 + element // left
                j = k + 1 + element % left
                if j <= i:
                    place = at + i * size + j
                    matrices[place] = matrices[place] - matrices[at + i * size + k] * matrices[at + j * size + k]
                element = element + THREADS
            BARRIER()
            k = k + 1
        element = THREAD
        while element < size * size:
            if element % size > element // size:
                matrices[at + element] = 0
            element = element + THREADS
        if THREAD == 0:
            sound[number] = is_sound
        number = number + STEP
    gpu.barrier()


def TEAM_substitute_each(matrices, count, size, out, columns, lower, transposed, sound):
    forward = lower != transposed
    number = FIRST
    while number < count:
        at = number * size * size
        to = number * size * columns
        is_sound = True
        step = 0
        while step < size and is_sound:
            i = step if forward else size - 1 - step
            pivot = matrices[at + i * size + i]
            is_sound = pivot != 0
            j = THREAD
            while j < columns and is_sound:
                out[to + i * columns + j] = out[to + i * columns + j] / pivot
                j = j + THREADS
            BARRIER()
            element = THREAD
            while element < (size - 1 - step) * columns and is_sound:
                later = step + 1 + element // columns
                j = element % columns
                row = later if forward else size - 1 - later
                factor = matrices[at + i * size + row] if transposed else matrices[at + row * size + i]
                place = to + row * columns + j
                out[place] = out[place] - factor * out[to + i * columns + j]
                element = element + THREADS
            BARRIER()
            step = step + 1
        if THREAD == 0:
            sound[number] = is_sound
        number = number + STEP
    gpu.barrier()
"""

# What the words above stand for: a block for each matrix, or the grid for all of them.
_TEAMS = {
    "block": {
        "THREADS": "gpu.block_size()", "THREAD": "gpu.thread_in_block()", "BARRIER": "gpu.block_barrier",
        "FIRST": "gpu.block()", "STEP": "gpu.blocks()",
    },
    "grid": {
        "THREADS": "gpu.threads()", "THREAD": "gpu.thread()", "BARRIER": "gpu.barrier", "FIRST": "0", "STEP": "1",
    },
}  # fmt: skip


def _factors(team: str) -> str:
    text = _FACTORS.replace("TEAM", team)
    for word, meaning in _TEAMS[team].items():
        text = text.replace(word, meaning)
    return text


FACTORS = "\n\n".join([*map(_choice, _PARAMETERS), *map(_factors, _TEAMS)])
