"""What differs between two recorded trainings: releases, configuration, environment, sampling, updates of the weights.

Each value is what ran, beside what was written for it. Covered: what was recorded of both, and arguments that one
release lacks. Not covered: what is in neither recording, and names that are made anew in every run.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from rlaudit.configs.recorded_source import RecordedSource
from rlaudit.layers import Layer
from rlaudit.recording.redaction import HASHED
from rlaudit.rules.audit.audit import Audit, Side, as_json
from rlaudit.settings.rollout_config import NAMED_BY_EVERY_DIALECT
from rlaudit.settings.trainer_facts import OF_UPDATES
from rlaudit.unknown import Unknown
from rlaudit.vllm.moved import WHY
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING
from rlaudit.vllm.resolve import resolution_rules

Kind = Literal["release", "configuration", "environment", "sampling", "update"]
KINDS: tuple[Kind, ...] = ("release", "configuration", "environment", "sampling", "update")
# Packages that come first: what generates, what computes, what trains.
_FIRST = ("vllm", "torch", "transformers")
# Paths and ports, which are new in every run, and classes, which releases name differently.
_OF_A_RUN = frozenset({
    *NAMED_BY_EVERY_DIALECT,
    "worker_cls", "scheduler_cls", "sd_worker_cls", "data_parallel_rpc_port", "data_parallel_address",
    "data_parallel_master_port", "ignore_patterns", "download_dir",
})  # fmt: skip
_VARIABLES_OF_A_RUN = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "RLAUDIT_RECORD", "VLLM_DIST_IDENT")
# What changes the distribution that a token is drawn from.
_OF_THE_DISTRIBUTION = frozenset({
    *NEUTRAL_SAMPLING, "logit_bias", "allowed_token_ids", "bad_words", "min_tokens", "logits_processors",
})  # fmt: skip
_ORDER = (*Layer, None)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What two trainings do not have in common. old, new: what ran; old_written, new_written: what was requested.

    Values are JSON data; {"unknown": reason} if they are not known, {"absent": reason} if a release has no such thing.
    layer: the one that it matters for, if it is known to matter. why: in one clause, "" otherwise.
    """

    kind: Kind
    name: str
    layer: Layer | None
    old: Any
    new: Any
    old_written: Any
    new_written: Any
    why: str


def differences(old: RecordedSource, new: RecordedSource, audit: Audit) -> list[Difference]:
    """Return what differs, by kind, and in each kind by layer. audit: of an old engine beside a new one."""
    rows = [*_releases(old, new), *_configuration(audit), *_environment(audit), *_sampling(audit), *_updates(audit)]
    keys = {process.key for source in (old, new) for process in source.recording.processes}
    if len(keys) > 1:  # hashes under two keys differ for one text
        rows = [row for row in rows if not (_is_hashed(row.old) or _is_hashed(row.new))]
    return sorted(rows, key=lambda row: (KINDS.index(row.kind), _ORDER.index(row.layer)))


def _is_hashed(value: Any) -> bool:
    return HASHED in json.dumps(value)


def _difference(
    kind: Kind, name: str, old: tuple[Any, Any], new: tuple[Any, Any], layer: Layer | None = None, why: str = ""
) -> Difference:
    """Make a difference. old, new: what ran, and what was written."""
    return Difference(
        kind=kind, name=name, layer=layer, old=as_json(old[0]), new=as_json(new[0]),
        old_written=as_json(old[1]), new_written=as_json(new[1]), why=why,
    )  # fmt: skip


def _releases(old: RecordedSource, new: RecordedSource) -> Iterator[Difference]:
    before, after = (_packages(source) for source in (old, new))
    for name in dict.fromkeys([*_FIRST, *before, *after]):
        if before.get(name) != after.get(name):
            yield _difference("release", name, (before.get(name), None), (after.get(name), None))


def _packages(source: RecordedSource) -> dict[str, str]:
    """Return the releases of each package, over all processes."""
    versions_of: dict[str, dict[str, None]] = {}
    for process in source.recording.processes:
        for name, version in (*process.versions.items(), *([("python", process.python)] if process.python else [])):
            versions_of.setdefault(name, {})[version] = None
    return {name: " and ".join(releases) for name, releases in versions_of.items()}


def _configuration(audit: Audit) -> Iterator[Difference]:
    """Yield what differs in the arguments, and in what vLLM derives from them."""
    before, after = audit.before, audit.after
    names = dict.fromkeys([*WHY, *resolution_rules(), *before.config.engine, *after.config.engine])
    for name in names:
        if name in _OF_A_RUN or name.startswith("VLLM_"):
            continue
        matters = name in WHY or _written(before, name) is not None or _written(after, name) is not None
        if not matters and not (_knows(before, name) and _knows(after, name)):
            continue
        old, new = ((_ran(side, name), _written(side, name)) for side in (before, after))
        if as_json(old) != as_json(new) and not _both_nothing(old[0], new[0]):
            layer, why = WHY.get(name, (None, ""))
            yield _difference("configuration", name, old, new, layer, why)


def _knows(side: Side, name: str) -> bool:
    return side.exists(name) or name in resolution_rules()


def _ran(side: Side, name: str) -> Any:
    if not _knows(side, name):
        return {"absent": f"vLLM {side.version} has no {name}"}
    return side.value(name)


def _written(side: Side, name: str) -> Any:
    setting = side.config.engine.get(name)
    return None if setting is None else setting.written


def _both_nothing(old: Any, new: Any) -> bool:
    """Return whether neither sets anything: releases write that as null, false or empty, or lack the argument."""
    return all(_nothing(value) for value in (old, new))


def _nothing(value: Any) -> bool:
    return value is None or value is False or value in ({}, [], "") or (isinstance(value, dict) and "absent" in value)


def _environment(audit: Audit) -> Iterator[Difference]:
    before, after = audit.before.config.environment, audit.after.config.environment
    for name in dict.fromkeys([*before, *after]):
        old, new = (None if name not in side else side[name].value for side in (before, after))
        if old != new and name not in _VARIABLES_OF_A_RUN:
            layer, why = WHY.get(name, (None, ""))
            written = (None if name not in side else side[name].written for side in (before, after))
            yield _difference("environment", name, (old, next(written)), (new, next(written)), layer, why)


def _sampling(audit: Audit) -> Iterator[Difference]:
    before, after = audit.before.config.sampling, audit.after.config.sampling
    if not before or not after:
        return
    for name in dict.fromkeys([*before, *after]):
        old, new = audit.before.sampling(name), audit.after.sampling(name)
        if as_json(old) != as_json(new) and not _both_nothing(old, new):
            layer = Layer.SEMANTIC if name in _OF_THE_DISTRIBUTION else None
            why = "" if layer is None else "tokens are drawn from another distribution"
            yield _difference("sampling", name, (old, old), (new, new), layer, why)


def _updates(audit: Audit) -> Iterator[Difference]:
    before, after = audit.before.config, audit.after.config
    for name in sorted(OF_UPDATES):
        old, new = getattr(before.facts, name), getattr(after.facts, name)
        # What one of the recordings does not hold is no difference.
        if old != new and not isinstance(old, Unknown) and not isinstance(new, Unknown):
            why = "decides which weights, and which keys and values, a token is computed with"
            yield _difference("update", name, (old, None), (new, None), Layer.INFERENCE_PATH, why)
