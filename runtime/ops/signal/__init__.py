"""Signal processing: Fourier and cosine transforms, short-time transforms and windows, cepstral coefficients."""
