"""prime-rl's orchestrator and trainer: how rollouts are sampled, and what the trainer makes of their logprobs."""

from collections.abc import Iterator
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialects.prime_rl.layout import Layout
from rlaudit.configs.draft import Draft, is_said, known
from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.python_kwargs import neutral_sampling
from rlaudit.configs.syntax.node import Node, Unknown, entries, within
from rlaudit.vllm.milestones import PAUSE_TAKES_A_MODE

_ORCHESTRATOR = "prime-rl 004274e configs/orchestrator.py, TrainSamplingConfig.to_sampling_args"
_LOSS = "prime-rl 559b447 trainer/rl/loss.py:100"
_NAMES = {"max_completion_tokens": "max_tokens", "max_tokens": "max_tokens"}
_PARAMETERS = {
    "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
    "min_tokens", "max_tokens", "seed",
}  # fmt: skip


def collect_sampling(draft: Draft, found: Layout) -> None:
    """The training rollouts' sampling; evaluation has tables of its own, which are not read."""
    if found.orchestrator is None:
        draft.sampling = Elsewhere("the orchestrator samples, and its config is in another file")
        draft.not_seen.append("sampling parameters: the orchestrator's config is in another file")
        return
    tables = [node for node in _tables(found.orchestrator) if node is not None]
    for table in tables:
        _read(draft, table)
    draft.sampling.unless_set("temperature", 1.0, f"prime-rl's default ({_ORCHESTRATOR})")
    draft.sampling.unless_set("top_p", 1.0, f"sent always ({_ORCHESTRATOR})")
    for name, value in (("top_k", -1), ("min_p", 0.0)):
        draft.sampling.unless_set(name, value, f"sent with every request ({_ORCHESTRATOR})")
    draft.sampling.by_code("logprobs", 0, f"logprobs are asked for with every request ({_ORCHESTRATOR})")
    if found.orchestrator.get("renderer") is not None:
        neutral_sampling(draft, "a renderer asks /inference/v1/generate, which applies no defaults of the model")
    for place in _own_sampling(found.orchestrator):
        draft.not_seen.append(f"{place}: this environment samples differently")


def _tables(orchestrator: Node) -> Iterator[Node | None]:
    yield orchestrator.get("sampling")
    yield orchestrator.get("train", "sampling")


def _read(draft: Draft, table: Node) -> None:
    for key, node in table.items():
        name = _NAMES.get(key, key)
        if name in _PARAMETERS and is_said(node):
            draft.sampling.by_file(name, node)
        elif key == "extra_body":
            for inner, value in node.items():
                if inner in _PARAMETERS:
                    draft.sampling.by_file(inner, value)
        elif key == "temp_scheduler":
            reason = "temp_scheduler changes the temperature during training"
            draft.sampling.by_file("temperature", node, Unknown(reason), reason)


def _own_sampling(orchestrator: Node) -> Iterator[str]:
    """Sampling tables of single environments, which win over the shared one."""
    lists = [orchestrator.get("env"), orchestrator.get("train", "env"), orchestrator.get("train", "source")]
    for node in lists:
        for element in node.elements() if node is not None else ():
            for own in (element.get("sampling"), element.get("env", "sampling")):
                if own is not None:
                    yield own.place.setting


def collect_facts(draft: Draft, found: Layout, vllm: Version) -> None:
    """Fill `draft.trainer`."""
    draft.trains("divides_by_temperature", True, "logits are scaled by 1 / temperature (prime-rl #697)")
    draft.trains("uses_rollout_logprobs", True, f"the ratio is trainer / inference ({_LOSS})")
    draft.trains("recomputes_old_logprobs", False, f"inference logprobs are the old ones ({_LOSS})")
    draft.trains("reads_prompt_logprobs", False, "only sampled tokens' logprobs are asked for")
    draft.trains("logs_mismatch", True, f"mismatch_kl, whatever the loss ({_LOSS})")
    _filters(draft, found)
    _loss(draft, found)
    draft.trains("weight_updates", "in flight", "the orchestrator updates engines while requests run")
    if vllm >= PAUSE_TAKES_A_MODE:
        note = (
            '/pause of prime-rl\'s server: pause_generation(mode="keep", clear_cache=False) (inference/vllm/server.py)'
        )
        draft.trains("pause_mode", "keep", note)
        draft.trains("pause_clears_cache", False, note)
        draft.trains("pause_arguments", ["mode", "clear_cache"], note)
    _cache(draft, found)
    _precision(draft, found)


def _filters(draft: Draft, found: Layout) -> None:
    node = found.inference.get("enable_return_sampling_mask") if found.inference is not None else None
    if node is not None and node.value is True:
        draft.trains("replays_filters", True, "enable_return_sampling_mask: the trainer gets the kept tokens", node)
    elif (node is not None and node.value is False) or found.passes_through is False:
        draft.trains("replays_filters", False, "no sampling mask is returned", node)
    else:
        reason = "later commits turn enable_return_sampling_mask on by themselves where sampling is truncated"
        draft.trains("replays_filters", Unknown(reason), reason)


def _loss(draft: Draft, found: Layout) -> None:
    """The default loss masks tokens by probability difference (DPPO); it is a correction of the mismatch."""
    loss = found.trainer.get("loss") if found.trainer is not None else None
    kind = within(loss, "type")
    mode: Any = known(kind, "default")
    limits = [
        f"{name} {node.plain()}" for name, node in (entries(loss))
        if "mask" in name or "ratio" in name or "clip" in name
    ]  # fmt: skip
    note = (
        f"DPPO mask by probability difference, 0.2 by default; {', '.join(limits) or 'no limit is written'} ({_LOSS})"
    )
    if mode == "custom":
        value: Any = Unknown("trainer.loss.type is custom: its function is in another file")
        draft.trains("importance_sampling_correction", value, note, kind)
        return
    draft.trains("importance_sampling_correction", True, note)
    draft.trains("importance_sampling_mode", "dppo mask" if mode == "default" else mode, note, kind)


def _cache(draft: Draft, found: Layout) -> None:
    if found.passes_through is False:
        reason = "prime-rl resets the prefix cache at updates in some releases and salts it in others (#1650)"
        draft.trains("resets_prefix_cache", Unknown(reason), reason)
        draft.trains("salts_prefix_cache", Unknown(reason), reason)
        return
    note = "cache_salt is the policy version (prime-rl 559b447 orchestrator/dispatcher.py:520)"
    draft.trains("resets_prefix_cache", False, note)
    draft.trains("salts_prefix_cache", True, note)


def _precision(draft: Draft, found: Layout) -> None:
    model = found.trainer.get("model") if found.trainer is not None else None
    node = within(model, "dtype")
    if node is not None and isinstance(node.value, str):
        draft.trains("dtype", node.value, "trainer.model.dtype", node)
