"""Tables compared one after the other: each with its trainer, and with what runs today if that is requested."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlaudit.diagnosis.compare import Comparison, judged, worded
from rlaudit.diagnosis.compare_sampling import Meanings, known_of, meanings_of
from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.diagnosis.compared_move import compared_move
from rlaudit.diagnosis.conversations import JudgedConversations, judge_conversations, with_changes
from rlaudit.diagnosis.evidence import Scored, gather
from rlaudit.diagnosis.read_log import LogPart, read_file, read_part, sampled_from, together
from rlaudit.errors import NotFinished, UsageError
from rlaudit.text.counted import counted
from rlaudit.text.progress import Progress, readable
from rlaudit.tokens.complete import complete
from rlaudit.tokens.conversations.join import joined as joined_turns
from rlaudit.tokens.conversations.turn import Turns
from rlaudit.tokens.export import all_scorable
from rlaudit.tokens.fault import Fault, FaultKind, Faults
from rlaudit.tokens.first_look import LOOKED_AT, FirstLook, first_look
from rlaudit.tokens.join_trainer import joined
from rlaudit.tokens.open_table import TokenTable
from rlaudit.tokens.parquet import KNOWN, PROMPT_IDS
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.prompt_tokens import with_prompt_tokens
from rlaudit.tokens.sequence_sample import SequenceSample
from rlaudit.tokens.sound import sound
from rlaudit.tokens.token_batch import TokenBatch
from rlaudit.tokens.token_figures import TokenFigures, logged_figures

CELLS_OF_RUN = "cells"

# Logs that are neither scored nor read elsewhere need no laboratory.
if TYPE_CHECKING:
    from rlaudit.diagnosis.compare_scored import Scorer
    from rlaudit.diagnosis.read_on_ray import ReadFiles


def todays(
    tables: Sequence[TokenTable], before: Sequence[TokenTable], path: Path | None
) -> Iterator[tuple[TokenTable, TokenTable | None]]:
    """Yield each table with that of the engine that runs today: the only one, or the arm of the same name.

    path: of `before`; None if nothing is compared with it. Raises UsageError for a table that has no partner.
    """
    by_name = {table.part.name: table for table in before}
    for table in tables:
        today = before[0] if len(before) == 1 else by_name.get(table.part.name)
        if today is None and path is not None:
            raise UsageError(
                f"--before {path} holds {len(before)} comparisons, and none is called {table.part.name!r}",
                f"there are: {', '.join(by_name)}",
            )
        yield table, today


@dataclass(frozen=True)
class Compared:
    """A comparison with the path and format of its tokens, and what could not be read."""

    comparison: Comparison
    path: str
    export: str
    files: int
    trainer_path: str | None
    faults: Faults
    # None if no turn continues another, or if their ids are not known.
    conversations: JudgedConversations | None = None
    is_before: bool = False


@dataclass
class Comparer:
    """What all comparisons of a command share, and what has been compared so far."""

    # Sampling parameters of the command line.
    given: Mapping[str, Any]
    # The rollout config for the others.
    config: Path | None
    settings: CompareSettings
    scorer: "Scorer | None"
    score_tokens: int
    progress: Progress
    # Reads the files of a table elsewhere; None if this machine does.
    read_files: "ReadFiles | None" = None
    compared: list[Compared] = field(default_factory=list)
    drawn: list[TokenFigures | None] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    _today: dict[str, tuple[Comparison, PromptNumbers]] = field(default_factory=dict)

    def compare_today(self, table: TokenTable, trainer: TokenTable | None) -> tuple[Comparison, PromptNumbers]:
        """Compare what runs today, once, and number its prompts. It is shown, and others are compared with it."""
        if table.part.name not in self._today:
            numbers = PromptNumbers()
            compared = self._compared(table, trainer, numbers, None)
            self.compared.append(replace(compared, is_before=True))
            named = replace(compared.comparison.evidence, name=f"before ({table.part.name or table.path})")
            self._today[table.part.name] = (replace(compared.comparison, evidence=named), numbers)
        return self._today[table.part.name]

    def compare(
        self, table: TokenTable, trainer: TokenTable | None, today: tuple[Comparison, PromptNumbers] | None = None
    ) -> None:
        """Compare a table, with what runs today if that is given."""
        before, numbers = today if today is not None else (None, PromptNumbers())
        self.compared.append(self._compared(table, trainer, numbers, before))

    def _compared(
        self, table: TokenTable, trainer: TokenTable | None, numbers: PromptNumbers, before: Comparison | None
    ) -> Compared:
        values, source = known_of(self.given, self.config, table.path, table.part)
        sampling = meanings_of(values, source)
        settings = replace(self.settings, trainer_excludes=sampling.replays, first_look=_first_look(table, trainer))
        scored, only_scored, notes = self._scored(table, numbers, sampling, settings.first_look)
        files, faults, turns = 1, Faults(), Turns()
        parts: Iterable[LogPart]
        if trainer is not None:
            part, note = _joined(table, trainer, settings, numbers, turns)
            parts = [part]
            notes.append(note)
        elif scored is not None and only_scored:
            notes.append("the table has no trainer logprobs, so the figures are of the scored tokens only")
            parts = [read_part([scored[0]], table.path, settings, Faults())]
        else:
            parts, files = self._parts(table, settings, turns), len(table.files)
        self.assumed.extend(sampling.assumed)
        _note_sampling(self.progress, table, sampling)
        self.progress.expect(files)
        with self.progress.step(f"reading {table.path}"):
            for column, because in settings.first_look.missing.items():
                faults.add(Fault(table.path, FaultKind.MISSING, because, column=column))
            log = together(parts, table.path, faults, settings, numbers, sampled_from(files))
        conversations = joined_turns(turns.turns, turns.beyond)
        if log.sample is not None:
            log = replace(log, sample=with_changes(log.sample, conversations))
        self.drawn.append(None if log.sample is None else logged_figures(log.sample, settings.trainer_excludes))
        evidence = gather(
            log,
            sampling.sampling,
            sampling.trainer,
            settings,
            name=table.part.name,
            faults=faults,
            scored=scored,
            before=None if before is None else before.as_today,
            weights=table.part.weights,
        )
        comparison = worded(judged(evidence))
        if before is not None:
            comparison = replace(comparison, move=compared_move(before, comparison))
        remarks = [table.export.note, *table.part.notes, *notes, numbers.note()]
        not_seen = (*table.part.not_seen, *comparison.not_seen)
        return Compared(
            replace(comparison, notes=tuple(note for note in remarks if note), not_seen=not_seen),
            path=str(table.path),
            export=table.export.name,
            files=len(table.files),
            trainer_path=None if trainer is None else str(trainer.path),
            faults=faults,
            conversations=judge_conversations(conversations, log.sample, settings),
        )

    def _scored(
        self, table: TokenTable, numbers: PromptNumbers, sampling: Meanings, looked: FirstLook
    ) -> tuple[Scored | None, bool, list[str]]:
        """Return a sample with the model's scores, whether no other trainer has scored it, and notes."""
        if self.scorer is None:
            scored, notes = self._scored_by_run(table, numbers, sampling, looked)
            return scored, False, notes
        from rlaudit.diagnosis.compare_scored import score

        picked = _picked(table, self.score_tokens, numbers, looked)
        scored = score(picked, sampling.sampling, sampling.trainer, self.scorer, self.progress)
        notes = [f"{scored[0].tokens} tokens in {scored[0].sequences} sequences were scored with {self.scorer.model}"]
        if picked.prompt_token_ids_S is None:
            notes.append(
                "prompts were tokenised here, messages by the model's template; if the rollouts began with other "
                "tokens, every figure shows that"
            )
        return scored, not picked.comparable_T.any(), notes

    def _scored_by_run(
        self, table: TokenTable, numbers: PromptNumbers, sampling: Meanings, looked: FirstLook
    ) -> tuple[Scored | None, list[str]]:
        """Return the scores that the run has, if the table is an arm of one, and a note on them."""
        folder = table.path if table.path.is_dir() else table.path.parent
        if not table.part.where or not (folder / CELLS_OF_RUN).is_dir():
            return None, []
        from rlaudit.diagnosis.run_scores import scores_of_run

        picked = _picked(table, 2 * self.settings.evidence_tokens, numbers, looked)
        scored = scores_of_run(picked, folder, sampling.sampling, sampling.trainer)
        return scored, [] if scored is None else [f"{scored[0].tokens} tokens have scores of the run's own trainer"]

    def _parts(self, table: TokenTable, settings: CompareSettings, turns: Turns) -> Iterator[LogPart]:
        """Yield what each file adds, in their order. turns: read elsewhere, a file's turns stay there."""
        if self.read_files is not None:
            for part in self.read_files(table, table.files, settings):
                self.progress.done()
                yield part
            return
        for file in table.files:
            started = time.monotonic()
            part = _read(table, file, settings, self.progress, turns)
            self.progress.done(time.monotonic() - started)
            yield part


