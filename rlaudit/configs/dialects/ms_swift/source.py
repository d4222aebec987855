"""Where ms-swift's own source says what it does, in the layouts of 3.x and 4.x.

An argument takes two steps to vLLM: the trainer, or the arguments of `swift rollout`, call ms-swift's VllmEngine, and
that makes EngineArgs. What the first step leaves out has the default of the second; what the second does not take never
arrives.
"""

import ast
from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from rlaudit.configs.draft import Draft
from rlaudit.configs.framework_source.bindings import (
    Bound,
    calls_in,
    defaults_in,
    handed_over,
    nodes_in,
    parameters_of,
    place,
)
from rlaudit.configs.framework_source.checkout import Checkout, shown
from rlaudit.configs.framework_source.questions import (
    Answer,
    Question,
    ask,
    called,
    calls,
    default,
    divides_by,
    else_unknown,
    in_words,
    lacks,
    stored,
    uses,
)
from rlaudit.configs.framework_source.tell import FrameworkSource, ask_facts, engine_names
from rlaudit.configs.python_environment import python_environment
from rlaudit.configs.rollout_config import Origin
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown
from rlaudit.vllm.milestones import PROCESSED_IS_FINAL

_ENGINE = ("swift/infer_engine/vllm_engine.py", "swift/llm/infer/infer_engine/vllm_engine.py")
_OWNER, _MADE = "VllmEngine", "engine_args"
_GRPO = ("swift/rlhf_trainers/grpo_trainer.py", "swift/trainers/rlhf_trainer/grpo_trainer.py")
_MIXIN = ("swift/rlhf_trainers/rollout_mixin.py", "swift/rlhf_trainers/base_rollout_mixin.py",
          "swift/trainers/rlhf_trainer/rollout_mixin.py")  # fmt: skip
_TRAINER = (*_MIXIN, *_GRPO)
_ARGUMENTS = ("swift/rlhf_trainers/args_mixin.py", "swift/trainers/arguments.py", "swift/llm/argument/infer_args.py")
_SERVER = ("swift/pipelines/infer/rollout.py", "swift/llm/infer/rollout.py")
_OPTIONS = tuple(f"swift/{home}.py" for home in ("rlhf_trainers/args_mixin", "trainers/arguments"))
# Files and classes with the defaults of options, what a trainer takes first; `swift rollout` takes the last alone.
_OF_ENGINE = tuple((file, "VllmArguments") for file in (*_OPTIONS, "swift/llm/argument/infer_args.py"))
_DEFAULTS = (
    *((file, owner) for owner in ("RolloutTrainerArgumentsMixin", "GRPOArgumentsMixin") for file in _OPTIONS),
    *((f"swift/{home}/rlhf_args.py", owner) for owner in ("RLHFArguments", "GRPOArguments")
      for home in ("arguments", "llm/argument")),
    *_OF_ENGINE,
)  # fmt: skip
_NUMBER = stored("logprobs", *_ENGINE)
_REQUEST_SEED = called("get_seed", "seed", *_ENGINE)
_LOADS = {f"_move_model_to_vllm{more}" for more in ("", "_lmdeploy")}
# Passed by VllmEngine only where they say something, and these only with the first of them.
_WHERE_SAID = ("enable_lora", "limit_mm_per_prompt")
_WITH_LORA = ("max_loras", "max_lora_rank")
# Expressions of the trainer that the dialect works out itself.
_WORKED_OUT = {"enable_sleep_mode": "sleep_level", "seed": "process_index"}
_FACTS: Mapping[str, Question] = {
    "divides_by_temperature": divides_by("temperature", *_GRPO),
    "replays_filters": lacks(r"TopPLogitsWarper|TopKLogitsWarper|top_[pk]_(?:filter|logits)", *_GRPO),
    "reads_prompt_logprobs": lacks(r"\bprompt_logprobs\b", *_GRPO),
    "weight_updates": in_words(calls(_LOADS, *_TRAINER), {True: "between rollouts"}),
    "resets_prefix_cache": calls({"reset_prefix_cache"}, *_TRAINER),
    "recomputes_old_logprobs": uses("old_per_token_logps", *_GRPO),
}
# Without the words of a correction there is none that could be off, and nothing that would log a mismatch.
_CORRECTION = lacks(r"rollout_importance_sampling|rollout_correction|offpolicy_metrics", *_GRPO)
_MODE = default("rollout_importance_sampling_mode", *dict.fromkeys(file for file, _ in _DEFAULTS))
SOURCE = FrameworkSource(
    package="swift",
    engine=_ENGINE,
    defaults=_DEFAULTS,
    prefix="vllm_",
    facts={name: else_unknown(question, *_GRPO) for name, question in _FACTS.items()},
    marks=_ENGINE,
)


