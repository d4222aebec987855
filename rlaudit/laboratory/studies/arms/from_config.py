"""From a rollout config to its experiment: the user's settings are the candidate, those before the migration the
reference, and the factors are those that the findings suspect and the five usual ones.

Settings that this machine cannot hold (more GPUs than it has, a model that is not here) are changed, and every change
is announced before anything starts. Nothing else is changed: an ablation of other settings would answer another
question.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rlaudit.audit.audit import Audit, Side
from rlaudit.audit.finding import Finding
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.vllm.engine import ENGINE
from rlaudit.errors import NotFinished, UsageError
from rlaudit.laboratory.factor import Factor, Move
from rlaudit.laboratory.machine_limits import STEP_ON_CPU, Limits, fit_engine_args
from rlaudit.laboratory.recipe import Experiment
from rlaudit.laboratory.recorded_requests import RecordedRequests, described
from rlaudit.laboratory.studies.arms.plan import known_factors
from rlaudit.laboratory.studies.arms.recipe import Sampling
from rlaudit.laboratory.studies.arms.recorded_arguments import Taken, loads_code, taken_over
from rlaudit.settings.rollout_config import Origin
from rlaudit.settings.trainer_facts import Dtype
from rlaudit.vllm.resolution.engine import VARIABLE, has_v0

USUAL_FACTORS = ("logprobs-mode", "prefix-caching", "async-scheduling", "batch-invariance", "fp32-head")
DEFAULT_TEMPERATURE = 1.0
# Each is an engine start from the candidate, and one from parity if it moves something back.
MOST_FACTORS = 8
# Intervals are over prompts: completions are cut shorter before fewer prompts are used.
FEWEST_PROMPTS = 16
# Prompt tokens that cost as much as one of a completion: with 135 M weights in float32 on two cores 3,000 a second were
# prefilled and 60 to 100 decoded (2026-11-25).
PREFILLED_AT_ONCE = 32
# The recipe names the model, and prompts are token ids.
OF_THE_RECIPE = ("model", "tokenizer")


def experiment_from(
    audit: Audit,
    findings: Sequence[Finding],
    accelerator: Accelerator,
    model: str | None,
    recorded: RecordedRequests | None = None,
    repeated: Collection[str] = (),
) -> Experiment:
    """Return the experiment for a config, or for a recording with its requests.

    repeated: arguments of a recording that are taken over because the command line names them. Raises UsageError if
    both releases are the same.
    """
    if not audit.migrates:
        raise UsageError(
            f"{audit.config.path} is looked at under vLLM {audit.after.version} only",
            "give both releases: --from 0.8.5 --to 0.18.1",
        )
    changed: list[str] = []
    setting = audit.config.model
    chosen = model or (setting.value if setting is not None and isinstance(setting.value, str) else None)
    if model is None and chosen is not None:
        changed.append(f"model: {chosen}, as the config says (another one with --model)")
    if chosen is None:
        changed.append("model: the config does not tell it, so the default small model runs (another one with --model)")
    limits = Limits.of(accelerator)
    requests = _requests(audit, recorded, limits, changed)
    if recorded is not None:
        limits = _with_room(
            recorded.first(requests["prompts_used"], requests["max_tokens"]), limits, requests["max_tokens"]
        )
    trainer = _trainer(audit, recorded, changed)
    suspects = _factors(audit, findings, _without_effect(audit, limits, trainer), changed)
    take_over = (lambda values: Taken(values, ())) if recorded is None else partial(taken_over, repeated=repeated)
    points = [_point(side, limits, changed, take_over) for side in (audit.before, audit.after)]
    left_out = list(dict.fromkeys(sentence for point in points for sentence in point.left_out))
    if recorded is not None and recorded.adapted:
        left_out.append(
            f"adapter: {recorded.adapted} of {recorded.of_sequences} recorded completions were sampled with LoRA, "
            "which no arm has (merge it into the checkpoint: --model)"
        )
    changed += left_out
    parity = [name for name, move in suspects.items() if move.to_reference]
    document: dict[str, Any] = {
        "schema": "rlaudit-recipe/1",
        "description": f"Does {audit.config.path} keep its logprobs from vLLM {audit.before.version} to "
        f"{audit.after.version}?",
        **({"model": chosen} if chosen is not None else {}),
        **requests,
        "sampling": _sampling(audit, changed),
        "trainer": trainer,
        **({"left_out": left_out} if left_out else {}),
        "blocks": [
            {
                "name": "config",
                "reference": points[0].document,
                "candidate": points[1].document,
                "factors": {name: move.level for name, move in suspects.items()},
                "parity": parity,
                "leave_one_out": len(parity) > 1,
                "repeats": 1,
            }
        ],
    }
    return Experiment(document, tuple(dict.fromkeys(changed)))


def _requests(audit: Audit, recorded: RecordedRequests | None, limits: Limits, changed: list[str]) -> dict[str, Any]:
    """Return the number and length of completions: for a recording, as many whole prompts as this machine can run."""
    if recorded is None:
        return {"samples": 2, "rounds": 2, "max_tokens": limits.max_tokens}
    shortest = max(limits.max_tokens, limits.replayed_tokens // (recorded.samples * FEWEST_PROMPTS))
    longest = min(recorded.longest, shortest)
    cost_P = np.cumsum([recorded.samples * (longest + len(ids) // PREFILLED_AT_ONCE) for ids in recorded.prompts])
    prompts = max(1, int(np.searchsorted(cost_P, limits.replayed_tokens, side="right")))
    if longest < recorded.longest:
        changed.append(f"requests: the first {longest} tokens of completions of up to {recorded.longest}")
    changed.append(f"requests: {described(recorded.first(prompts, longest), recorded.samples)}")
    return {
        "prompts": audit.config.path,
        "prompts_used": prompts,
        "samples": recorded.samples,
        "rounds": 1,
        "max_tokens": longest,
    }


def _with_room(requests: RecordedRequests, limits: Limits, tokens: int) -> Limits:
    """Return limits with room for the longest prompt and its completion. Raises NotFinished if a CPU has none."""
    longest = max(map(len, requests.prompts)) + tokens
    if limits.cpu and longest > STEP_ON_CPU:
        raise NotFinished(
            f"a recorded prompt has {longest - tokens} tokens, and an engine on this CPU takes {STEP_ON_CPU} with the "
            "completion",
            "replay it on a GPU, or record a run with shorter prompts",
        )
    return replace(limits, context=max(limits.context, longest))


def _without_effect(audit: Audit, limits: Limits, trainer: Mapping[str, Any]) -> set[str]:
    """Return the factors without effect here: a CPU engine is always eager and synchronous, a float32 model's head
    already float32.
    """
    in_float32 = audit.after.value("dtype") == trainer["dtype"] == Dtype.FLOAT32
    return {*(("enforce-eager", "async-scheduling") if limits.cpu else ()), *(("fp32-head",) if in_float32 else ())}


def _factors(
    audit: Audit, findings: Sequence[Finding], without: Collection[str], changed: list[str]
) -> dict[str, Move]:
    """Return the level to try of each factor: those that the gravest findings suspect, then the usual ones."""
    factors = {name: factor for name, factor in known_factors().items() if name not in without}
    gravest = sorted(findings, key=lambda finding: -finding.severity.rank)
    suspected = [factor.name for finding in gravest for factor in factors.values() if _would_confirm(factor, finding)]
    names = [name for name in (*suspected, *USUAL_FACTORS) if name in factors]
    moves = {name: factors[name].move(audit, factors[name].setting) for name in names}
    tried = [(name, move) for name, move in moves.items() if move is not None]
    changed += [f"factor {name}: not tried, there are {MOST_FACTORS} likelier ones" for name, _ in tried[MOST_FACTORS:]]
    return dict(tried[:MOST_FACTORS])


def _would_confirm(factor: Factor, finding: Finding) -> bool:
    """Return whether the finding is about the factor's setting, or names the factor as the way to confirm it."""
    return factor.setting == finding.setting or re.search(rf"factor {factor.name}\b(?!-)", finding.confirm) is not None


