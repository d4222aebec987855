"""`--score MODEL`: a model computes the trainer's logprobs. The same options in `compare` and `probe`."""

from typing import TYPE_CHECKING, Annotated

import typer

from rlaudit.engines.environments.given_interpreters import TRAINER_HELP, trainer_command
from rlaudit.errors import UsageError

if TYPE_CHECKING:
    from rlaudit.diagnosis.compare_scored import Scorer

SCORE_TOKENS = 20_000
Score = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL", help="A model (path or hub id) that scores some of the sequences as the trainer would."
    ),
]
ScoreDtype = Annotated[str, typer.Option(metavar="DTYPE", help="The trainer's dtype: bfloat16, float32 or float16.")]
TrainerPython = Annotated[str | None, typer.Option(metavar="COMMAND", help=TRAINER_HELP)]
ScoreOnCpu = Annotated[bool, typer.Option("--cpu", help="Score on the CPU although there is a GPU.")]


def scorer_of(model: str, dtype: str, trainer_python: str | None, cpu: bool) -> "Scorer":
    """Return the model with what it runs on. Raises UsageError for another dtype."""
    from rlaudit.diagnosis.compare_scored import Scorer
    from rlaudit.engines.hardware.accelerator import detect
    from rlaudit.files.cache_folder import cache_folder
    from rlaudit.laboratory.treatment import TrainerSettings

    if dtype not in {"bfloat16", "float32", "float16"}:
        raise UsageError(f"--score-dtype is {dtype}, expected bfloat16, float32 or float16")
    accelerator = detect(cpu)
    return Scorer(
        model,
        TrainerSettings(dtype=dtype),
        accelerator,
        cache_folder() / "scores",
        command=trainer_command(trainer_python),
    )
