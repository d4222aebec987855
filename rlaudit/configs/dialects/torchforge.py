"""torchforge: YAML with `policy.engine_args` or `generator.engine_args`, which are vLLM's EngineArgs as they are.

Read at 6e77f0b (2025-11, vLLM 0.10.0). Keys that EngineArgs does not have are filtered out silently, and the engine is
built with the usage context of `LLM`.
"""

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.draft import Draft, arriving
from rlaudit.configs.mapping_writer import one_mapping, plain_spelling
from rlaudit.configs.merging import mapping_of
from rlaudit.configs.python_kwargs import has_argument
from rlaudit.configs.rollout_config import Loss, RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, entries, within

GENERATOR = "torchforge generator.py (6e77f0b)"
_ACTORS = ("policy", "generator")
_ENGINE = ("engine_args", "engine_config")
_SAMPLING = ("sampling_params", "sampling_config")


def recognise(source: Source) -> bool:
    """Whether an actor named policy or generator has `engine_args`."""
    if "engine_args" not in source.text and "engine_config" not in source.text:
        return False
    root = mapping_of(source)
    return root is not None and _actor(root) is not None


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """The generator's engine."""
    root = mapping_of(source)
    found = _actor(root) if root is not None else None
    if root is None or found is None:
        return ()
    actor, name = found
    draft = Draft("torchforge", source.path)
    arguments = _first(actor, _ENGINE)
    for key, node in entries(arguments):
        if key == "model":
            continue
        if has_argument(key, vllm):
            draft.engine.by_file(key, node)
        else:
            draft.lose(key, node, Loss.UNKNOWN_KEY, f"{GENERATOR} filters out what EngineArgs does not have")
    _sampling(draft, _first(actor, _SAMPLING))
    note = f"{GENERATOR} runs V1's own classes and answers V1 where vLLM asks"
    draft.environment.by_code("VLLM_USE_V1", "1", note)
    _trainer(draft, root, name)
    home = arguments if arguments is not None else actor
    return (
        draft.done(
            model=within(arguments, "model"),
            offline=True,
            place=home.key or home.place,
            write=one_mapping(arguments, plain_spelling, source.text),
        ),
    )


def _actor(root: Node) -> tuple[Node, str] | None:
    for name in _ACTORS:
        actor = root.get(name)
        arguments = _first(actor, _ENGINE) if actor is not None else None
        if actor is not None and arguments is not None and isinstance(arguments.value, dict):
            return actor, name
    return None


def _first(node: Node, keys: tuple[str, ...]) -> Node | None:
    return next((found for key in keys if (found := node.get(key)) is not None), None)


def _sampling(draft: Draft, given: Node | None) -> None:
    for key, node in entries(given):
        draft.sampling.by_file(key, node)
    draft.sampling.unless_set("logprobs", 1, f"{GENERATOR}: default of its sampling config")
    draft.not_seen.append(
        "sampling parameters of the model's generation_config.json: torchforge starts from vLLM's reading of it"
    )


def _trainer(draft: Draft, root: Node, name: str) -> None:
    draft.trains("divides_by_temperature", True, "torchforge's GRPO app divides the logits by the temperature")
    draft.trains("replays_filters", False, "torchforge takes its softmax over the full vocabulary")
    draft.trains("uses_rollout_logprobs", False, "torchforge apps/grpo/main.py:132 takes exp(lp - lp.detach())")
    draft.trains("importance_sampling_correction", False, "torchforge has no rollout correction")
    draft.trains("logs_mismatch", False, "torchforge logs no mismatch metric (titan.py:182-184 is commented out)")
    note = f"{GENERATOR}:463-509 waits for running requests, then resets the prefix cache"
    draft.trains("weight_updates", "between rollouts", note)
    draft.trains("resets_prefix_cache", True, note)
    draft.trains("salts_prefix_cache", False, "torchforge sends no cache salt")
    dtype = root.get("trainer", "training", "dtype")
    if dtype is not None:
        draft.trains("dtype", arriving(dtype), "trainer.training.dtype", dtype)
    count = root.get("services", name, "num_replicas")
    if count is not None:
        draft.trains("replicas", arriving(count), f"services.{name}.num_replicas", count)
    seed = draft.engine.get("seed")
    seeded = f"{GENERATOR}: every replica gets the same engine_args"
    draft.trains("seeds_replicas", False, seeded if seed is None else f"{seeded}, seed included")


DIALECT = Dialect("torchforge", "torchforge", 10, recognise, read)
