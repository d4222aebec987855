"""From the weight updates of a recording to the experiment that repeats their protocol on both releases.

It repeats the mode of the pause, whether the prefix cache was cleared before the next token, and what loaded the
weights, with requests in flight and with perturbed weights of the same shapes. The next release is also tried with the
cache cleared, so that the report shows what clearing it would change.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.errors import UsageError
from rlaudit.laboratory.recipe import Experiment
from rlaudit.laboratory.weight_path import WeightPath
from rlaudit.recording.recording import Recording
from rlaudit.recording.weight_updates import Update
from rlaudit.rules.audit.audit import Audit, Side
from rlaudit.settings.trainer_facts import PauseMode
from rlaudit.vllm.resolution.engine import has_v0

# What AsyncLLM.pause_generation does if it is given no mode (0.18.1 vllm/v1/engine/async_llm.py:726).
UNNAMED_MODE = PauseMode.ABORT
# The effect of an update does not depend on these numbers, but stale keys are detected only from 32 sequences on.
PROMPTS, SAMPLES = 16, 4


@dataclass(frozen=True)
class Protocol:
    """How weights were updated."""

    mode: PauseMode
    # Whether the prefix cache was cleared before the next token.
    cleared: bool
    path: WeightPath | None


def updates_from(audit: Audit, recording: Recording, device: str, model: str | None) -> Experiment:
    """Make the experiment, on cuda or cpu. Raises UsageError for one release, or a recording without an update."""
    if not audit.migrates:
        raise UsageError(f"{audit.config.path} is looked at under vLLM {audit.after.version} only", "give --to")
    updates = [update for served in recording.served for update in served.updates[served.first_sampled :]]
    if not updates:
        raise UsageError(f"{recording.path} holds no update of weights that were sampled from", "leave out --updates")
    counted = Counter(_protocol(update) for update in updates)
    protocol, count = counted.most_common(1)[0]
    changed = [f"updates: {count} of {len(updates)} recorded ones were like this: {_in_words(protocol)}"]
    changed += [
        f"updates: not repeated, {times} times: {_in_words(other)}" for other, times in counted.most_common()[1:]
    ]
    if not any(update.in_flight for update in updates):
        changed.append("updates: the recorded ones met no request in flight; here requests are in flight")
    mode = protocol.mode
    if mode is PauseMode.NONE and protocol.cleared:
        mode = PauseMode.KEEP
        changed.append("updates: there was no pause; one with mode=keep is made, in which the cache is cleared")
    path = protocol.path
    if device == "cpu" and path == "load_weights":
        path = None
        changed.append("updates: CPU builds of V1 compute with packed copies of the weights; they are given as tensors")
    changed.append("updates: weights are the model's own, perturbed; both sides compute in float32")
    document = {
        "schema": "rlaudit-recipe/1",
        "description": f"What do the weight updates of {audit.config.path} become from vLLM {audit.before.version} to "
        f"{audit.after.version}?",
        **({} if model is None else {"model": model}),
        "prompts": audit.config.path,
        "prompts_used": PROMPTS,
        "dtype": "float32",
        "weight_updates": {
            "samples": SAMPLES,
            "engines": [
                _engine(audit.before, path, mode, [protocol.cleared]),
                _engine(audit.after, path, mode, sorted({protocol.cleared, True})),
            ],
        },
    }
    return Experiment(document, tuple(changed))


def _protocol(update: Update) -> Protocol:
    mode = "none" if update.pause is None else update.pause or UNNAMED_MODE
    return Protocol(
        mode=PauseMode(mode) if mode in tuple(PauseMode) else UNNAMED_MODE,
        cleared=update.reset or update.clear_cache is True,
        path=_path(update.how),
    )


def _path(how: Sequence[str]) -> WeightPath | None:
    """Return what loaded the weights; None, a release's usual path, for a method of the framework's worker."""
    methods = {method.rpartition(".")[2] for method in how}
    if "reload_weights" in methods:
        return "reload_weights"
    return "load_weights" if "load_weights" in methods else None


def _engine(side: Side, path: WeightPath | None, mode: PauseMode, cleared: Sequence[bool]) -> dict[str, object]:
    generation = {"engine": side.value("engine")} if has_v0(side.version) else {}
    caching = side.value("enable_prefix_caching") is True
    return {
        "version": str(side.version),
        **generation,
        **({} if path is None else {"path": path}),
        "modes": [mode.value],
        "clear_cache": list(cleared),
        "prefix_caching": ["on" if caching else "off"],
    }


def _in_words(protocol: Protocol) -> str:
    cleared = "cleared" if protocol.cleared else "not cleared"
    return f"pause {protocol.mode}, prefix cache {cleared}, loaded by {protocol.path or 'another method'}"