def _read(table: TokenTable, file: Path, settings: CompareSettings, progress: Progress, turns: Turns) -> LogPart:
    expected = table.export.tokens(file)

    def watched(batches: Iterator[TokenBatch]) -> Iterator[TokenBatch]:
        return turns.watch(_counted(batches, file, expected, progress))

    return read_file(table.export, file, table.part, settings, len(table.files), watched)


def _counted(
    batches: Iterator[TokenBatch], file: Path, expected: int | None, progress: Progress
) -> Iterator[TokenBatch]:
    """Pass the batches on and report the progress. expected: tokens of the file, if known."""
    tokens, started = 0, time.monotonic()
    for batch in batches:
        yield batch
        tokens += batch.tokens
        speed = max(tokens, 1) / max(time.monotonic() - started, 1e-3)
        total = "" if expected is None else f" of {expected:,}"
        left = "" if expected is None else f", about {readable(max(expected - tokens, 0) / speed)} left"
        progress.update(f"{file.name}: {tokens:,}{total} tokens, {speed:,.0f} tokens/s{left}")


def _first_look(table: TokenTable, trainer: TokenTable | None) -> FirstLook:
    """Return what some sequences show before the log is read: of both tables, if there are two."""
    numbers, silent = PromptNumbers(), Faults()
    if trainer is None:
        return first_look(table.sample(LOOKED_AT, numbers) or table.batches(silent, numbers, KNOWN))
    rollouts, others = table.batches(silent, numbers, KNOWN), trainer.batches(silent, numbers, KNOWN)
    partners = None if table.export.partners is None else table.export.partners(table.path, trainer.path)
    if partners is not None:
        rollouts, others = partners.rollouts(rollouts), partners.trainer(others)
    return first_look(joined(rollouts, others, (table.path, trainer.path), silent))


