"""Tables compared one after the other: each with its trainer, and with what runs today where that is asked for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlaudit.diagnosis.compare import compare as compare_tokens
from rlaudit.diagnosis.compare_document import Compared
from rlaudit.diagnosis.compare_sampling import Told, told
from rlaudit.diagnosis.comparison import CompareSettings, Comparison
from rlaudit.errors import NotFinished, UsageError
from rlaudit.progress import Progress
from rlaudit.tokens.complete import complete
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.figures.logged_figures import LoggedFigures
from rlaudit.tokens.join_trainer import joined
from rlaudit.tokens.open_table import TokenTable
from rlaudit.tokens.parquet import KNOWN, MEASURED
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.prompt_tokens import with_prompt_tokens
from rlaudit.tokens.sequence_sample import SequenceSample
from rlaudit.tokens.sound import sound
from rlaudit.tokens.token_batch import TokenBatch

# Logs that nobody scores need no laboratory.
if TYPE_CHECKING:
    from rlaudit.diagnosis.compare_scored import Scorer


def todays(
    tables: Sequence[TokenTable], before: Sequence[TokenTable], path: Path
) -> Iterator[tuple[TokenTable, TokenTable]]:
    """Each table with that of the engine that runs today: the only one there is, or the arm of its own name.

    path: where `before` was read. Raises UsageError for a table that has none.
    """
    by_name = {table.part.name: table for table in before}
    for table in tables:
        today = before[0] if len(before) == 1 else by_name.get(table.part.name)
        if today is None:
            raise UsageError(
                f"--before {path} holds {len(before)} comparisons, and none is called {table.part.name!r}",
                f"there are: {', '.join(by_name)}",
            )
        yield table, today


@dataclass
class Comparer:
    """What all comparisons of one command line share, and what has been compared so far.

    given: sampling parameters of the command line. config: the rollout config that tells the rest.
    """

    given: Mapping[str, Any]
    config: Path | None
    settings: CompareSettings
    scorer: "Scorer | None"
    score_tokens: int
    progress: Progress
    compared: list[Compared] = field(default_factory=list)
    drawn: list[LoggedFigures] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    _today: dict[str, tuple[Comparison, PromptNumbers]] = field(default_factory=dict)

    def compare_today(self, table: TokenTable, trainer: TokenTable | None) -> tuple[Comparison, PromptNumbers]:
        """What runs today, read once, and how its prompts are numbered. It is shown, and judges others."""
        if table.part.name not in self._today:
            numbers = PromptNumbers()
            found = self._compared(table, trainer, numbers, None)
            self.compared.append(replace(found, is_before=True))
            today = found.comparison
            self._today[table.part.name] = (replace(today, name=f"before ({today.name or table.path})"), numbers)
        return self._today[table.part.name]

    def compare(
        self, table: TokenTable, trainer: TokenTable | None, today: tuple[Comparison, PromptNumbers] | None = None
    ) -> None:
        """One table, held against what runs today where that is given."""
        before, numbers = today if today is not None else (None, PromptNumbers())
        self.compared.append(self._compared(table, trainer, numbers, before))

    def _compared(
        self, table: TokenTable, trainer: TokenTable | None, numbers: PromptNumbers, before: Comparison | None
    ) -> Compared:
        sampling = told(self.given, self.config, table.path, table.part)
        self.assumed.extend(sampling.assumed)
        _say(self.progress, table, sampling)
        settings = replace(self.settings, trainer_excludes=sampling.replays)
        figures = LoggedFigures(settings.trainer_excludes)
        self.drawn.append(figures)
        faults = Faults()
        notes = [table.export.note] if table.export.note else []
        sample = None if trainer is not None else table.sample(settings.evidence_tokens, numbers)
        batches: Iterator[TokenBatch] = _batches(table, trainer, faults, numbers, sample is not None)
        scored = None
        if self.scorer is not None:
            from rlaudit.diagnosis.compare_scored import score

            picked = _picked(table, self.score_tokens, numbers)
            scored = score(picked, sampling.sampling, sampling.trainer, self.scorer, self.progress)
            notes.append(
                f"{scored[0].tokens} tokens in {scored[0].sequences} sequences were scored with {self.scorer.model}"
            )
            if picked.prompt_token_ids_S is None:
                notes.append(
                    "prompts were made into tokens here, texts as they are and messages by the model's template: if "
                    "the rollouts began with other tokens, every figure shows that"
                )
            if trainer is None and not picked.comparable_T.any():
                notes.append("the table has no trainer logprobs: figures are of the tokens that were scored, no others")
                batches = iter([scored[0]])
        # Pictures are drawn of the sample, where there is one: drawing all would take longer than comparing all.
        if sample is None or scored is not None:
            batches = figures.watching(batches)
        else:
            sample = figures.watching(sample)
        comparison = compare_tokens(
            batches,
            sampling.sampling,
            sampling.trainer,
            settings,
            name=table.part.name,
            path=table.path,
            faults=faults,
            sample=sample,
            scored=scored,
            before=before,
        )
        notes += [numbers.note()] if numbers.note() else []
        return Compared(
            replace(comparison, notes=tuple(notes)),
            path=str(table.path),
            export=table.export.name,
            files=len(table.files),
            trainer_path=None if trainer is None else str(trainer.path),
            faults=faults,
        )


def _batches(
    table: TokenTable, trainer: TokenTable | None, faults: Faults, numbers: PromptNumbers, thin: bool
) -> Iterator[TokenBatch]:
    columns = MEASURED if thin else KNOWN
    if trainer is None:
        return table.batches(faults, numbers, columns)
    both = (table.batches(faults, numbers, columns), trainer.batches(faults, numbers, KNOWN))
    return joined(*both, (table.path, trainer.path), faults)


def _picked(table: TokenTable, tokens: int, numbers: PromptNumbers) -> TokenBatch:
    """Sequences to score: spread over the table, with every column."""
    silent = Faults()
    sampled = SequenceSample(tokens // 2)
    for batch in table.sample(tokens, numbers) or table.batches(silent, numbers, KNOWN):
        usable = sound(batch, table.path, silent)
        if usable.sequences:
            sampled.add(usable)
    picked = sampled.batch()
    if picked is None:
        raise NotFinished(f"{table.path} has no sequence to score")
    return with_prompt_tokens(complete(picked)[0], table.path, silent)


def _say(progress: Progress, table: TokenTable, sampling: Told) -> None:
    name = f"{table.part.name}: " if table.part.name else ""
    progress.note(
        f"{name}{table.export.title}, {len(table.files)} file{'s' * (len(table.files) != 1)}; sampled at "
        f"{sampling.sampling.name}, trainer at {sampling.trainer.name} (told by {sampling.source})"
    )
