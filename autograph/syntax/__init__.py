"""The Python-source toolkit: find, parse, analyse, quote, print and load Python functions.

Knows Python only, nothing of tensors. Modules, from text to function object:

    source      find a function's source text and syntax tree
    parse       text <-> gast
    names       paths such as ``x``, ``x.y``, ``x['k']``
    scopes      names read, bound and deleted by statements; the scope of a function
    effects     what one step does, in the order of evaluation
    cfg         the control flow graph of a function
    liveness    what may be read after a statement; what may be unbound
    templates   quoted Python with placeholders
    definitions the functions that a file defines
    literals    constants, strings and f-strings -> text
    expressions expressions -> text, by precedence
    unparse     gast -> readable text
    compiled    a function's code object, compiled in the surroundings of another
    load        gast -> function object, under the user's own file name and line numbers

Example::

    from autograph.syntax.source import find
    from autograph.syntax.unparse import unparse

    print(unparse(find(some_function).node))
"""
