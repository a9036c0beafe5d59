"""What is known of the promises, and an object for their programs."""

from __future__ import annotations

GIVEN = [3.0, 0.0, 2.0, 5.0, 1.0]
KEPT: list = []  # promise, program: what it gives in Python, it gives in every mode
REFUSED: list = []  # promise, program, error, words of the message: the error is raised at a line of the program
CHECKED: list = []  # promise, check: a test of its own

# Promises that tests of their own keep: files under tests.
ELSEWHERE = {
    "Instances are immutable": "extension_types/test_classes.py",
    "Tensors, ragged and sparse tensors and other": "extension_types/test_traced.py",
    "Masked.Spec describes": "extension_types/test_traced.py",
    "A class that derives from": "extension_types/test_batches.py",
    "Functions of tensors don't accept": "extension_types/test_dispatch.py",
    "Saved models leave out traces": "extension_types/test_traced.py",
    "Annotations may be": "extension_types/test_classes.py",
}


def kept(promise):
    return lambda program: KEPT.append((promise, program)) or program


def refused(promise, error, words):
    return lambda program: REFUSED.append((promise, program, error, words)) or program


def checked(promise):
    return lambda check: CHECKED.append((promise, check)) or check


class Box:
    count = 0

    def __init__(self, n=0.0):
        self.n = n

    def step(self, v):
        return Box(self.n + v)
