"""The two kinds of cells: a word, and a figure with the ends of its interval."""

from rlaudit.report.parts.releases import Cell


def word_cell(word: str, claimed: str | None = None, why: str | None = None) -> Cell:
    """Return a cell with a word."""
    return Cell(value=None, low=None, high=None, word=word, claimed=claimed, why=why)


def figure_cell(value: float | None, low: float | None, high: float | None) -> Cell:
    """Return a cell with a figure and the ends of its interval."""
    return Cell(value=value, low=low, high=high, word=None, claimed=None)
