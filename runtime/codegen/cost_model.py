"""The cost model: every threshold by which the code generator chooses between two correct forms of a kernel.

Changing a number here changes the text of kernels and how fast they run or compile, never their results, except where
an entry says that it changes the order of a sum. What an op costs stands in its row of the op table (`OpDef.cost`).

Each entry gives its unit, what it trades, and where it was measured. "Benchmark" means that the change that introduced
it was measured on the development machine, with the figure quoted here; "Measured on" names another machine;
"Estimated" means that it was chosen without a measurement. `python -m benchmarks.calibrate` measures all of them on the
machine that it runs on, apart from those of GPUs. On a Zen 4 with two
busy cores its runs agreed that a trip with an array of 256 numbers takes 10 ns, a product of 16 x 16 140 ns and a
recursive call 5 ns. About the other entries they disagreed, by a third and more, so none of these was changed.

Limits of correctness aren't here: Python's nesting limit (`lower/lower_graph.py`), the stack of recursive functions
(`lower/recursion.py`), overflow of offsets (`symbolic/`). The compiled library and the matrix product keep their own
blocking beside their code (`kernel_library/functions.py`, `native_runtime/gemm.py`): that text is compiled as it
stands, and its hash names what is cached. `runtime/llvm`, which knows nothing of this folder, has its own thresholds at
the top of its files.
"""

# --- threads ---------------------------------------------------------------------------------------------------------

# Additions in a nest (elements times the cost of its ops, and one for each element read from or written to memory) from
# which it is split over threads. Trades the wake-up of the pool, 1 to 10 us, and threads that wait busily for the next
# nest, against the work shared. Benchmark: nests of this size take 9 to 27 us on one thread, 0.5 to 1.05 of it on two.
PARALLEL_WORK = 1 << 20
# Additions that an op takes, per element, to count as costly: a store beside it is free. Estimated.
COSTLY_OP = 10

# --- fusion and the size of loop bodies ------------------------------------------------------------------------------

# Nodes of a fusion group. Trades memory traffic against register spills and compile time. Estimated.
FUSION_GROUP_NODES = 64
# Statements of a body that two loops are fused into: the same trade, one stage later. Estimated.
LOOP_FUSION_STATEMENTS = 120
# The size of an expression (the operators, variables and constants in it) that is used in place: in a nest, and between
# nests. Larger ones get a variable. Trades the length of lines against the number of variables in a kernel. Estimated.
NEST_EXPRESSION_SIZE = 11
EXPRESSION_SIZE = 9

# --- LLVM's effort ---------------------------------------------------------------------------------------------------

# Loops over elements for each other loop, from which LLVM optimises a kernel at its level 1. What level 2 adds is for
# branches and for numbers that loops carry; the values of a nest are in registers already. Trades the speed of such
# loops against LLVM's time. Benchmark: first results of LSTM's and GRU's gradients take 0.83 of the processor time, and
# no workload with so many nests is slower; the gradient of a Kalman filter, with 2, takes 7 % longer at level 1.
NESTS_PER_LOOP = 3

# --- short rows and small tensors ------------------------------------------------------------------------------------

# Elements of rows whose length is written into the text: in large nests, and in nests inside of loops. Trades one
# vectorised body per length against code size. Benchmark: softmax of rows of 8 took a sixth, float64 sums a tenth.
SHORT_ROW_IN_LARGE_NEST = 32
SHORT_ROW_IN_LOOP = 8
# Elements of a tensor that becomes scalars in a loop, and statements that a region may get by it. Trades loads, stores
# and loop control against compile time. Benchmark: a Kalman filter's step took a ninth.
SCALARIZED_ELEMENTS = 16
SCALARIZED_STATEMENTS = 400
# Elements of a vector of scalars that stays in variables, rather than in memory. Trades registers against loads.
# Estimated.
VECTOR_IN_VARIABLES = 16

# --- matrix products -------------------------------------------------------------------------------------------------

# Multiplications from which a product whose sizes are known is by tiles, and the kernel holds no plain loops for it:
# the bound by which `lib.matmul` decides between the two when it runs. Benchmark: ten products of 256 x 256 with tanh
# between them compiled in two fifths of the time.
GEMM_MULTIPLICATIONS = 4096

# --- convolution -----------------------------------------------------------------------------------------------------