def tell_swift(draft: Draft, checkout: Checkout | None, vllm: Version, mode: str | Unknown) -> None:
    """What the checkout decides in place of the table. mode: `colocate`, or where the engine is built otherwise."""
    if checkout is None:
        return
    defaults = _defaults(checkout, _OF_ENGINE if mode == "rollout" else _DEFAULTS)
    ask_facts(draft, SOURCE, checkout)
    _correction(draft, checkout)
    _sampling(draft, checkout, defaults)
    built = next((source for file in _ENGINE if (source := checkout.file(file)) is not None), None)
    if built is None or mode not in {"colocate", "rollout"}:
        return
    draft.parts = tuple(dict.fromkeys((*draft.parts, shown(built.path))))
    for name, node in python_environment(built, ("VLLM_",)).items():
        draft.environment.by_code(name, node.value, f"{shown(built.path)}:{node.place.line}")
    _engine(draft, checkout, built, vllm, defaults, in_trainer=mode == "colocate")


def default_of(option: str, checkout: Checkout | None) -> Bound | None:
    """The default of an option of ms-swift's command line."""
    return _defaults(checkout, _DEFAULTS).get(option) if checkout is not None else None


def _defaults(checkout: Checkout, places: tuple[tuple[str, str], ...]) -> dict[str, Bound]:
    found: dict[str, Bound] = {}
    for file, owner in places:
        source = checkout.file(file)
        if source is not None:
            found = {**defaults_in(source, owner), **found}
    return found


def _correction(draft: Draft, checkout: Checkout) -> None:
    """Off by the default of an option, or not there at all, which is nothing that could be off."""
    said = draft.trainer.get("importance_sampling_correction")
    none = ask(_CORRECTION, checkout)
    if none is None and said is not None and said.origin is Origin.FRAMEWORK:
        answer = ask(_MODE, checkout)
        for name in ("importance_sampling_correction", "logs_mismatch", "uses_rollout_logprobs"):
            _by_default(draft, name, answer)
    elif none is not None:
        draft.trainer.pop("importance_sampling_mode", None)
        draft.trainer.pop("importance_sampling_correction", None)
        draft.decided["importance_sampling_correction"] = none.where
        for name in ("logs_mismatch", "uses_rollout_logprobs"):
            if name in draft.trainer:
                draft.trains(name, False, f"{none.where}: no word of a rollout correction or of its metrics")
                draft.decided[name] = none.where


def _by_default(draft: Draft, name: str, answer: Answer | None) -> None:
    """A fact that holds where the option of the correction is none by default."""
    said = draft.trainer.get(name)
    if said is None or said.origin is not Origin.FRAMEWORK:
        return
    if answer is None or answer.value is not None:
        del draft.trainer[name]
    else:
        draft.trains(name, said.value, f"the default of the correction's mode, {answer.where}")
    if answer is not None:
        draft.decided[name] = answer.where


def _sampling(draft: Draft, checkout: Checkout, defaults: Mapping[str, Bound]) -> None:
    """Of the parameters that the table has sent with every request, those that this source sends."""
    asked = _request(checkout)
    for name, setting in list(draft.sampling.items()):
        if setting.origin is not Origin.FRAMEWORK:
            continue
        bound = defaults.get(name)
        if asked is None:
            unread = f"how {shown(checkout.root)} asks for rollouts was not found"
            draft.sampling.by_code(name, Unknown(unread), unread)
        elif name not in asked.value:
            del draft.sampling[name]
            draft.decided[name] = f"{asked.where}, which does not ask for it"
        elif name == "logprobs":
            number = ask(_NUMBER, checkout)
            if number is not None:
                draft.sampling.by_code(name, number.value, number.where)
                draft.decided[name] = number.where
        elif bound is not None:
            draft.sampling.by_code(name, bound.constant, f"the default of {name}, {bound.where}")
            draft.decided[name] = bound.where
    seeded = ask(_REQUEST_SEED, checkout)
    if seeded is not None and "seed" not in draft.sampling:
        draft.sampling.by_code("seed", Unknown("every request gets a random number"), seeded.where)
        draft.decided["request seed"] = seeded.where


def _request(checkout: Checkout) -> Answer | None:
    """The names that the trainer's request for rollouts gives: of its requests, the one that says the most."""
    asked = [Answer([keyword.arg for keyword in call.keywords if keyword.arg], place(source, call))
             for file in _TRAINER if (source := checkout.file(file)) is not None
             for call in calls_in(source, {"RequestConfig"})]  # fmt: skip
    return max(asked, key=lambda answer: len(answer.value), default=None)


