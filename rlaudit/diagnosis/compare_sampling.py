"""What tokens were sampled from, and what the trainer takes them to be: from the command line, a config or a sidecar.

The command line wins over --config, --config over a run's own report, that over `rollout.yaml` beside the table, and
that over what a format records itself. A value that none of them gives is taken to be neutral, and the report says so.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from rlaudit.errors import UsageError
from rlaudit.files.parse_json import parse_json
from rlaudit.files.remote_log import is_file, is_remote, opened_log
from rlaudit.files.yaml_file import read_yaml_file
from rlaudit.meaning.candidates import Semantics
from rlaudit.tokens.export import Part

SIDECAR = "rollout.yaml"
PARAMETERS = tuple(parameter.name for parameter in fields(Semantics))
TRAINER_KEYS = ("trainer_temperature", "trainer_replays_filters")


@dataclass(frozen=True)
class Meanings:
    """The two meanings."""

    sampling: Semantics
    trainer: Semantics
    # Whether the trainer applies the sampler's filters.
    replays: bool
    source: str
    # What was taken for unknown values, in sentences.
    assumed: tuple[str, ...]


def named_sampling(
    temperature: float | None,
    top_p: float | None,
    top_k: int | None,
    min_p: float | None,
    repetition_penalty: float | None,
    trainer_temperature: float | None,
    trainer_replays_filters: bool,
) -> dict[str, float | None]:
    """Return what a user says of rollouts and trainer, by the names of a sidecar; None if nothing was said."""
    return {
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "trainer_temperature": trainer_temperature,
        "trainer_replays_filters": trainer_replays_filters or None,
    }


def known_of(given: Mapping[str, Any], config: Path | None, table: Path, part: Part) -> tuple[dict[str, Any], str]:
    """Return what is known of the sampling, and the sources. given: by the command line."""
    layers: list[tuple[str, Mapping[str, Any]]] = [("the command line", given)]
    if config is not None:
        layers.append((str(config), of_config(config)))
    layers.append((f"the report of {table}", _of_run(table, part)))
    layers.append(_of_sidecar(table))
    layers.append((f"{table} itself", {name: value for name, value in part.sampling.items() if name in PARAMETERS}))
    values: dict[str, Any] = {}
    for _, layer in reversed(layers):
        values.update({name: value for name, value in layer.items() if value is not None})
    sources = ", ".join(name for name, layer in layers if any(value is not None for value in layer.values()))
    return values, sources or "none"


def meanings_of(values: Mapping[str, Any], source: str) -> Meanings:
    """Return what is known as the two meanings. Raises UsageError for what no sampler accepts."""
    plain: dict[str, Any] = {
        name: values[name] if name == "logit_bias" else _number(name, values[name])
        for name in PARAMETERS
        if name in values
    }
    if "top_k" in plain:
        # vLLM takes 0 and -1 for "no top-k"; a meaning has one way to say it.
        plain["top_k"] = max(0, int(plain["top_k"]))
    sampling = Semantics(**plain)
    replays = values.get("trainer_replays_filters") is True
    temperature = values.get("trainer_temperature", sampling.temperature)
    trainer = Semantics(_number("trainer_temperature", temperature))
    if replays:
        trainer = replace(trainer, top_k=sampling.top_k, top_p=sampling.top_p, min_p=sampling.min_p)
    assumed = []
    if "temperature" not in values:
        assumed.append(
            "the sampling temperature is not known, so 1 is assumed (else --temperature, --config or rollout.yaml)"
        )
    if "trainer_temperature" not in values and sampling.temperature != 1.0:
        assumed.append(
            "assumed: the trainer divides its logits by the sampling temperature (else give --trainer-temperature)"
        )
    return Meanings(sampling, trainer, replays, source, tuple(assumed))


def of_config(path: Path) -> dict[str, Any]:
    """Return the sampling parameters and trainer facts of the rollout config in a file."""
    from rlaudit.inspection.inspect import one_config
    from rlaudit.vllm.machine import machine_named

    config = one_config(path, machine_named("cpu")).audit.config
    values = {
        name: setting.value
        for name, setting in config.sampling.items()
        if name in PARAMETERS and setting.known and setting.value is not None
    }
    if config.facts.divides_by_temperature is False:
        values["trainer_temperature"] = 1.0
    if config.facts.replays_filters is True:
        values["trainer_replays_filters"] = True
    return values


def _of_sidecar(table: Path) -> tuple[str, Mapping[str, Any]]:
    path = (table if table.is_dir() else table.parent) / SIDECAR
    # Nothing lies beside a table in memory.
    if not (is_remote(table) or table.exists()) or not is_file(path):
        return str(path), {}
    values = read_yaml_file(path)
    keys = {*PARAMETERS, *TRAINER_KEYS}
    if not isinstance(values, dict) or not set(values) <= keys:
        unknown = ", ".join(sorted(set(values) - keys)) if isinstance(values, dict) else type(values).__name__
        raise UsageError(f"{path}: unknown keys {unknown}", f"there are: {', '.join(sorted(keys))}")
    return str(path), values


def _of_run(table: Path, part: Part) -> Mapping[str, Any]:
    """Return how an arm of a finished run was sampled, and what its trainer did."""
    folder = table if table.is_dir() else table.parent
    report, plan = folder / "report.json", folder / "plan.json"
    if not part.where or not is_file(report) or not is_file(plan):
        return {}
    try:
        arms = parse_json(_whole(report))["arms"]
        arm = next(arm for arm in arms if (arm["block"], arm["name"]) == (part.where["block"], part.where["arm"]))
        blocks = parse_json(_whole(plan))["recipe"]["blocks"]
        block = next(block for block in blocks if block["name"] == part.where["block"])
        values = {name: value for name, value in arm["sampling"].items() if name in PARAMETERS}
        if arm["trainer"]["temperature"] == "ignore":
            values["trainer_temperature"] = 1.0
        return {**values, "trainer_replays_filters": bool(block["trainer"]["replay_filters"])}
    except (OSError, ValueError, KeyError, StopIteration, TypeError):
        return {}


def _whole(path: Path) -> bytes:
    with opened_log(path) as file:
        return file.read()


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise UsageError(f"{name} is {value!r}, expected a finite number")
    return float(value)