# Bytes of the part of an image, or of the windows over it, that a product with filters takes at a time. Trades the
# second-level cache against the times that the filters are read and packed. Benchmark: with a quarter of it, 8 images
# of 7 x 7 x 512 with 512 filters of 3 x 3 take 1.3 of the time, other ones as much; with twice as much, as much.
CONVOLUTION_STRIP = 1 << 19
# Windows of such a part at least, though threads wait for work: a product packs the filters, which takes as long as one
# or two windows. Benchmark: four or eight times as many make no difference to single images of 7 x 7 x 512 to
# 56 x 56 x 64.
CONVOLUTION_WINDOWS = 32
# Channels from which the gradient by the input, if all strides are 1, is a convolution with the flipped filters. Trades
# products whose columns are channels, computed in vectors, against adding up windows. Benchmark: of 28 x 28 pixels with
# 3 x 3 filters it takes 1.0 to 0.85 of the time for 16 channels, 0.8 for 32, and 1.1 to 1.3 for 8.
CONVOLUTION_CHANNELS = 16
# Filters from which the gradient by the input with other strides makes all windows before one product of matrices: each
# is read so often that writing them costs little. Benchmark: for 512 filters it takes 0.9 of the time.
CONVOLUTION_DEPTH = 256
# Lanes of strips for each thread. Trades memory for windows against balance: other threads take those of a slow one.
# Estimated.
CONVOLUTION_LANES = 4
# Contiguous elements of windows up to which a loop over them has a constant trip count, so that LLVM unrolls it. Trades
# loop control against one kernel for each number of channels. Estimated.
WINDOW_UNROLL = 32
# Images from which the gradient by the input goes over them in parallel, each with its windows. Estimated.
CONVOLUTION_IMAGES = 4
# The partial sums that add up to the gradient by the filters, and the most elements of the filters for which there are
# several; for more, threads share the rows of the result. Trades parallelism against memory; fixes the order of the
# sum. Benchmark: one sum for each lane takes 0.75 of the time of shared rows for 3 x 3 x 16 x 32, and 1.7 for
# 3 x 3 x 256 x 256.
CONVOLUTION_SUMS = 16
CONVOLUTION_FILTERS = 1 << 16

# Multiplications of a batch of products from which threads take its products one by one, and of one product from which
# they share that instead. Trades the wake-up of the pool against the work shared, and the balance of few large products
# against a meeting of the threads for each. Benchmark: 128 products of 32 x 16 x 32 took 16 us on two threads instead
# of 28.
SHARED_BATCH = 1 << 20
SHARED_PRODUCT = 1 << 22

# --- concatenation read in place -------------------------------------------------------------------------------------

# Segments of a concatenation that nests read in place, and nodes times parts of such a nest. Trades copies, and
# offsets that are computed for each row, against one body per part. Estimated. Benchmark of what it chooses between: of
# Conway's life as the sum of eight rolls, nine parts take 0.87 of three whose rows wrap around at 64 x 64, as much at
# 512 x 512, and copies nine times as much there.
CONCAT_VIEW_SEGMENTS = 4
CONCAT_VIEW_NODES = 240
# Elements of a row, known while tracing, up to which a nest whose rows aren't split is left whole, and copies are read.
# Benchmark: a difference of rolls along the first axis of 3,000 x 3 takes 0.21 of what it takes in parts, of 2,000 x 4
# 0.5; in parts of 100,000 x 8 0.6 of what it takes with copies.
CONCAT_VIEW_SHORT_ROW = 4

# --- reductions ------------------------------------------------------------------------------------------------------

# Elements of a chunk when everything is reduced. Trades parallelism against partial results; it fixes the order of
# the sum, so that results don't depend on the number of threads. Estimated.
REDUCTION_CHUNK = 4096
# Rows of a chunk when columns are reduced: of many rows, and of fewer. Fixes the order of the sum. Estimated.
COLUMN_CHUNK_ROWS = 32
COLUMN_CHUNK_FEW_ROWS = 8
COLUMN_CHUNK_MANY = 512  # rows from which there are many
# Rows that are added to the totals of few columns between a load and a store of these. Trades registers against the
# latency of the store. Benchmark: sums of 125,000 rows of 8 took a third.
COLUMN_UNROLL = 8
# Elements of a float32 row that is summed in float32. Trades accuracy against vector width. Estimated.
SINGLE_PRECISION_ROW = 4096

# --- scans, extremes, sorting ----------------------------------------------------------------------------------------

# Columns that a running sum takes at a time. Trades loop control against the cache: 8 KiB of totals. Estimated.
SCAN_COLUMNS = 1024
# Elements of a row that are compared together in the search for an extreme's position. Trades vector comparisons
# against looking at a block twice. Estimated.
EXTREME_BLOCK = 128
# Elements of an operand of argmax or argmin up to which, in a loop, the nest that computes the operand also finds the
# position, if the axis isn't the last one or its rows are no longer than EXTREME_BLOCK. Trades the store of the operand
# against looking at blocks of it. Benchmark: with positions along the first axis, Viterbi over 16 states takes half of
# what it takes with a search of its own; along rows of 200, a search of its own takes 0.43 of the nest.
SCAN_IN_LOOP = 4096
# Elements of a row that argsort sorts by comparison here; NumPy's radix and vector sorts win beyond. Benchmark: a
# moving median of 2,000 took 0.2 ms instead of 54.
SORT_ROW = 1024

