"""Does the attribution find what was planted, and keep quiet where nothing was?

    cd .ci && python -m evidence.selftest [--trials 20] [--causes NAME,NAME] [--ids-only | --engines]

Prints the confusion matrix, misses included; ends with 1 where a target is missed. `--engines` plants in real vLLM.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from worlds.plant import Dose

from evidence.selftest.cells import cells
from evidence.selftest.confusion import confusion_of
from evidence.selftest.document import document_of, document_of_engines
from evidence.selftest.engines.engines_under_test import engines_under_test, not_planted
from evidence.selftest.engines.run_engine_plants import run_engine_plants
from evidence.selftest.engines.run_update_plants import run_update_plants
from evidence.selftest.matrix import Matrix, printed
from evidence.selftest.run import run_trials
from evidence.selftest.sibling_document import document_of_siblings
from evidence.selftest.sibling_trials import run_sibling_trials, sibling_labels
from rlaudit.engines.environments.given_interpreters import ENGINE_HELP, TRAINER_HELP, given_interpreters
from rlaudit.engines.hardware.accelerator import detect
from rlaudit.errors import RlauditError, UsageError
from rlaudit.text.progress import Progress

DOSES = ("low", "middle", "top")


def selftest(
    trials: Annotated[int, typer.Option(min=1, help="Blind trials for each cell.")] = 20,
    causes: Annotated[str, typer.Option(help="Comma-separated; default: all, with clean and two at a time.")] = "",
    doses: Annotated[str, typer.Option(help="Comma-separated, of low, middle, top.")] = ",".join(DOSES),
    seed: Annotated[int, typer.Option(min=0, help="Other seeds give other models, rollouts and tokens.")] = 0,
    generator: Annotated[str, typer.Option(help="held-out (never used for tuning) or development.")] = "held-out",
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    ids_only: Annotated[
        bool,
        typer.Option("--ids-only", help="Plant where token ids and one logprob a token are all that was logged."),
    ] = False,
    engines: Annotated[
        bool, typer.Option("--engines", help="Plant in real engines instead, on this machine's GPU or the CPU.")
    ] = False,
    python: Annotated[list[str] | None, typer.Option(help=f"With --engines: {ENGINE_HELP}")] = None,
    trainer_python: Annotated[str | None, typer.Option(help=f"With --engines: {TRAINER_HELP}")] = None,
    model: Annotated[str | None, typer.Option(help="With --engines: another model, a path or a hub id.")] = None,
    cpu: Annotated[bool, typer.Option("--cpu", help="With --engines: CPU engines although there is a GPU.")] = False,
    run_dir: Annotated[Path, typer.Option(help="With --engines: where finished engines are kept.")] = Path(
        "runs/selftest"
    ),
) -> int:
    """Plant known causes blind, name them from the data alone, and print the confusion matrix."""
    wanted = [part.strip() for part in doses.split(",") if part.strip()]
    for dose in wanted:
        if dose not in DOSES:
            raise UsageError(f"no dose {dose!r}", f"there are: {', '.join(DOSES)}")
    progress = Progress()
    given = given_interpreters(python, trainer_python)
    if not engines and (given or model is not None or cpu):
        raise UsageError("--python, --trainer-python, --model and --cpu are about real engines", "Add --engines.")
    if engines and ids_only:
        raise UsageError("--ids-only plants in simulated models, --engines in real ones", "Give one of them.")
    if engines:
        under_test = engines_under_test(detect(cpu), given, model)
        found_in_engines = [
            *run_engine_plants(under_test, _names(causes), seed, run_dir, progress),
            *run_update_plants(under_test, _names(causes), seed, run_dir / "weight-updates", progress),
        ]
        return _shown(document_of_engines(found_in_engines, not_planted(under_test.releases)))
    planted = [Dose[dose.upper()] for dose in wanted]
    if ids_only:
        rows = sibling_labels(_names(causes), planted)
        with progress.step(f"{trials * len(rows)} blind trials"):
            told = run_sibling_trials(
                rows, trials, seed, jobs, lambda done, total: progress.update(f"{done} of {total} rounds done")
            )
        return _shown(document_of_siblings(told))
    labels = cells(_names(causes), planted)
    with progress.step(f"{trials * len(labels)} blind trials"):
        found = run_trials(
            generator, labels, trials, seed, jobs, lambda done, total: progress.update(f"{done} of {total} models done")
        )
    return _shown(document_of(confusion_of(generator, labels, found)))


def _shown(matrix: Matrix) -> int:
    print(printed(matrix), end="")
    return 0 if matrix.met else 1


def _names(causes: str) -> list[str]:
    return [part.strip() for part in causes.split(",") if part.strip()]


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(selftest)
    try:
        sys.exit(app(standalone_mode=False))
    except RlauditError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
