"""From a tree of keys and a dialect to a rollout config."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialects.clause import Clause, clauses, node_of
from rlaudit.configs.dialects.elsewhere import lose_elsewhere, with_elsewhere
from rlaudit.configs.dialects.falses import drop_falses
from rlaudit.configs.dialects.framework_code import take_own_files
from rlaudit.configs.dialects.listing import list_rest
from rlaudit.configs.dialects.passing_on import command_variables, pass_on
from rlaudit.configs.dialects.reading import Reading
from rlaudit.configs.dialects.settling import lose, put, take_span
from rlaudit.configs.dialects.spec import Spec
from rlaudit.configs.dialects.tree import Tree
from rlaudit.configs.dialects.writing import writer_of
from rlaudit.configs.draft import Draft, known, unwritten
from rlaudit.configs.elsewhere import Elsewhere, as_written, left_open
from rlaudit.configs.framework_source.version_guards import version_guards
from rlaudit.configs.merging import MANDATORY
from rlaudit.configs.source import Source
from rlaudit.settings.rollout_config import Loss, RolloutConfig, Setting
from rlaudit.settings.trainer_facts import OF_UPDATES
from rlaudit.unknown import Unknown
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING

# A fork's backend on top of vLLM begins with it, too: `vllm_http`.
_VLLM = "vllm"
# Facts that the worker decides, and not the trainer.
_OF_THE_WORKER = {*OF_UPDATES, "seeds_replicas", "rollout_head_dtype", "shares_weights"}
_SECTIONS = ("engine", "sampling", "environment", "trainer")


def configs_of(spec: Spec, trees: Iterable[Tree], source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return every rollout of a file."""
    configs = (config_of(spec, tree, source, vllm) for tree in trees)
    return tuple(config for config in configs if config is not None)


def config_of(spec: Spec, tree: Tree, source: Source, vllm: Version) -> RolloutConfig | None:
    """Return the rollout that a tree sets up; None if it is not vLLM's."""
    reading = Reading(spec, tree, source, vllm)
    backend = _backend(reading)
    if backend is not None and backend != MANDATORY and not str(backend).startswith(_VLLM):
        return None
    draft, dialect = _filled(reading), spec.declared
    section = reading.node(dialect["shown at"]) if "shown at" in dialect else reading.layout.written(tree.own)
    section = section or tree.own
    place = tree.command.place if tree.command is not None else (section.key or section.place)
    draft.bare = reading.holds(dialect.get("bare", False)) is True
    config = draft.done(
        model=reading.node(dialect["model"]) if "model" in dialect else None,
        offline=reading.holds(dialect.get("offline", False)) is True,
        place=place,
        write=writer_of(reading),
    )
    config = with_elsewhere(config, reading)
    for clause in clauses(dialect.get("engine", {}).get("*", [])):
        config = left_open(config, node_of(clause, reading), clause["key"].lstrip("@"))
    if tree.open and tree.python_call is not None:
        name = tree.python_call.name
        config = replace(config, engine=as_written(config.engine, name), sampling=as_written(config.sampling, name))
    if reading.trainer:
        config = _of_another(config, reading.trainer, set(config.trainer))
        return replace(config, engine=Elsewhere(f"{reading.trainer} decides it"))
    own = {None, MANDATORY, dialect.get("backend", {}).get("default")}
    # `vllm:d4p1t2` names sizes.
    if backend in own or not str(backend).removeprefix(_VLLM)[:1].isidentifier():
        return config
    return _of_another(config, f"{backend}, a backend that is not {spec.title}'s own", _OF_THE_WORKER)


def _of_another(config: RolloutConfig, name: str, facts: Collection[str]) -> RolloutConfig:
    """Return a config with what is written alone: the framework's code decides nothing of another's.

    facts: what the other decides about the training.
    """
    reason = f"{name} decides it"
    not_seen = f"this file does not show what else {name}, passes to vLLM; `rlaudit record` shows it"
    return replace(
        config,
        engine=as_written(config.engine, name),
        sampling=as_written(config.sampling, name),
        environment=_written(config.environment),
        trainer={
            key: replace(fact, value=Unknown(reason), note=reason) if key in facts and fact.place is None else fact
            for key, fact in config.trainer.items()
        },
        options=_written(config.options),
        lost=tuple(lost for lost in config.lost if lost.loss is Loss.REFUSED),
        decided={},
        not_seen=(*config.not_seen, not_seen),
        write=unwritten,
    )


def _written(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    return {name: setting for name, setting in settings.items() if setting.place is not None}


def _backend(reading: Reading) -> Any:
    """Return the backend that the config chooses, by default vLLM; None if the dialect has no such key."""
    backend: Mapping[str, Any] | None = reading.spec.declared.get("backend")
    return known(reading.node(backend["key"]), backend.get("default", _VLLM)) if backend is not None else None


def _filled(reading: Reading) -> Draft:
    """Fill the draft with everything that the dialect says."""
    dialect, draft = reading.spec.declared, reading.draft
    take_span(reading)
    draft.version_guards = version_guards(reading.source, reading.code.checkout, reading.vllm, reading.spec.markers)
    for kind in [name for name in dialect if name in _SECTIONS]:
        losses = len(draft.lost)
        for name, entry in dialect[kind].items():
            if name == "*":
                pass_on(reading, kind, entry)
            elif (kind, name) == ("trainer", "replicas"):
                _replicas(reading, entry)
            else:
                put(reading, kind, name, entry)
        lose_elsewhere(reading, kind, losses)
        if kind == "sampling":
            _neutral_sampling(reading)
    if "environment" not in dialect:
        command_variables(reading, wins=True)
    drop_falses(reading)
    for entry in dialect.get("lost", ()):
        lose(reading, entry)
    list_rest(reading)
    for name, entry in dialect.get("objective", {}).items():
        put(reading, "options", name, entry)
    for hook in dialect.get("hooks", ()):
        reading.spec.hook(hook)(reading)
    if reading.code.checkout is not None:
        take_own_files(draft, reading.code.checkout)
    return draft


def _neutral_sampling(reading: Reading) -> None:
    """Take SamplingParams' own values for parameters that the framework's code never sets.

    Right only for requests made in code: over HTTP, generation_config.json fills them in.
    """
    neutral = reading.spec.declared.get("neutral sampling")
    if neutral is not None and reading.holds(neutral.get("if")) is True:
        doubt = reading.code.doubt(neutral, neutral.get("at", {}), is_written=False)
        for name, value in {**NEUTRAL_SAMPLING, "top_k": -1}.items():
            reading.draft.sampling.unless_set(name, Unknown(doubt) if doubt else value, doubt or neutral["because"])


def _replicas(reading: Reading, entry: Clause | list[Clause]) -> None:
    """Count the engines that run side by side: as written, or devices divided by the ranks of one engine."""
    for clause in clauses(entry):
        if "devices" not in clause:
            put(reading, "trainer", "replicas", clause)
            if "replicas" in reading.draft.trainer:
                return
        elif reading.holds(clause.get("if")) is True:
            devices = [reading.value(factor) if isinstance(factor, str) else factor for factor in clause["devices"]]
            ranks = [size for factor in clause["ranks"] if (size := reading.value(factor)) is not None]
            product = devices[0] if len(devices) == 1 else _product(devices)
            reading.draft.count_replicas(product, ranks, clause["because"], clause["missing"])
            return


def _product(sizes: list[Any]) -> Any:
    are_counts = all(isinstance(size, int) and not isinstance(size, bool) for size in sizes)
    return prod(sizes) if are_counts else None