def _joined(
    table: TokenTable, trainer: TokenTable, settings: CompareSettings, numbers: PromptNumbers, turns: Turns
) -> tuple[LogPart, str]:
    """Join both tables as one part; return it and a note on what has no partner."""
    faults = Faults()
    rollouts, others = table.batches(faults, numbers, (*KNOWN, PROMPT_IDS)), trainer.batches(faults, numbers, KNOWN)
    partners = None if table.export.partners is None else table.export.partners(table.path, trainer.path)
    if partners is not None:
        rollouts, others = partners.rollouts(rollouts), partners.trainer(others)
    both = turns.watch(joined(rollouts, others, (table.path, trainer.path), faults))
    part = read_part(both, table.path, settings, faults)
    return part, "" if partners is None else partners.note()


def _picked(table: TokenTable, tokens: int, numbers: PromptNumbers, looked: FirstLook) -> TokenBatch:
    """Return sequences to score: spread over the table, with every column."""
    silent = Faults()
    sampled = SequenceSample(tokens // 2)
    for batch in table.sample(tokens, numbers) or table.batches(silent, numbers, KNOWN):
        usable = table.export.scorable(table.path, sound(looked.applied(batch), table.path, silent))
        if usable.sequences:
            sampled.add(usable)
    picked = sampled.batch()
    if picked is None:
        of_others = "" if table.export.scorable is all_scorable else " that was sampled from the model's own weights"
        raise NotFinished(f"{table.path} has no sequence to score{of_others}")
    return with_prompt_tokens(complete(picked)[0], table.path, silent)


def _note_sampling(progress: Progress, table: TokenTable, sampling: Meanings) -> None:
    name = f"{table.part.name}: " if table.part.name else ""
    progress.note(
        f"{name}{table.export.title}, {counted(len(table.files), 'file')}; tokens sampled at "
        f"{sampling.sampling.name}, trainer logprobs at {sampling.trainer.name} (source: {sampling.source})"
    )
