"""The figures of one release from its report: the cells of the matrix of releases.

Each value that a loaded engine resolved stands beside what `inspect` predicts from the release's sources.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from releases.cells import figure_cell, word_cell
from rlaudit.engines.inside.expected_engine import resolution_of
from rlaudit.report.figures import TELLING, TITLES
from rlaudit.report.parts.ablation import Arm
from rlaudit.report.parts.releases import Cell
from rlaudit.statistics.measurement.prompt_logprobs import from_sampled, holds_temperature
from rlaudit.unknown import Unknown
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.resolve import Resolution, resolution_rules

if TYPE_CHECKING:
    from rlaudit.report.report import Report

# Names of a place, settings of the recipe, and properties of each arm.
NO_PROPERTY = frozenset({"vllm_version", "engine", "device", "default_sampling_params", "max_model_len", "seed"})
# Names in the loaded configuration that differ from the engine argument's.
ARGUMENTS = {"cache_dtype": "kv_cache_dtype"}
# Until 0.10.2 V1 adds this to the name of a backend that V0 has as well (vllm/platforms/interface.py, _Backend).
V1_BACKEND = "_VLLM_V1"
# Logprobs before temperature and filters are raw; only with penalties does an arm distinguish the two.
AS_SEEN = {"before temperature": "raw"}
# Releases that number their levels (CompilationLevel, vllm/config.py:3326 of 0.8.5), by the names of later ones.
COMPILATION_LEVELS = {0: "NONE", 1: "STOCK_TORCH_COMPILE", 2: "DYNAMO_TRACE_ONCE", 3: "VLLM_COMPILE"}


def cells_of(report: "Report", release: str, machine: Machine) -> tuple[dict[str, str], dict[str, Cell]]:
    """Return the titles and the cells of all properties of the release's arms, by property."""
    titles: dict[str, str] = {}
    cells: dict[str, Cell] = {}
    for arm in report["arms"]:
        if arm.status != "ok":
            continue
        expected = resolution_of(release, arm.engine_args, arm.variables, machine)
        for name, title, cell in (*_arm_cells(arm, expected), *_setting_cells(arm, expected)):
            titles.setdefault(name, title)
            cells.setdefault(name, cell)
    return titles, cells


def without_figures(report: "Report") -> list[str]:
    """Return the arms without figures, each with the reason."""
    return [
        f"block {arm.block!r}: the arm {arm.name!r} has no figures ({arm.error.message})"
        for arm in report["arms"]
        if arm.status != "ok" and arm.error is not None
    ]


def _arm_cells(arm: Arm, expected: Resolution) -> Iterator[tuple[str, str, Cell]]:
    place, title = f"{arm.block}/{arm.name}", f"{arm.block}, {arm.name}"
    level = (arm.observed or {}).get("logprobs-mode")
    if level is not None and level.level is not None:
        claimed = expected.setting("logprobs_semantics")
        yield (
            f"{place}/logprobs",
            f"{title}: logprobs",
            _cell_with_claim(level.level, AS_SEEN.get(str(claimed.value), claimed.value), claimed.note),
        )
    for metric in TELLING:
        if metric in arm.measurements:
            measured = arm.measurements[metric]
            cell = figure_cell(measured.value, measured.low, measured.high)
            yield f"{place}/{metric}", f"{title}: {TITLES[metric]}", cell
    if arm.role == "candidate":  # vLLM may choose another engine for another dtype
        yield (
            f"{place}/engine",
            f"{title}: engine",
            _cell_with_claim(arm.resolved.get("engine"), expected.value("engine"), expected.why_engine),
        )
    if arm.cached_tokens is not None and arm.role == "candidate":
        hits = arm.cached_tokens > 0
        yield f"{place}/cached", f"{title}: prompt tokens from the cache", _cell_with_claim(hits, None)
    yield from _probe_cells(place, title, arm, expected)


def _probe_cells(place: str, title: str, arm: Arm, expected: Resolution) -> Iterator[tuple[str, str, Cell]]:
    """Yield what a request alone has in common with one in a crowd, and prompt logprobs with those of sampling."""
    identical = (arm.batch_probe or {}).get("identical")
    if identical is not None:
        yield f"{place}/alone", f"{title}: alone as in a batch, bit for bit", _cell_with_claim(identical, None)
    probe = arm.prompt_probe or {}
    if "error" in probe:
        yield (
            f"{place}/prompt_logprobs",
            f"{title}: prompt logprobs hold the temperature",
            _cell_with_claim("failed", None),
        )
    if sequences := probe.get("sequences"):
        holds = holds_temperature(sequences, arm.sampling["temperature"])
        claimed = {"V0": True, "V1": False}.get(str(expected.value("engine")))
        yield (
            f"{place}/prompt_logprobs",
            f"{title}: prompt logprobs hold the temperature",
            _cell_with_claim(holds, claimed),
        )
        distance = from_sampled(sequences)
        cell = figure_cell(distance.value, *distance.percentiles())
        yield f"{place}/prompt_from_sampled", f"{title}: prompt logprobs from sampled ones by (nats)", cell


def _setting_cells(arm: Arm, expected: Resolution) -> Iterator[tuple[str, str, Cell]]:
    """Yield the loaded settings and features, each with what the release's sources say of it.

    A feature is what the worker runs: it counts where the configuration leaves the choice to the engine.
    """
    features: Mapping[str, Any] = (arm.loaded or {}).get("features", {})
    for name, configured in {**features, **arm.resolved}.items():
        value = features.get(name) if configured is None else configured
        if name in NO_PROPERTY or name in arm.engine_args or isinstance(value, list | dict):
            continue
        argument = ARGUMENTS.get(name, name)
        is_setting = name in arm.resolved and value is not None
        is_known = is_setting and (argument in resolution_rules() or argument in expected.catalogue.engine)
        level = COMPILATION_LEVELS.get(configured) if is_setting and name == "compilation_mode" else None
        if name == "attention_backend" and isinstance(value, str):
            value = value.removesuffix(V1_BACKEND)
        setting = expected.setting(argument) if is_known else None
        yield name, name, _cell_with_claim(level or value, setting and setting.value, setting.note if setting else "")


def _cell_with_claim(value: Any, claimed: Any, why: str = "") -> Cell:
    claim = None if claimed is None or isinstance(claimed, Unknown | Mapping) else _as_word(claimed)
    return word_cell(_as_word(value), claim, why or None)


def _as_word(value: Any) -> str:
    words = {None: "none", True: "yes", False: "no"} if value is None or isinstance(value, bool) else {}
    return words.get(value, str(value))
