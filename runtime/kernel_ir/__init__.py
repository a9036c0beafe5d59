"""The kernel IR: what lowering builds, passes rewrite and back ends read. It knows nothing of tensors and graphs.

`ir.py` has the grammar, `types.py` the machine types, `result_types.py` the types of results, `print_python.py` and
`parse_python.py` the readable form, `verify.py` the rules.
"""
