"""Programs over whole arrays: chains, reductions, products, and loops of them."""
