"""Reverse-mode gradients: the tape, the reverse walk over recorded calls, adjoints of control flow, vjp of graphs."""
