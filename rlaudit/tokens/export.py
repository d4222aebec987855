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
    """One comparison of a file that holds several.

    where: the columns and values that its rows have. renamed: columns that have other names in the file. sampling: how
    its tokens were sampled, by our names, if the format says it. notes, not_seen: what a reader of its figures must
    know, and what is in none of them. weights: what the engine's were, if the format says it.
    """

    name: str = ""
    where: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    renamed: RenamedColumns = AS_OURS
    sampling: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[str, ...] = ()
    not_seen: tuple[str, ...] = ()
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
    """name: as in messages and documents. title: what it is. files: what it looks like on disk.

    columns: those of a file, if they alone make it one of this format. A trainer's table without rollout logprobs is
    one too.
    sample: reads about so many tokens, spread over a file, with every column; None if no part of it can be read without
    the rest: then the stream is sampled.
    tokens: how many are in a file, if that is known without reading it.
    aside: whether a file of a folder is not among its rollouts.
    is_folder: whether a folder is recognised and read as a whole, as a file of another format is.
    scorable: gives the sequences of a batch that a model may score: those of the first token's weights.
    partners: made of the paths of its log and of a trainer's table, if names of prompts and samples do not join them.
    note: what a reader of figures made from it must know, "" if nothing.
    """

    name: str
    title: str
    files: str
    recognise: Callable[[Path], bool]
    read: Read
    parts: Callable[[Path], tuple[Part, ...]] = one_part
    sample: Callable[[Path, int, PromptNumbers, Part], Iterator[TokenBatch]] | None = None
    columns: Callable[[Path], Collection[str]] | None = None
    tokens: Callable[[Path], int | None] = nobody_knows
    aside: Callable[[Path], bool] = nothing_aside
    is_folder: bool = False
    scorable: Callable[[Path, TokenBatch], TokenBatch] = all_scorable
    partners: "Callable[[Path, Path], NamedAlike] | None" = None
    note: str = ""
