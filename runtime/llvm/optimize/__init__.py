"""Optimisations that LLVM doesn't make by itself: vectorised outer loops, jump threading over loop flags, and
division by Newton's method.
"""
