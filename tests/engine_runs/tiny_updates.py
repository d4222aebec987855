"""Weights of a tiny random model updated in a real CPU engine: no recipe, no trainer, one engine start."""

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from tiny_checkpoint import write_two_versions

from rlaudit.engines.cells.launch import Outcome, launch, shipped
from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec
from rlaudit.engines.inside.doctor import arguments_on, machine_for
from rlaudit.engines.inside.engine import ENGINE

PROMPTS = [[1, *(7 * prompt + place for place in range(5, 25))] for prompt in range(8)]
REQUESTS = [{"prompt": prompt, "sample": 0, "seed": prompt} for prompt in range(8)]
# Of each run; an update meets a flight after a third of it.
LENGTHS = {"cold": 1, "before": 8, "flight": 48, "after": 8, "cold after": 8, "warm after": 8}


@lru_cache(maxsize=4)
def built(version: str) -> Environment:
    """The release's environment."""
    return ensure(EnvironmentSpec("vllm", version, "cpu"), report=print)


def updated(version: str, folder: Path, cases: Sequence[dict[str, Any]], *, without: str = "", **job: Any) -> Outcome:
    """What the update script made of these cases. without: tensors that the next version leaves out."""
    environment = built(version)
    versions = write_two_versions(folder, without)
    arguments = {
        **arguments_on(machine_for(environment), version),
        "enforce_eager": True,
        "skip_tokenizer_init": True,
        "max_model_len": 128,
        "enable_prefix_caching": False,
    }
    document = {
        "model": versions["0"],
        "engine_args": arguments,
        "path": "reload_from_iterator",
        "checkpoints": versions,
        "prompt_token_ids": PROMPTS,
        "sampling": {"temperature": 1.0, "ignore_eos": True},
        "runs": {run: {"requests": REQUESTS, "max_tokens": length} for run, length in LENGTHS.items()},
        "drain_seconds": 600.0,
        "cases": list(cases),
        **job,
    }
    cell = folder / "updates"
    cell.mkdir()
    (cell / "job.json").write_text(json.dumps({"script": shipped(ENGINE.update), **document}))
    variables = {"VLLM_CPU_KVCACHE_SPACE": "1", **environment.variables}
    outcome = launch(cell, environment.command, variables, 600.0)
    assert outcome.status == "ok", outcome.failure
    return outcome


def idle(name: str) -> dict[str, Any]:
    """An update after the last request has ended, what the engine then holds, and what it then samples."""
    return _case(name, "wait", True)


def in_flight(name: str) -> dict[str, Any]:
    """The same in the middle of requests, as PipelineRL pauses for it."""
    return _case(name, "keep", False)


def _case(name: str, mode: str, clear: bool) -> dict[str, Any]:
    case = {"name": name, "mode": mode, "clear_cache": clear}
    return {**case, "salted": False, "adapters": None, "read_back": True}


def held(outcome: Outcome, case: str) -> dict[str, str | None]:
    """Tensor to version, of those that could be compared."""
    (told,) = [one for one in outcome.result["read_backs"] if one["case"] == case]
    assert told["believed"] == "1"
    tensors: dict[str, str | None] = told["tensors"]
    return tensors


def samples(folder: Path, case: str, name: str) -> list[dict[str, Any]]:
    """The requests of a run."""
    rows = [json.loads(line) for line in (folder / "updates" / "samples.jsonl").read_text().splitlines()]
    return [row for row in rows if (row["case"], row["run"]) == (case, name)]


def went_on(folder: Path, case: str) -> list[bool]:
    """Return of each request in flight whether it has all its tokens, under the old weights first and then the new."""
    rows = samples(folder, case, "flight")
    assert len(rows) == len(REQUESTS)
    return [len(row["token_ids"]) == 48 and (row["versions"][0], row["versions"][-1]) == ("0", "1") for row in rows]
