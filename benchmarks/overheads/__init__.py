"""What there is to pay besides computing: calls, tracing, conversion, first results."""
