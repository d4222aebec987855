"""A bump: the new tree inspected with the old pin's release and with the new one's, and what only the second finds."""

from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass

from rlaudit.configs.source import LARGEST_BYTES
from rlaudit.inspection.bump.migration import Migration, Pins, migration_of, only_release, pins_of
from rlaudit.inspection.bump.trees import Trees, trees_named
from rlaudit.inspection.rendering_here import TRANSFORMERS, PinnedBefore
from rlaudit.vllm.pins.files import LARGEST_BYTES as LARGEST_PINS
from rlaudit.vllm.pins.files import kind_of


@dataclass(frozen=True)
class Bump:
    """The trees, pins and releases of a bump."""

    trees: Trees
    pins: Pins
    # None if no pin moves from one known release to another.
    migration: Migration | None
    # What the tree before pins of transformers.
    pinned_before: PinnedBefore


def find_bump(words: str, paths: Sequence[str]) -> Bump:
    """Find the trees that `--bump` names and the pins that move between them. Raises as `trees_named` does."""
    trees = trees_named(words, paths)
    most = (lambda path: kind_of(path) is not None), LARGEST_PINS
    with trees.before.laid_out(*most) as before, trees.after.laid_out(*most) as after:
        pins, beside = pins_of(before, after), only_release(before, TRANSFORMERS)
    return Bump(trees, pins, migration_of(pins), PinnedBefore(beside))


@contextmanager
def in_tree_after(trees: Trees) -> Iterator[None]:
    """Make the tree after the working directory, so that files are read and named as in that repository."""
    with trees.after.laid_out(lambda _path: True, LARGEST_BYTES) as folder, chdir(folder):
        yield
