"""Functions and classes of Python's standard library whose own code is C, as Python text.

In a trace they are converted as if they were the user's code, and so work on whatever converted code works on: lists
whose length is known only when the program runs, of numbers, tuples or objects. `operators/standard_library.py` says
what stands for what. The text imports nothing of this project.
"""