def _engine(
    draft: Draft, checkout: Checkout, built: Source, vllm: Version, defaults: Mapping[str, Bound], *,
    in_trainer: bool,
) -> None:  # fmt: skip
    """Both steps of every engine argument that the config does not write."""
    names = engine_names(vllm)
    first = _in_trainer(checkout, names) if in_trainer else _in_server(checkout, names)
    taken = parameters_of(built, _OWNER, "__init__")
    second = handed_over(built, names)
    if not taken or not second.blocks:
        return
    for name in sorted(names):
        said = draft.engine.get(name)
        if said is not None and said.origin is not Origin.FRAMEWORK:
            continue
        where = second.blocks[0]
        passed = first.get(name)
        if name in taken or (passed is not None and not passed.sure):
            value, where = _two_steps(name, passed, taken.get(name), defaults, said.value if said else None)
            silent = name in _WHERE_SAID and not isinstance(value, Unknown) and not value
            without = name in _WITH_LORA and "enable_lora" not in draft.engine
            value = None if silent or without else value
        elif name == "dtype":
            value = said.value if said is not None else None
        elif (bound := second.arguments.get(name)) is not None and bound[0].sure:
            # What VllmEngine works out of nothing that the table knows, as disable_log_stats, is not listed.
            open_ = said is None and isinstance(bound[0].constant, Unknown)
            value, where = (None if open_ else bound[0].constant), bound[0].where
        else:
            value = None
        later = _set_later(built, name)
        if later is not None and value is not None and later.constant != value:
            value, where = Unknown(f"{later.where} may set it to {later.constant!s} after all"), later.where
        if name == "logprobs_mode" and value is not None:
            value = "processed_logprobs" if vllm >= PROCESSED_IS_FINAL else None
        draft.decided[name] = where if value is not None else f"{where}, which does not pass it"
        if value is not None:
            draft.engine.by_code(name, value, where)
        elif said is not None:
            del draft.engine[name]
    _seeds(draft)


def _two_steps(
    name: str, passed: Bound | None, taken: Bound | None, defaults: Mapping[str, Bound], worked_out: Any
) -> tuple[Any, str]:
    """What VllmEngine is called with, and where that stands; its own default where it is called without."""
    if passed is None:
        assert taken is not None
        return taken.constant, taken.where
    option = next((one for one in (passed.option, f"vllm_{passed.option}") if one in defaults), "")
    if option:
        return defaults[option].constant, f"{passed.where} and {defaults[option].where}"
    mark = _WORKED_OUT.get(name)
    if mark is not None and worked_out is not None and mark in ast.unparse(passed.value):
        return worked_out, passed.where
    return passed.constant, passed.where


def _set_later(built: Source, name: str) -> Bound | None:
    """`engine_args.name = ...`, after they are made and under conditions that are not followed."""
    for node in nodes_in(built):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Attribute) and target.attr == name and getattr(target.value, "id", "") == _MADE:
            return Bound(name, node.value, place(built, node), False)  # type: ignore[attr-defined]
    return None


def _in_trainer(checkout: Checkout, names: frozenset[str]) -> Mapping[str, Bound]:
    """The arguments of the call of ms-swift's own engine."""
    for file in _TRAINER:
        source = checkout.file(file)
        handed = handed_over(source, names) if source is not None else None
        if handed is not None and handed.blocks:
            return {name: bound[0] for name, bound in handed.arguments.items()}
    return {}


def _in_server(checkout: Checkout, names: frozenset[str]) -> Mapping[str, Bound]:
    """What the arguments of `swift rollout` make, and what the server adds: a seed to each worker since 3.9."""
    found: dict[str, Bound] = {}
    for file in (*_ARGUMENTS, *_SERVER):
        source = checkout.file(file)
        if source is not None:
            found = {**{name: bound[0] for name, bound in handed_over(source, names).arguments.items()}, **found}
            for call in calls_in(source, {"get_infer_engine"}):
                found |= {one.arg: Bound(one.arg, one.value, place(source, one.value), False)
                          for one in call.keywords if one.arg == "seed"}  # fmt: skip
    return found


def _seeds(draft: Draft) -> None:
    """Without a seed of its own an engine gets vLLM's: whether replicas differ is then vLLM's matter."""
    said = draft.trainer.pop("seeds_replicas", None)
    if said is not None:
        draft.decided["seeds_replicas"] = where = draft.decided.get("seed", "")
        if said.value is True and "seed" in draft.engine:
            draft.trains("seeds_replicas", True, f"{where}: the process index divided by the tensor parallel size")
