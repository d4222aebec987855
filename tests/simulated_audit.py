"""An audit made from plain data, resolved with the real catalogue: what rules are tested on.

The form is the one that rules' docstrings give their examples in, so that an example is a test:

    from: 0.8.5                      # version today; `to` alone audits without a migration
    to: 0.18.1
    engine: {enable_prefix_caching: false}        # EngineArgs names, as they arrive
    sampling: {temperature: 0.7}                  # SamplingParams names
    environment: {VLLM_USE_V1: "0"}
    trainer: {divides_by_temperature: true}       # names of TrainerFacts
    options: {weight_broadcast.type: nccl}        # the framework's own switches

and, where a rule needs them:

    framework: trl                   # the dialect's name
    offline: true                    # an in-process LLM, not a server
    model: Qwen/Qwen2.5-7B
    machine: {platform: cpu}         # fields of Machine
    set_by_framework: [logprobs_mode]             # these come from code, not from the file
    at_from: {engine: {...}, sampling: {...}, ...}        # laid over the above for the version today
    lost: [{name: ..., written: ..., loss: false dropped, reason: ...}]
    refused_pin: {where: "requirements.txt:3", because: pins TRL 0.16.0}
    lost_updates: [{line: 4, what: takes model_executor, sends: false, passed_over_at: 7}]
    version_guards: [{line: 4, text: raise NotImplementedError}]
    releases: ["0.18", "0.24"]                 # of the framework: the oldest, and the first that is none, or null
    pins: {trl: 1.5.0}                         # what the project pins, by package
    renders: 12                                # the line that takes token ids from a chat template
    engine: {max_model_len: {unknown: "$LEN is set nowhere in this file"}}     # a value that the file does not tell

A rule's docstring (all headings at the margin, their text indented by four spaces):

    A sentence that says what is wrong.

    What changed
        ...

    Why it matters
        ...

    Example
        Reported:

            from: 0.8.5
            to: 0.18.1
            sampling: {temperature: 0.7}

        Use instead:

            engine: {logprobs_mode: processed_logprobs}

    Safe to ignore when
        ...

    How to confirm
        ...

`Use instead` shows only what differs from `Reported`: it is laid over it, key by key; null takes a key away.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import yaml
from packaging.version import Version

from rlaudit.rules.audit.audit import Audit, audit_of
from rlaudit.rules.audit.finding import Finding, Fix
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.place import Edit, Place
from rlaudit.settings.rollout_config import (
    Copy,
    FrameworkRelease,
    FrameworkReleases,
    Loss,
    Lost,
    LostUpdate,
    Origin,
    RefusedPin,
    RolloutConfig,
    Setting,
    VersionGuard,
)
from rlaudit.unknown import Unknown
from rlaudit.vllm.machine import Machine

PATH = "rollout.yaml"
SECTIONS = ("engine", "sampling", "environment", "trainer", "options")
KEYS = {
    "from",
    "to",
    "framework",
    "offline",
    "needs_v1",
    "model",
    "machine",
    "set_by_framework",
    "at_from",
    "lost",
    "refused_pin",
    "lost_updates",
    "version_guards",
    "releases",
    "copy",
    "pins",
    "renders",
    *SECTIONS,
}


def simulated_audit(example: Mapping[str, Any] | str) -> Audit:
    """The audit of an example, given as data or as YAML text."""
    data = yaml.safe_load(example) if isinstance(example, str) else example
    strange = set(data) - KEYS
    assert not strange, f"an example has no key {sorted(strange)}; it has {sorted(KEYS)}"
    after = Version(str(data["to"]))
    before = Version(str(data.get("from", data["to"])))
    machine = Machine(**data.get("machine", {}))
    today = laid_over({key: data[key] for key in data if key != "at_from"}, data.get("at_from", {}))
    return audit_of(_config(today), _config(data), (before, after), machine)


def findings(rule: Rule, example: Mapping[str, Any] | str) -> list[Finding]:
    """What one rule says about an example."""
    return list(rule.check(simulated_audit(example)))


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` over `below`, section by section; null takes a key away."""
    merged = dict(below)
    for key, value in above.items():
        if value is None:
            merged.pop(key, None)
        elif key in (*SECTIONS, "machine") and isinstance(merged.get(key), Mapping):
            merged[key] = laid_over(merged[key], value)
        else:
            merged[key] = value
    return merged