@dataclass(frozen=True)
class _Point:
    """A point of a block as plain data."""

    document: Mapping[str, Any]
    # Sentences about settings of a recording that are not taken over.
    left_out: tuple[str, ...]


def _point(side: Side, limits: Limits, changed: list[str], take_over: Callable[[Mapping[str, Any]], Taken]) -> _Point:
    """Return a release with the arguments of the config that are taken over."""
    written = {}
    for name, setting in side.config.engine.items():
        if setting.value is None or setting.origin is Origin.ENGINE or name in OF_THE_RECIPE:
            continue
        if not setting.known:
            changed.append(f"{name}: {setting.value.reason}; vLLM's default runs")
        elif not side.exists(name):
            changed.append(f"{name}={setting.value}: vLLM {side.version} has no such argument; left out there")
        else:
            written[name] = setting.value
    arguments = take_over(written)
    engine_args, changes = fit_engine_args(arguments.values, limits, side.version)
    changed += changes
    environment = take_over(
        {
            name: str(setting.value)
            for name, setting in side.config.environment.items()
            if setting.known and setting.value is not None and (name.startswith("VLLM_") or loads_code(name))
        }
    )
    variables = dict(environment.values)
    if variables.pop(ENGINE.bound_by, None) is not None:
        # 0.32.0 does not know every word that older releases did ("all").
        changed.append(f"{ENGINE.bound_by}: left out; of the cores of the machine that it was written for")
    point: dict[str, Any] = {"version": str(side.version), "engine_args": engine_args}
    if has_v0(side.version) and VARIABLE in variables:
        del variables[VARIABLE]
        point["engine"] = side.value("engine")
    if side.config.facts.rollout_head_dtype is Dtype.FLOAT32:
        point["levels"] = {"fp32-head": "rollout"}
    if variables:
        point["environment_variables"] = variables
    return _Point(point, (*arguments.left_out, *environment.left_out))


