"""A format that logged rollouts come in: how to recognise a file of it by its content, and how to read it."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from rlaudit.recording.recorded_weights import RecordedWeights
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.renamed_columns import AS_OURS, RenamedColumns
from rlaudit.tokens.token_batch import TokenBatch

if TYPE_CHECKING:
    from rlaudit.tokens.recorded.named_alike import NamedAlike


@dataclass(frozen=True)
class Part:
    """One comparison of a file that holds several."""

    name: str = ""
    # The columns and values that its rows have.
    where: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # Columns that have other names in the file.
    renamed: RenamedColumns = AS_OURS
    # How its tokens were sampled, by our names, if the format says it.
    sampling: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    # notes, not_seen: what a reader of its figures must know, and what is in none of them.
    notes: tuple[str, ...] = ()
    not_seen: tuple[str, ...] = ()
    # What the engine's were, if the format says it.
    weights: RecordedWeights | None = None


WHOLE = Part()


class Read(Protocol):
    """Reads one file of a format in whole sequences; what cannot be used goes to `faults`."""

    def __call__(
        self, path: Path, faults: Faults, prompts: PromptNumbers, columns: Collection[str], part: Part
    ) -> Iterator[TokenBatch]:
        """Yield the batches; formats that decode every column anyway may give more than `columns`."""


def one_part(path: Path) -> tuple[Part, ...]:
    """Return the one part of a file that holds one comparison."""
    return (WHOLE,)


def nobody_knows(path: Path) -> int | None:
    """Return None: lines have to be read to be counted."""
    return None


def all_scorable(path: Path, batch: TokenBatch) -> TokenBatch:
    """Return the batch: the user, who names the model, has to know which weights sampled it."""
    return batch


def nothing_aside(path: Path) -> bool:
    """Return False: every file holds rollouts."""
    return False


@dataclass(frozen=True)
class Export:
    """A format: how to recognise a file of it, and how to read it."""

    # As in messages and documents.
    name: str
    # What it is.
    title: str
    # What it looks like on disk.
    files: str
    recognise: Callable[[Path], bool]
    read: Read
    parts: Callable[[Path], tuple[Part, ...]] = one_part
    # Reads about so many tokens, spread over a file, with every column; None if no part of it can be read without the
    # rest: then the stream is sampled.
    sample: Callable[[Path, int, PromptNumbers, Part], Iterator[TokenBatch]] | None = None
    # The columns of a file, if they alone make it one of this format. A trainer's table without rollout logprobs is one
    # too.
    columns: Callable[[Path], Collection[str]] | None = None
    # How many tokens are in a file, if that is known without reading it.
    tokens: Callable[[Path], int | None] = nobody_knows
    # Whether a file of a folder is not among its rollouts.
    aside: Callable[[Path], bool] = nothing_aside
    # Whether a folder is recognised and read as a whole, as a file of another format is.
    is_folder: bool = False
    # Gives the sequences of a batch that a model may score: those of the first token's weights.
    scorable: Callable[[Path, TokenBatch], TokenBatch] = all_scorable
    # Made of the paths of its log and of a trainer's table, if names of prompts and samples do not join them.
    partners: "Callable[[Path, Path], NamedAlike] | None" = None
    # What a reader of figures made from it must know, empty if nothing.
    note: str = ""
