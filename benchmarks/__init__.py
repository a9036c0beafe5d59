"""How fast is it, beside what people would use instead? `python -m benchmarks --help`.

harness.py    build, check, time: every figure is a ratio measured in one run, interleaved
peers.py      the libraries that may be installed beside ours
report.py     the tables, on the terminal and in docs/benchmarks.md
loops, arrays, networks, overheads
              the workloads, one a file: the same computation written for each library
"""