def fixed(example: Mapping[str, Any], fix: Fix) -> dict[str, Any]:
    """The example after a fix: simulated configs are written as `{"name": ..., "value": ...}` edits."""
    wanted = [json.loads(edit.replacement) for edit in fix.edits]
    return laid_over(example, {"engine": {edit["name"]: edit["value"] for edit in wanted}})


def _lost_update(line: int, what: str, sends: bool = False, passed_over_at: int = 0) -> LostUpdate:
    return LostUpdate(what, Place(PATH, line, 1, what), sends, passed_over_at)


def _guard(line: int, text: str) -> VersionGuard:
    return VersionGuard(Place(PATH, line, 1, ""), text)


def _config(data: Mapping[str, Any]) -> RolloutConfig:
    by_framework = data.get("set_by_framework", ())
    config = RolloutConfig(
        framework=data.get("framework", "simulated"),
        path=PATH,
        lost=tuple(_lost(**lost) for lost in data.get("lost", ())),
        refused_pin=RefusedPin(**data["refused_pin"]) if data.get("refused_pin") else None,
        lost_updates=tuple(_lost_update(**line) for line in data.get("lost_updates", ())),
        version_guards=tuple(_guard(**line) for line in data.get("version_guards") or ()),
        releases=_releases(*data["releases"]) if "releases" in data else None,
        copy=Copy("fork/trl", Version(data["copy"]) if data["copy"] else None) if "copy" in data else None,
        release_of=lambda name: _pin(name, data.get("pins", {})),
        transformers=_pin("transformers", data.get("pins", {})),
        renders=Place(PATH, data["renders"], 1, "") if "renders" in data else None,
        offline=data.get("offline", False),
        needs_v1=data.get("needs_v1", False),
        place=Place(PATH, 1, 1, ""),
        write=_write,
        **{section: _settings(section, data.get(section, {}), by_framework) for section in SECTIONS},
    )
    facts = config.facts.given()
    wrong = [name for name, one in config.trainer.items() if one.known and isinstance(facts.get(name), Unknown)]
    assert not wrong, f"no trainer fact can be like this: {wrong}"
    model = data.get("model")
    return replace(config, model=_setting("model", model, Origin.FILE, "model")) if model else config


def _pin(name: str, pins: Mapping[str, str]) -> FrameworkRelease | None:
    return FrameworkRelease(Version(pins[name]), f"uv.lock:1 pins {pins[name]}") if name in pins else None


def _releases(oldest: str, newest: str | None) -> FrameworkReleases:
    return FrameworkReleases(Version(oldest), Version(newest) if newest else None, "so", "so")


def _settings(section: str, values: Mapping[str, Any], by_framework: Iterable[str]) -> dict[str, Setting]:
    return {
        name: _setting(name, value, Origin.FRAMEWORK if name in by_framework else Origin.FILE, f"{section}.{name}")
        for name, value in values.items()
    }


def _setting(name: str, value: Any, origin: Origin, key: str) -> Setting:
    if isinstance(value, Mapping) and set(value) == {"unknown"}:
        value = Unknown(value["unknown"])
    place = Place(PATH, 2, 1, key) if origin is Origin.FILE else None
    return Setting(name, value, value, origin, place, "" if place else "set by the framework's code")


def _lost(name: str, written: Any, loss: str, reason: str) -> Lost:
    return Lost(name, written, Place(PATH, 2, 1, name), Loss(loss), reason)


def _write(name: str, value: Any) -> tuple[Edit, ...]:
    return (Edit(PATH, 0, 0, json.dumps({"name": name, "value": value})),)
