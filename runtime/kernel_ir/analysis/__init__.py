"""What passes and compilers ask about kernels, each question answered in one place: uses of variables, liveness,
accesses of arrays, aliases, effects of functions, subscripts as polynomials, loops."""
