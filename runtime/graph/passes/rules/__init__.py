"""Tables of rules: each looks at one node and what made its operands (`rewriting.py` applies them)."""
