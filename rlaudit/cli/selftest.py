"""`rlaudit selftest`: does the attribution find what was planted, and keep quiet where nothing was?"""

import os
from pathlib import Path
from typing import Annotated

import typer

from rlaudit.errors import UsageError

DOSES = ("low", "middle", "top")


def selftest(
    trials: Annotated[int, typer.Option(min=1, help="Blind trials for each cell.")] = 20,
    causes: Annotated[str, typer.Option(help="Comma-separated; default: all, with clean and two at a time.")] = "",
    doses: Annotated[str, typer.Option(help="Comma-separated, of low, middle, top.")] = ",".join(DOSES),
    seed: Annotated[int, typer.Option(min=0, help="Other seeds give other models, rollouts and tokens.")] = 0,
    generator: Annotated[str, typer.Option(help="held-out (never used for tuning) or development.")] = "held-out",
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    engines: Annotated[bool, typer.Option("--engines", help="Plant in real CPU engines instead.")] = False,
    run_dir: Annotated[Path, typer.Option(help="With --engines: where finished engines are kept.")] = Path(
        "runs/selftest"
    ),
) -> int:
    """Plant known causes blind, name them from the data alone, and print the confusion matrix."""
    # Statistics take a second to import, which no other command should wait for.
    from rlaudit.progress import Progress
    from rlaudit.selftest.cells import cells
    from rlaudit.selftest.confusion import confusion_of
    from rlaudit.selftest.plant import Dose
    from rlaudit.selftest.run import run_trials
    from rlaudit.selftest.table import text_of

    wanted = [part.strip() for part in doses.split(",") if part.strip()]
    for dose in wanted:
        if dose not in DOSES:
            raise UsageError(f"no dose {dose!r}", f"there are: {', '.join(DOSES)}")
    progress = Progress()
    if engines:
        from rlaudit.selftest.engines.run_engine_plants import run_engine_plants, text_of_engines

        trials_found = run_engine_plants(_names(causes), seed, run_dir, progress)
        typer.echo(text_of_engines(trials_found), nl=False)
        return 0 if all(trial.right for trial in trials_found) else 1
    labels = cells(_names(causes), [Dose[dose.upper()] for dose in wanted])
    with progress.step(f"{trials * len(labels)} blind trials"):
        found = run_trials(
            generator, labels, trials, seed, jobs, lambda done, total: progress.update(f"{done} of {total} models done")
        )
    confusion = confusion_of(generator, labels, found)
    typer.echo(text_of(confusion), nl=False)
    return 0 if confusion.met else 1


def _names(causes: str) -> list[str]:
    return [part.strip() for part in causes.split(",") if part.strip()]
