"""The parts of a log, put together in their order into what the whole log says."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from rlaudit.arrays import Integers
from rlaudit.diagnosis.comparison import CompareSettings, Counts
from rlaudit.diagnosis.log_part import LogPart, added, read_part
from rlaudit.errors import NotFinished
from rlaudit.measurement.measure import Tally
from rlaudit.measurement.running_tally import RunningTally
from rlaudit.tokens.alignment import AlignmentReport
from rlaudit.tokens.data_share import DataShare
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.prompt_numbers import PROMPTS, PromptNumbers
from rlaudit.tokens.sibling_groups import SiblingGroups
from rlaudit.tokens.token_batch import TokenBatch, concatenate


@dataclass(frozen=True, eq=False)
class Streamed:
    """Sums of the comparable tokens of aligned sequences; evidence: a sample of all sound ones, shifted or not.

    unlooked: what was wrong in the evidence and is counted nowhere else. groups: samples of one prompt, and the number
    of each one's group (`tokens/sibling_groups.py`).
    """

    tally: Tally
    alignment: AlignmentReport
    evidence: TokenBatch
    unlooked: Faults
    counts: Counts
    share: DataShare
    groups: tuple[TokenBatch, Integers] | None


@dataclass(frozen=True, eq=False)
class Unscored:
    """Rollouts that no trainer has scored, and their groups of samples."""

    counts: Counts
    share: DataShare
    groups: tuple[TokenBatch, Integers]


def stream(batches: Iterable[TokenBatch], path: Path, faults: Faults, settings: CompareSettings) -> Streamed | Unscored:
    """Read everything once. Raises NotFinished if no token can be compared, and no samples with each other."""
    return together([read_part(batches, path, settings, Faults())], path, faults, settings)


def together(
    parts: Iterable[LogPart],
    path: Path,
    faults: Faults,
    settings: CompareSettings,
    numbers: PromptNumbers | None = None,
    evidence_from: int = 1,
) -> Streamed | Unscored:
    """Put all parts together and note their faults.

    numbers: of the prompts of this log and of those it is held against.

    evidence_from: every so many-th part gives evidence.
    Raises NotFinished if no token can be compared, and no samples with each other.
    """
    numbers = numbers or PromptNumbers()
    summed = RunningTally(PROMPTS, settings=settings.objective)
    alignment, counted, unlooked = AlignmentReport(0, 0), Counts(), Faults()
    siblings, unscored = SiblingGroups(), SiblingGroups()
    evidence: list[TokenBatch] = []
    for place, part in enumerate(parts):
        faults.extend(part.faults)
        counted += part.counts
        alignment = added(alignment, part.alignment)
        number_of = None if part.names is None else numbers.ours(part.names, part.grouped)
        summed.add(part.tally if number_of is None else replace(part.tally, prompts=number_of[part.tally.prompts]))
        siblings.merge(part.siblings, number_of)
        unscored.merge(part.unscored, number_of)
        batch = part.evidence
        if batch is not None and (place % evidence_from == 0 or not evidence):
            evidence.append(batch if number_of is None else replace(batch, prompt_S=number_of[batch.prompt_S]))
            unlooked.extend(part.unlooked)
    if not evidence:
        groups = unscored.groups()
        if groups is None:
            raise nothing_to_compare(counted, faults)
        tokens = counted.tokens - counted.uncounted_tokens
        share = DataShare(
            counted.sequences, faults.sequences_left_out, tokens, faults.tokens_left_out, unread=faults.unread
        )
        return Unscored(counted, share, groups)
    if counted.unscored_sequences:
        said = (
            f"{counted.unscored_sequences} of {counted.sequences} sequences have no trainer logprob, the others have: "
            "they are in no figure"
        )
        faults.add(Fault(path, FaultKind.UNSCORED, said), sequences=counted.unscored_sequences)
    tally = summed.tally()
    looked_at = concatenate(evidence) if len(evidence) > 1 else evidence[0]
    return Streamed(tally, alignment, looked_at, unlooked, counted, _share(tally, counted, faults), siblings.groups())


def _share(tally: Tally, counted: Counts, faults: Faults) -> DataShare:
    """Return how much of what was given the figures rest on."""
    return DataShare(
        sequences=int(tally.sequences_P.sum()),
        sequences_left_out=faults.sequences_left_out + sum(counted.misaligned.values()),
        tokens=counted.compared_tokens,
        tokens_left_out=faults.tokens_left_out + counted.tokens - counted.uncounted_tokens - counted.compared_tokens,
        unread=faults.unread,
    )


def nothing_to_compare(counts: Counts, faults: Faults) -> NotFinished:
    """Return why a table cannot be judged."""
    if counts.unscored_sequences:
        return NotFinished(
            f"none of {counts.sequences} sequences has a trainer logprob: there is nothing to compare with",
            "give the trainer's table as second argument, or --score MODEL; or the token ids of several samples per "
            "prompt, which tell whether the report is honest",
        )
    first = f"; the first fault: {faults.shown[0]}" if faults.shown else ""
    if counts.uncounted_tokens and counts.uncounted_tokens == counts.tokens:
        first = f": the loss mask counts none of {counts.tokens} tokens"
    return NotFinished(f"there is no sequence to compare{first}")
