"""Random numbers: Philox streams, the ops that draw from them with and without a state, and initialisers."""
