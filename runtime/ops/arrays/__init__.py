"""Arrays: making, reshaping, joining and indexing them, reductions and scans, order, segments, sets."""
