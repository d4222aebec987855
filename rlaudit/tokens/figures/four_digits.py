"""Numbers of pictures: four digits, because a picture shows no more, and a report that carries many stays small."""


def four_digits(value: float) -> float:
    """The value rounded to four significant digits."""
    return float(f"{value:.4g}")
