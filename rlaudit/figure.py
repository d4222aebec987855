"""A figure as people read it: its value with its interval, at the precision they compare."""


def figure(value: float | None, low: float | None, high: float | None) -> str:
    """Three digits; said where there is no value or no interval."""
    if value is None:
        return "undefined"
    if low is None or high is None:
        return f"{value:.3g} (no interval)"
    return f"{value:.3g} [{low:.3g}, {high:.3g}]"
