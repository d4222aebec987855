"""A limit with few digits that the value which it is of still keeps."""

import math

DIGITS = 4


def outwards(value: float, *, up: bool, beyond: bool = False) -> float:
    """Return the value with four digits, rounded up or down. beyond: never to the value itself."""
    if not math.isfinite(value):
        return value
    if value == 0:
        return (1e-12 if up else -1e-12) if beyond else value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - DIGITS + 1)
    limit = float(f"{(math.ceil if up else math.floor)(value / step) * step:.{DIGITS}g}")
    return float(f"{limit + (step if up else -step):.{DIGITS + 1}g}") if beyond and limit == value else limit
