"""`pow` with a modulus, whose products may need 128 bits."""

# The largest modulus whose products fit 63 bits.
_MOST = 3037000499


def power_modulo(base, exponent, modulus):
    if modulus == 0:
        raise ValueError("pow() 3rd argument cannot be 0")
    size = modulus if modulus > 0 else -modulus
    base = base % size
    if exponent < 0:
        base = inverse(base, size)
        exponent = -exponent
    result = 1 % size
    while exponent > 0:
        if exponent % 2 == 1:
            result = product_modulo(result, base, size)
        base = product_modulo(base, base, size)
        exponent = exponent // 2
    return result % modulus


def product_modulo(a, b, size):
    if size <= _MOST:
        result = a * b % size
    else:
        result = 0
        while b > 0:
            if b % 2 == 1:
                result = sum_modulo(result, a, size)
            a = sum_modulo(a, a, size)
            b = b // 2
    return result


def sum_modulo(a, b, size):
    return a - (size - b) if a >= size - b else a + b


def inverse(a, size):
    rest, following = a, size
    factor, next_factor = 1, 0
    while following != 0:
        quotient = rest // following
        rest, following = following, rest - quotient * following
        factor, next_factor = next_factor, factor - quotient * next_factor
    if rest != 1:
        raise ValueError("base is not invertible for the given modulus")
    return factor % size
