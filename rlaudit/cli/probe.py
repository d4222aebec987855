"""`rlaudit probe`: what a running server's logprobs mean, and what a move to another server changes."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlaudit.cli.options import (
    FailForWhat,
    FailOn,
    FailOnMismatch,
    MinP,
    Outputs,
    Quiet,
    RepetitionPenalty,
    Require,
    RolloutConfig,
    Temperature,
    TopK,
    TopP,
    TrainerReplaysFilters,
    TrainerTemperature,
    threshold_of,
)
from rlaudit.cli.output import parse_outputs, write_file, write_outputs
from rlaudit.cli.scoring import Score, ScoreDtype, ScoreOnCpu, TrainerPython, scorer_of
from rlaudit.errors import UsageError
from rlaudit.files.read_regular import NotRegular, read_regular
from rlaudit.files.standard_input import DASH
from rlaudit.secrets import learn
from rlaudit.severity import FailFor
from rlaudit.text.progress import Progress
from rlaudit.text.say import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlaudit.diagnosis.compare_sampling import Meanings
    from rlaudit.probe.samples import Samples

REQUESTS, TOKENS = 400, 60_000
MOST_OF_A_KEY = 16_384


def probe(
    server: Annotated[
        str, typer.Argument(metavar="URL", help="An OpenAI-compatible server, as http://localhost:8000.")
    ],
    after: Annotated[
        str | None,
        typer.Argument(metavar="NEW", help="The server to move to: the first is today's.", show_default=False),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model to ask; by default the first that is listed.")
    ] = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    top_k: TopK = None,
    min_p: MinP = None,
    repetition_penalty: RepetitionPenalty = None,
    trainer_temperature: TrainerTemperature = None,
    trainer_replays_filters: TrainerReplaysFilters = False,
    config: RolloutConfig = None,
    requests: Annotated[
        int, typer.Option("--budget", min=1, metavar="N", help="The most requests to a server.")
    ] = REQUESTS,
    tokens: Annotated[
        int, typer.Option("--budget-tokens", min=1, metavar="N", help="The most tokens that a server generates.")
    ] = TOKENS,
    at_once: Annotated[int, typer.Option(min=1, max=64, metavar="N", help="The most requests at a time.")] = 4,
    timeout: Annotated[float, typer.Option(min=1, metavar="S", help="Seconds for one request.")] = 60.0,
    key_variable: Annotated[
        str | None, typer.Option(metavar="VARIABLE", help="The environment variable that holds the server's key.")
    ] = None,
    key_file: Annotated[Path | None, typer.Option(metavar="PATH", help="The file that holds the server's key.")] = None,
    write_config: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Write what was found as a config that inspect reads; - for stdout."),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            metavar="PATH",
            help="Sample as your rollouts do, and write a token table (Parquet) that compare reads.",
        ),
    ] = None,
    score: Score = None,
    score_dtype: ScoreDtype = "bfloat16",
    trainer_python: TrainerPython = None,
    cpu: ScoreOnCpu = False,
    output: Outputs = None,
    fail_on: FailOnMismatch = FailOn.ERROR,
    fail_for: FailForWhat = FailFor.STATE,
    require: Require = None,
    quiet: Quiet = False,
) -> int:
    """Ask a running server what its logprobs mean, read-only."""
    from rlaudit.diagnosis.compare_sampling import named_sampling
    from rlaudit.meaning.candidates import RAW
    from rlaudit.probe.as_config import as_config
    from rlaudit.probe.budget import Budget
    from rlaudit.probe.course import probe as ask
    from rlaudit.probe.samples import sample
    from rlaudit.probe.scored import scored
    from rlaudit.probe.server import Server, root_of
    from rlaudit.report.of_probe import document_of

    outputs = parse_outputs(output)
    given = named_sampling(
        temperature, top_p, top_k, min_p, repetition_penalty, trainer_temperature, trainer_replays_filters
    )
    if samples is not None and str(samples) == DASH:
        raise UsageError("a token table in Parquet is no text for stdout", "give --tokens the path of a file")
    scorer = None if score is None else scorer_of(score, score_dtype, trainer_python, cpu)
    meanings = _meanings(given, config, scorer is not None)
    key = _key(key_variable, key_file)
    addresses = [root_of(address) for address in (server, after) if address is not None]
    progress = Progress(quiet)
    if not quiet:
        say(
            f"at most {requests} requests and {tokens} tokens, {at_once} at once (--budget, --budget-tokens, --at-once)"
        )
    probed, sampled = [], []
    for address in addresses:
        budget = Budget(requests, tokens)
        with Server(address, budget, key, timeout, at_once) as asked, progress.step(address):
            answers = ask(asked, model, progress.update)
            if samples is not None or scorer is not None:
                progress.update(f"{address}: live samples")
                sampled.append((address, sample(asked, RAW if meanings is None else meanings.sampling)))
            probed.append(replace(answers, requests=budget.asked, tokens=budget.generated, seconds=budget.seconds))
    if write_config is not None:
        write_file(write_config, as_config(probed[-1]))
    if samples is not None:
        _write(samples, [each for _, each in sampled])
    comparison = None if scorer is None else scored(sampled, given, config, scorer, progress)
    document = document_of(
        probed, meanings, threshold_of(fail_on, fail_for), require is not None, dict(sampled), comparison
    )
    return write_outputs(outputs, document)


def _write(path: Path, sampled: "Sequence[Samples]") -> None:
    """Write the table of the last server under the path, and that of today's beside it."""
    today = path.with_stem(f"{path.stem}.today")
    for place, samples in zip([path, today], reversed(sampled), strict=False):
        if samples.rows:
            write_file(place, samples.parquet)
            say(f"wrote {place}: {len(samples.rows)} sequences, {samples.tokens} tokens")


def _meanings(given: dict[str, Any], config: Path | None, always: bool) -> "Meanings | None":
    """Return what rollouts request and what the trainer computes, None if nothing of either was named.

    always: whether a trainer is needed, and what was not named is assumed.
    """
    from rlaudit.diagnosis.compare_sampling import meanings_of, of_config

    known = {} if config is None else of_config(config)
    known.update({name: value for name, value in given.items() if value is not None})
    return meanings_of(known, "the command line") if known or always else None


def _key(variable: str | None, file: Path | None) -> str | None:
    """Return the key. From now on it is masked in everything that is written."""
    if variable is not None and file is not None:
        raise UsageError("--key-variable and --key-file name two keys", "give one of them")
    if variable is not None:
        key = os.environ.get(variable, "").strip()
    elif file is not None:
        try:
            key = read_regular(file, MOST_OF_A_KEY, "no key").decode("utf-8", "replace").strip()
        except (OSError, NotRegular) as error:
            raise UsageError(f"{file} holds no key: {error}") from error
    else:
        return None
    if not key or not key.isascii() or not key.isprintable():
        raise UsageError(f"{file or variable} holds no key", "a key is one line of letters, digits and signs")
    learn({"api_key": key})
    return key
