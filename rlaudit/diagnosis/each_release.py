"""The figures of one release out of its own report: the cells of the matrix of releases."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rlaudit.report.figures import TITLES

if TYPE_CHECKING:
    from rlaudit.report.parts.ablation import Arm
    from rlaudit.report.parts.releases import Cell
    from rlaudit.report.report import Report

METRICS = ("mean_ratio_minus_one", "k3")
# What a loaded engine resolved is the same in each release's run, or names a place.
NO_PROPERTY = frozenset({"vllm_version", "model", "tokenizer", "default_sampling_params", "max_model_len", "seed"})


def cells_of(report: "Report") -> tuple[dict[str, str], dict[str, "Cell"]]:
    """Return the titles and the cells of all properties that the release's arms have, by the same names."""
    found = {name: (title, cell) for arm in report["arms"] for name, title, cell in _of_arm(arm)}
    loaded = next((arm for arm in report["arms"] if arm["status"] == "ok"), None)
    if loaded is not None:
        found |= {name: (name, _word(value)) for name, value in _resolved(loaded["resolved"])}
    return {name: title for name, (title, _) in found.items()}, {name: cell for name, (_, cell) in found.items()}


def without_figures(report: "Report") -> list[str]:
    """Return the arms that have no figures, with the reason."""
    return [
        f"{arm['block']}, {arm['name']}: {arm['error']['message']}"
        for arm in report["arms"]
        if arm["status"] != "ok" and arm["error"] is not None
    ]


def _of_arm(arm: "Arm") -> Iterator[tuple[str, str, "Cell"]]:
    place, title = f"{arm['block']}/{arm['name']}", f"{arm['block']}, {arm['name']}"
    if arm["status"] != "ok":
        return
    level = arm.get("observed", {}).get("logprobs-mode")
    if level is not None and level["level"] is not None:
        yield f"{place}/logprobs", f"{title}: logprobs", _word(level["level"])
    for metric in METRICS:
        if metric in arm["measurements"]:
            figure = arm["measurements"][metric]
            cell: Cell = {"value": figure["value"], "low": figure["low"], "high": figure["high"], "word": None}
            yield f"{place}/{metric}", f"{title}: {TITLES[metric]}", cell
    if "cached_tokens" in arm and arm["role"] == "candidate":
        yield f"{place}/cached", f"{title}: prompt tokens from the cache", _word(arm["cached_tokens"] > 0)


def _resolved(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if name not in NO_PROPERTY and (value is None or isinstance(value, str | int | float | bool)):
            yield name, value


def _word(value: Any) -> "Cell":
    words = {None: "none", True: "yes", False: "no"} if value is None or isinstance(value, bool) else {}
    return {"value": None, "low": None, "high": None, "word": words.get(value, str(value))}
