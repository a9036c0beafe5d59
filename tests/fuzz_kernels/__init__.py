"""Random user programs, run eagerly, on the interpreter and in native code: all must agree (see `__main__`)."""
