"""Errors that leave a public function: rlaudit's own for what a caller can act on, any other for a bug."""

from collections.abc import Iterator
from contextlib import contextmanager

from rlaudit.errors import RlauditError
from rlaudit.files.unusable_place import error_of_a_file


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise UsageError or NotFinished in the place of an error about files; leave every other as it is."""
    try:
        yield
    except RlauditError:
        raise
    except Exception as error:
        ours = error_of_a_file(error)
        if ours is None:
            raise
        raise ours from error
