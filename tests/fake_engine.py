"""A fake engine: what a study finds where engines are built, and shipped scripts on the stand-in for vLLM.

The stand-in is laboratory/studies/updates/fake_vllm. Each of its logprobs says which version of the weights made it.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlaudit.engines.cells.executor import OneAtATime
from rlaudit.engines.cells.launch import Outcome, launch
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec
from rlaudit.engines.hardware.accelerator import detect
from rlaudit.engines.hardware.gpu_memory import GpuMemory
from rlaudit.engines.models.model import ModelOnDisk
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.run_folder import opened
from rlaudit.laboratory.run_setup import RunSetup
from rlaudit.laboratory.study_run import StudyRun
from rlaudit.text.progress import Progress

FAKES = Path(__file__).parent / "laboratory" / "studies" / "updates" / "fake_vllm"


def weights(folder: Path, version: int = 0) -> Path:
    """A checkpoint that the stand-in loads."""
    folder.mkdir(exist_ok=True)
    (folder / "weights.json").write_text(json.dumps({"version": version}))
    return folder


def launched(folder: Path, script: Path, job: Mapping[str, Any], ailment: str = "") -> Outcome:
    """Run a shipped script in a process of its own, in the folder's `cell`. ailment: of the stand-in."""
    cell = folder / "cell"
    cell.mkdir()
    (cell / "job.json").write_text(json.dumps({"script": str(script), **job}))
    variables = {"PYTHONPATH": str(FAKES), "VLLM_TARGET": "cpu", "FAKE_AILMENT": ailment}
    return launch(cell, (sys.executable,), variables, 600.0)


def carried_out(folder: Path, prompts: PromptSet, plan_of: Callable[..., Any], execute: Callable[..., Any]) -> Any:
    """Plan a study for this machine, and carry it out in `run` below the folder."""
    specs = [EnvironmentSpec("vllm", "0.18.1", "cpu"), EnvironmentSpec("trainer", "4.57.6", "cpu")]
    engine, trainer = (Environment(spec, folder, (sys.executable,)) for spec in specs)
    model = ModelOnDisk(str(weights(folder / "model")), None, "sha256:0", "a stand-in")
    around = RunSetup(detect(cpu=True), {"0.18.1": engine}, trainer, model, prompts, set_up_seconds=0.0)
    plan = plan_of(around.accelerator, prompts)
    here = OneAtATime(folder / "run" / "cells", GpuMemory(()))
    with opened(folder / "run") as kept:
        return execute(plan, StudyRun(plan, kept, around, here, Progress(quiet=True)))
