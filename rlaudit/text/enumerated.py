"""Words in a row: one, two and three."""

from collections.abc import Sequence


def enumerated(words: Sequence[str]) -> str:
    """Return the words with commas, and `and` before the last."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""