def _sampling(audit: Audit, changed: list[str]) -> dict[str, Any]:
    sampling = {}
    for name in Sampling.model_fields:
        if name == "n":  # that many completions are the recipe's `samples`, one request each
            continue
        setting = audit.config.sampling.get(name)
        if setting is None or setting.value is None:
            continue
        if setting.known:
            sampling[name] = setting.value
        else:
            changed.append(f"{name}: {setting.value.reason}; off here")
    if "temperature" not in sampling:
        changed.append(f"temperature: the config does not tell it; {DEFAULT_TEMPERATURE:g} is used")
        sampling["temperature"] = DEFAULT_TEMPERATURE
    if sampling["temperature"] == 0:
        raise UsageError(
            "the config samples greedily (temperature 0): a greedy choice has no distribution to compare logprobs with"
        )
    return sampling


def _trainer(audit: Audit, recorded: RecordedRequests | None, changed: list[str]) -> dict[str, Any]:
    facts = audit.config.facts
    if not isinstance(facts.divides_by_temperature, bool):
        changed.append(
            "trainer: taken to divide its logits by the sampling temperature, which the config does not tell"
        )
    recorded_dtype = None if recorded is None else recorded.trainer_dtype
    trainer = {
        "dtype": str(Dtype.named(recorded_dtype or facts.dtype) or Dtype.BFLOAT16),
        "temperature": "ignore" if facts.divides_by_temperature is False else "divide",
        "replay_filters": facts.replays_filters is True,
    }
    head = facts.head_dtype
    return {**trainer, "head_dtype": str(head)} if isinstance(head, Dtype) else trainer
