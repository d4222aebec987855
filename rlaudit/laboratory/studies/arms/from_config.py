"""From a rollout config to its experiment: the user's settings are the candidate, those before the migration the
reference, and the factors are those that the findings suspect and the five usual ones.

Settings that this machine cannot hold (more GPUs than it has, a model that is not here) are changed, and every change
is announced before anything starts. Nothing else is changed: an ablation of other settings would answer another
question.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.inside.engine import ENGINE
from rlaudit.errors import NotFinished, UsageError
from rlaudit.laboratory.factor import Factor, Move
from rlaudit.laboratory.machine_limits import STEP_ON_CPU, Limits, fit_engine_args
from rlaudit.laboratory.recipe import Experiment
from rlaudit.laboratory.recorded_requests import RecordedRequests, described
from rlaudit.laboratory.studies.arms.further_factors import Named
from rlaudit.laboratory.studies.arms.plan import known_factors
from rlaudit.laboratory.studies.arms.recipe import Sampling
from rlaudit.laboratory.studies.arms.recorded_arguments import Taken, loads_code, taken_over
from rlaudit.laboratory.treatment import Treatment
from rlaudit.rules.audit.audit import Audit, Side
from rlaudit.rules.audit.finding import Finding
from rlaudit.settings.rollout_config import Origin
from rlaudit.settings.trainer_facts import Dtype
from rlaudit.severity import Severity
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
NEED_A_GPU = ("enforce-eager", "compile", "cudagraphs", "async-scheduling", "cascade-attention", "batch-invariance")
# The recipe names the model, and prompts are token ids.
OF_THE_RECIPE = ("model", "tokenizer")


def experiment_from(
    audit: Audit,
    findings: Sequence[Finding],
    accelerator: Accelerator,
    model: str | None,
    recorded: RecordedRequests | None = None,
    repeated: Collection[str] = (),
    named: Named = MappingProxyType({}),
) -> Experiment:
    """Return the experiment for a config, or for a recording with its requests.

    repeated: arguments of a recording that are taken over because the command line names them. named: factors of the
    command line; without any, both releases may not be the same. Raises UsageError if they are.
    """
    if not audit.migrates and not named:
        raise UsageError(
            f"{audit.config.path} is looked at under vLLM {audit.after.version} only",
            "give both releases: --from 0.8.5 --to 0.18.1; or what to try on this one: --factor NAME",
        )
    changed: list[str] = []
    setting = audit.config.model
    written = setting.value if setting is not None and isinstance(setting.value, str) else None
    chosen = model or written
    if model is None and chosen is not None:
        changed.append(f"model: {chosen}, as the config says (another one with --model)")
    if chosen is None:
        changed.append("model: the config does not say it, so the default small model runs (another one with --model)")
    limits = Limits.of(accelerator)
    requests = _requests(audit, recorded, limits, changed)
    if recorded is not None:
        limits = _with_room(
            recorded.first(requests["prompts_used"], requests["max_tokens"]), limits, requests["max_tokens"]
        )
    trainer = _trainer(audit, recorded, changed)
    levels, parity = _factors(audit, findings, _without_effect(audit, limits, trainer), named, changed)
    take_over = (lambda values: Taken(values, ())) if recorded is None else partial(taken_over, repeated=repeated)
    sides = (audit.before, audit.after) if audit.migrates else (audit.after,)
    points = [_point(side, limits, changed, take_over) for side in sides]
    left_out = list(dict.fromkeys(sentence for point in points for sentence in point.left_out))
    if recorded is not None and recorded.adapted:
        left_out.append(
            f"adapter: {recorded.adapted} of {recorded.of_sequences} recorded completions were sampled with LoRA, "
            "which no arm has (merge it into the checkpoint: --model)"
        )
    changed += left_out
    document: dict[str, Any] = {
        "schema": "rlaudit-recipe/1",
        "description": f"Does {audit.config.path} keep its logprobs from vLLM {audit.before.version} to "
        f"{audit.after.version}?"
        if audit.migrates
        else f"Do the logprobs of {audit.config.path} mean what its trainer assumes, with vLLM {audit.after.version}?",
        **({"model": chosen} if chosen is not None else {}),
        **({"stands_for": written} if written is not None and written != chosen else {}),
        **requests,
        "sampling": _sampling(audit, changed),
        "trainer": trainer,
        **({"left_out": left_out} if left_out else {}),
        "blocks": [
            {
                "name": "config",
                **({"reference": points[0].document} if audit.migrates else {}),
                "candidate": points[-1].document,
                "factors": {name: some[0] if len(some) == 1 else some for name, some in levels.items()},
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


def _without_effect(audit: Audit, limits: Limits, trainer: Mapping[str, Any]) -> dict[str, str]:
    """Return the factors that have no effect here, and why."""
    reasons = dict.fromkeys(NEED_A_GPU, "there is no GPU here") if limits.cpu else {}
    if audit.after.value("dtype") == trainer["dtype"] == Dtype.FLOAT32:
        reasons["fp32-head"] = "the whole model is in float32"
    return reasons


def _factors(
    audit: Audit, findings: Sequence[Finding], without: Mapping[str, str], named: Named, changed: list[str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Return the levels to try of each factor, and which of these are steps back to what ran before the move.

    Named factors come first, then those that the gravest findings suspect, then the usual ones. A suspect that is not
    tried is announced with the reason.
    """
    factors = known_factors()
    gravest = sorted(findings, key=lambda finding: -finding.severity.rank)
    suspected = [name for finding in gravest for name in _suspects(factors, finding)]
    moves: dict[str, Move] = {}
    left: dict[str, str] = {}
    for name in dict.fromkeys((*named, *suspected, *USUAL_FACTORS)):
        move = factors[name].move(audit, factors[name].setting)
        reason = without.get(name) or _missing(audit, factors[name], move)
        if name in named:
            level = move.level if move is not None else factors[name].levels[-1] if factors[name].levels else ""
            moves[name] = replace(move, level=level) if move is not None else Move(level)
            changed += [f"factor {name}: no effect is expected, {reason}"] if reason else []
        elif move is None or reason:
            left[name] = reason or f"it takes long; --factor {name} tries it"
        elif len(moves) >= MOST_FACTORS + len(named):
            left[name] = f"there are {MOST_FACTORS} likelier ones"
        else:
            moves[name] = move
    changed += [f"factor {name}: not tried, {left[name]}" for name in dict.fromkeys(suspected) if name in left]
    changed += _without_factor(factors, gravest)
    levels = {name: list(named.get(name) or [move.level]) for name, move in moves.items()}
    return levels, [name for name, move in moves.items() if move.to_reference and levels[name] == [move.level]]