# Elements of a chunk whose selected elements are counted together, so that threads know where to write theirs. Trades
# passes over the chunks against trips after a chunk's last selected element. Benchmark: of 1,000,000 elements, a half,
# a hundredth and a thousandth took 0.35, 0.24 and 0.07 ms with 256, 0.29, 0.27 and 0.22 with 4096, 0.46, 0.19 and 0.08
# with 32.
SELECTION_CHUNK = 128

# --- library functions that are called instead -----------------------------------------------------------------------

# Rows of a matrix that is factorised in plain loops. Trades LAPACK's blocking against leaving native code. Estimated.
FACTORIZATION_ROWS = 64

# --- random numbers --------------------------------------------------------------------------------------------------

# The most numbers that are drawn into a variable each. Trades code size against the call. Estimated.
RANDOM_IN_VARIABLES = 8

# --- interrupt polls -------------------------------------------------------------------------------------------------

# Ticks, about a nanosecond each, between two polls for Ctrl-C. Trades the delay that a person notices (some 0.1 s)
# against taking Python's lock. Estimated.
POLL_TICKS = 1 << 24
# Ticks of a node that makes an array, of a matrix product, and of a call of a recursive function; others are 1.
# Estimated, whatever the shapes.
ARRAY_TICKS = 256
PRODUCT_TICKS = 4096
CALL_TICKS = 16
# The ticks between two polls of a kernel for GPUs, whose threads are slower; a poll reads a word that the host writes.
# Estimated.
DEVICE_POLL_TICKS = 1 << 20
# The most trips of an inner loop without a poll, however cheap they are. Estimated.
STRIP_TRIPS = 1 << 22

# --- GPUs ------------------------------------------------------------------------------------------------------------

# Elements of a kernel's largest array up to which the kernel runs as one block, if its threads wait for each other.
# Trades the cost of a barrier across blocks against more threads. Measured on an H200: a trip with a maximum over 4,000
# numbers took 2.2 us in one block, 2.8 in 16; over 16,000 4.7 and 3.4.
DEVICE_ONE_BLOCK = 1 << 13
# Elements for each thread of a grid with barriers: of blocks of 256 threads, as long as there are fewer than
# multiprocessors; and of larger blocks, one for each multiprocessor. Trades threads against the barrier, which takes
# longer with more blocks and more threads. Measured on an H200 (132 multiprocessors), trips with a maximum over
# 100,000 numbers: 3.4 us in 98 blocks of 256, 7.9 in 528; over 1,000,000: 6.2 in 132 of 512, 6.8 in 132 of 256, 6.9 in
# 132 of 1,024, 9.2 in 528 of 256; over 10,000,000: 49 in 132 of 1,024, 50 in 132 of 512, 52 in 528 of 256. Where
# threads seldom wait, more blocks are better: 16.8 million loops of their own lengths take 1.1 ms in all blocks that
# run at a time, 1.9 in 132 of 1,024.
DEVICE_ELEMENTS = 4
DEVICE_WIDE_ELEMENTS = 16
# In a loop without branches: the trips that a thread takes at a time, the vectors of trips, and the most work of all of
# them, in subexpressions; DEVICE_CALL is what a division or a call counts as. Trades the latency of memory against
# registers. Estimated.
DEVICE_TRIPS = 8
DEVICE_VECTORS = 2
DEVICE_TRIP_WORK = 200
DEVICE_CALL = 16
# Elements of a row that is added up: those for each row from which all threads share each row, and those below which
# a thread takes a row; a warp takes the others. Estimated: a warp takes 32 elements in some 150 ns, the barrier of a
# grid 2 us.
DEVICE_LONG_ROW = 512
DEVICE_SHORT_ROW = 16
# Products of matrices: the summands from which a warp computes an element, where there are fewer elements than threads;
# the rows, columns and summands below which a thread computes an element; and the elements for each thread from which a
# thread computes 16 of a tile instead of 4. Estimated.
DEVICE_SHORT_PRODUCT = 32
DEVICE_NARROW_PRODUCT = 8
DEVICE_LARGE_PRODUCT = 8
# Elements of a chunk whose selected elements one thread counts and writes: see SELECTION_CHUNK. Estimated.
DEVICE_SELECTION_CHUNK = 32
# The sums over rows of windows that the gradient by the filters of each channel is made of. Trades the length of a
# thread's sum against memory. Estimated.
DEVICE_CONVOLUTION_SUMS = 1024
# Rows up to which all threads add rows at computed places one after the other, each thread its own elements, instead of
# sorting the places. Estimated: sorting takes some ten barriers of the grid.
DEVICE_FEW_ROWS = 32
# Rows of a matrix from which all blocks share its factorisation, if there are fewer matrices than blocks. Trades the
# barrier of the grid for more threads. Estimated.
DEVICE_LARGE_MATRIX = 128
