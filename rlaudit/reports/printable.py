"""Moved to rlaudit.printable; gone before the next commit."""

from rlaudit.printable import one_line as one_line
from rlaudit.printable import printable as printable
