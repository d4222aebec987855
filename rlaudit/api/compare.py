"""`rlaudit.compare`."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from rlaudit.api.own_errors import own_errors
from rlaudit.diagnosis.compare_course import Log, Request, compare_logs, settings_of
from rlaudit.diagnosis.compare_sampling import named_sampling
from rlaudit.files.remote_log import log_path
from rlaudit.report.of_comparison import document_of
from rlaudit.severity import Threshold
from rlaudit.text.progress import Progress
from rlaudit.tokens.parquet import KNOWN
from rlaudit.tokens.renamed_columns import RenamedColumns, parse_columns
from rlaudit.tokens.table_in_memory import table_in_memory

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from rlaudit.report.report import Report

Table: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | pa.Table | Mapping[str, Any]"


class Options(TypedDict, total=False):
    """The options of `compare`, for functions that pass them on."""

    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    repetition_penalty: float | None
    trainer_temperature: float | None
    trainer_replays_filters: bool
    config: str | os.PathLike[str] | None
    before: "Table | None"
    before_trainer: "Table | None"
    columns: Mapping[str, str] | None
    arm: Sequence[str]
    ppo_epsilon: tuple[float, float] | None
    gspo_epsilon: tuple[float, float] | None
    margin: float | None
    seed: int
    allow_partial: bool


def compare(
    table: "Table",
    trainer: "Table | None" = None,
    *,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    min_p: float | None = None,
    repetition_penalty: float | None = None,
    trainer_temperature: float | None = None,
    trainer_replays_filters: bool = False,
    config: str | os.PathLike[str] | None = None,
    before: "Table | None" = None,
    before_trainer: "Table | None" = None,
    columns: Mapping[str, str] | None = None,
    arm: Sequence[str] = (),
    ppo_epsilon: tuple[float, float] | None = None,
    gspo_epsilon: tuple[float, float] | None = None,
    margin: float | None = None,
    seed: int = 0,
    allow_partial: bool = False,
) -> "Report":
    """Return what logged rollout logprobs mean, and how far they are from the trainer's.

    Does what `rlaudit compare TABLE TRAINER` does, and prints nothing. What is not said is not claimed: a temperature
    that neither a parameter nor a config names is taken to be 1, and `not_seen` of the report says so.

    table: a path (a recording, a token table, a run, a folder of dumps, s3:// and the like), a DataFrame, a pyarrow
    table, or a dict of columns. Either a row is a token, sorted by sequence and position, and columns are (T,); or a
    row is a sequence, and columns hold a list for each, (S,) lists or an array (S, T) whose padding `loss_mask` marks
    with 0. Needed: prompt_id, sample_id, rollout_logprob (nats, as the engine reported it); with it trainer_logprob
    (nats; NaN or null: not scored), and if known token_id, position (0 is the first completion token), loss_mask,
    trainer_entropy (nats), and the others that `rlaudit explain logs` names.
    trainer: a table with trainer_logprob of the same tokens, if `table` has none.
    temperature, top_p, top_k, min_p, repetition_penalty: how rollouts were sampled, as vLLM takes them.
    trainer_temperature: what the trainer divides its logits by; None: the sampling temperature.
    trainer_replays_filters: whether the trainer applies top_p, top_k and min_p as well.
    config: a rollout config that says all of this.
    before: rollouts of the engine that runs today: the report then has `move`. before_trainer: as `trainer`, for them.
    columns: {their name: ours} for tables whose columns have other names. arm: of a run directory, only these arms.
    ppo_epsilon, gspo_epsilon: (low, high) clip ranges of your objective, of tokens and of sequences.
    margin: the largest k3 (nats) that counts as equal; None: that of `before`, or what a clip range feels.
    seed: of the bootstrap. allow_partial: skip what cannot be used; otherwise `exit_code` is 3.

    The report has `layers` (each with `verdict`, `cause`, `because`, `next`), `comparisons` (with `measurements` and
    their 95 % intervals), `not_seen`, and `exit_code`, which is that of the command.
    Raises rlaudit.errors.UsageError for a table, column or option that does not exist, NotFinished for a log that
    cannot be read to its end or in which nothing can be compared. They call parameters as the command's options.
    Source: `rlaudit explain reading`, and for each metric and cause `rlaudit explain NAME`.
    """
    with own_errors():
        renamed = parse_columns([f"{theirs}={ours}" for theirs, ours in (columns or {}).items()], KNOWN)
        request = Request(
            _log(table, "rollouts in memory", renamed),
            None if trainer is None else _log(trainer, "trainer in memory", renamed, of_trainer=True),
            None if before is None else _log(before, "before in memory", renamed),
            None if before_trainer is None else _log(before_trainer, "before_trainer in memory", renamed, True),
            given=named_sampling(
                temperature, top_p, top_k, min_p, repetition_penalty, trainer_temperature, trainer_replays_filters
            ),
            config=None if config is None else Path(config),
            columns=renamed,
            arms=arm,
            settings=settings_of(ppo_epsilon, gspo_epsilon, margin, seed),
        )
        return document_of(compare_logs(request, Progress(quiet=True)), Threshold(), allow_partial)


def _log(table: "Table", name: str, renamed: RenamedColumns, of_trainer: bool = False) -> Log:
    if isinstance(table, str | os.PathLike):
        return log_path(str(table))
    return table_in_memory(table, name, of_trainer, renamed)