def _suspects(factors: Mapping[str, Factor], finding: Finding) -> list[str]:
    """Return the factors that a finding's experiment tries, else those that set what it is about."""
    tried = finding.trial.names if finding.trial is not None else ()
    return [*tried, *(name for name, factor in factors.items() if factor.setting == finding.setting)]


def _missing(audit: Audit, factor: Factor, move: Move | None) -> str:
    """Say that the release lacks what a factor sets; empty if it has that."""
    if move is None:
        return ""
    needed = factor.apply(Treatment(str(audit.after.version)), move.level).requires
    absent = [name for requirement in needed for name in requirement.engine_args if not audit.after.exists(name)]
    return f"vLLM {audit.after.version} has no {' and no '.join(absent)}" if absent else ""


def _without_factor(factors: Mapping[str, Factor], findings: Sequence[Finding]) -> Iterator[str]:
    """Yield why what errors and warnings suspect has no arm."""
    for finding in {finding.rule: finding for finding in reversed(findings)}.values():
        trial = finding.trial
        if finding.severity is Severity.NOTE or _suspects(factors, finding):
            continue
        if trial is None:
            yield f"{finding.rule}: not tried, no factor sets {finding.setting}"
        elif trial.recipe:
            yield f"{finding.rule}: not tried here: {finding.confirm}"


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
        changed.append(f"temperature: not in the config; {DEFAULT_TEMPERATURE:g} is used")
        sampling["temperature"] = DEFAULT_TEMPERATURE
    if sampling["temperature"] == 0:
        raise UsageError(
            "the config samples greedily (temperature 0): a greedy choice has no distribution to compare logprobs with"
        )
    return sampling


def _trainer(audit: Audit, recorded: RecordedRequests | None, changed: list[str]) -> dict[str, Any]:
    facts = audit.config.facts
    if not isinstance(facts.divides_by_temperature, bool):
        changed.append("trainer: taken to divide its logits by the sampling temperature, which the config does not say")
    recorded_dtype = None if recorded is None else recorded.trainer_dtype
    trainer = {
        "dtype": str(Dtype.named(recorded_dtype or facts.dtype) or Dtype.BFLOAT16),
        "temperature": "ignore" if facts.divides_by_temperature is False else "divide",
        "replay_filters": facts.replays_filters is True,
    }
    head = facts.head_dtype
    return {**trainer, "head_dtype": str(head)} if isinstance(head, Dtype) else trainer
