"""A number with its noun: 1 error, 2 errors."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number and a noun in the form that fits it. plural: of a noun that takes more than an s."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
