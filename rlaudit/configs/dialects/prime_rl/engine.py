"""What prime-rl's inference server hands to vLLM: a Namespace with its own defaults, parsed over by vLLM's parser.

Nothing is dropped for being false: values are set as attributes. A name that vLLM does not know is set as well and
read by nobody.
"""

from collections.abc import Iterator
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialects.prime_rl.layout import FLAT, LAUNCHER, Layout
from rlaudit.configs.draft import Draft, arriving, is_said, known, leaves
from rlaudit.configs.engine_names import canonical
from rlaudit.configs.rollout_config import Loss
from rlaudit.configs.syntax.node import Node, Unknown, entries, within
from rlaudit.vllm.catalogue import Catalogue

_FLAT_SOURCE = "prime-rl 01496f7 configs/inference.py"
_VLLM_SOURCE = "prime-rl 559b447 configs/inference.py:611"
_FRONT = {"tool_call_parser", "reasoning_parser", "chat_template", "headless"}
# Defaults of both layouts that differ from vLLM's, or say in words what vLLM leaves open.
_DEFAULTS = {"gpu_memory_utilization": 0.9, "seed": 0, "dtype": "auto", "enforce_eager": False}

_LORA_RANK = 16  # LoRAConfig of prime-rl, configs/trainer.py


def collect_engine(draft: Draft, found: Layout, vllm: Version) -> None:
    """Fill engine, environment and lost. Called only where the file has an inference section."""
    assert found.inference is not None
    catalogue = Catalogue.at(vllm)
    for path, name, node in _written(found.inference):
        _one(draft, path, name, node, catalogue)
    _shared_model(draft, found)
    for name, value in _DEFAULTS.items():
        if name not in draft.engine:
            draft.engine.by_code(name, value, f"prime-rl's default ({_FLAT_SOURCE})")
    if "logprobs_mode" not in draft.engine:
        source = _FLAT_SOURCE if found.passes_through is False else _VLLM_SOURCE
        draft.engine.by_code("logprobs_mode", "processed_logprobs", f"set where it is not written ({source})")
    _adapters(draft, found)
    _offload(draft, found.inference)
    _head(draft, found, vllm)
    _environment(draft, found.inference)
    _deployment(draft, found.inference)
    other = [
        name for name, _ in found.inference.items() if name not in LAUNCHER and name not in FLAT and not _is_root(found)
    ]
    if other:
        draft.not_seen.append(
            f"inference.{', inference.'.join(other)}: no field of prime-rl's inference config read here"
        )


def _written(inference: Node) -> Iterator[tuple[str, str, Node]]:
    """Path below inference, engine argument and node; pass-through entries last, as they are applied last."""
    for path, name in FLAT.items():
        node = inference.get(*path.split("."))
        if node is not None and not (isinstance(node.value, dict) and name != "rope_scaling"):
            yield path, name, node
    for table in ("vllm", "vllm_extra"):
        nested = inference.get(table)
        for key, node in entries(nested):
            yield f"{table}.{key}", canonical(key), node


def _one(draft: Draft, path: str, name: str, node: Node, catalogue: Catalogue) -> None:
    if name == "model":
        return
    if not is_said(node):
        draft.not_seen.append(f"inference.{path} is null: vLLM's default holds")
    elif name in catalogue.engine:
        draft.engine.by_file(name, node)
    elif name in catalogue.frontend or name in set(catalogue.cli.values()) or name in _FRONT:
        draft.not_seen.append(f"inference.{path}: of the API server, no argument of the engine")
    else:
        reason = (
            f"vLLM {catalogue.version} has no such argument; prime-rl sets it on a Namespace that nobody asks for it"
        )
        draft.lose(name, node, Loss.UNKNOWN_KEY, reason)


def model_of(found: Layout) -> Node | None:
    """The model that the engine loads: its own, else the shared [model] of a run's file."""
    inference = found.inference
    if inference is not None:
        own = inference.get("vllm", "model") or inference.get("model", "name")
        if own is not None:
            return own
    for path in ("model.name", "orchestrator.model.name", "trainer.model.name"):
        node = found.root.get(*path.split("."))
        if node is not None and not isinstance(node.value, dict):
            return node
    return None


def _shared_model(draft: Draft, found: Layout) -> None:
    """`seq_len` of a run's file bounds the engine too where [inference] does not say it."""
    length = found.root.get("seq_len") or (found.orchestrator.get("seq_len") if found.orchestrator else None)
    if length is not None and "max_model_len" not in draft.engine:
        note = "seq_len of the run becomes the engine's max_model_len in some releases and not in others"
        draft.engine.by_file("max_model_len", length, Unknown(note), note)


def _adapters(draft: Draft, found: Layout) -> None:
    """A run that trains an adapter turns adapters on in the engine, whatever [inference] says."""
    lora = within(found.trainer, "model", "lora")
    if lora is None or lora.value is None:
        return
    note = "set where the trainer has a LoRA (prime-rl 559b447 configs/rl.py:577)"
    draft.engine.by_file("enable_lora", lora, True, note)
    rank = lora.get("rank")
    draft.engine.by_file("max_lora_rank", rank or lora, arriving(rank) if rank else _LORA_RANK, f"its rank, {note}")


def _offload(draft: Draft, inference: Node) -> None:
    node = inference.get("kv_cache_offload")
    if not is_said(node):
        return
    draft.not_seen.append("inference.kv_cache_offload becomes kv_transfer_config; its connector is not modelled")
    draft.engine.by_file(
        "kv_transfer_config", node, Unknown("built from kv_cache_offload"), "kv_cache_offload"
    )  # fmt: skip
    if "enable_prefix_caching" not in draft.engine:
        note = f"on with kv_cache_offload ({_FLAT_SOURCE}, auto_setup_kv_cache_offload)"
        draft.engine.by_code("enable_prefix_caching", True, note)


def _head(draft: Draft, found: Layout, vllm: Version) -> None:
    """enable_fp32_lm_head: a patch of vLLM at first, `hf_overrides.head_dtype` since vLLM has it (0.26)."""
    assert found.inference is not None
    node = found.inference.get("enable_fp32_lm_head")
    if not is_said(node):
        if found.passes_through is False:
            return
        reason = "enable_fp32_lm_head is not written: off in prime-rl until August 2026, on by default in later commits"
        draft.trains("rollout_head_dtype", Unknown(reason), reason)
        return
    assert node is not None
    if node.value is True:
        note = "a patch of LogitsProcessor, later vLLM's own head_dtype (prime-rl inference/patches.py:658)"
        draft.trains("rollout_head_dtype", "float32", note, node)
    elif node.value is not False:
        draft.trains("rollout_head_dtype", arriving(node), "enable_fp32_lm_head", node)


def _environment(draft: Draft, inference: Node) -> None:
    for name, node in (inference.get("env_vars") or Node({}, inference.place)).items():
        draft.environment.by_file(name, node)
    deep = inference.get("use_deep_gemm")
    if deep is not None and deep.value is True:
        draft.environment.by_file("VLLM_USE_DEEP_GEMM", deep, "1", "use_deep_gemm")


def _deployment(draft: Draft, inference: Node) -> None:
    """Prefill and decode ranks get arguments and variables of their own; this reader shows what both share."""
    deployment = inference.get("deployment")
    if deployment is None:
        return
    if known(deployment.get("type")) == "disaggregated" and "enable_expert_parallel" not in draft.engine:
        draft.engine.by_code("enable_expert_parallel", True, f"on in a disaggregated deployment ({_FLAT_SOURCE})")
    kinds = ("vllm_overrides", "env_vars", "env_overrides")
    own = [
        name for name, node in leaves(deployment, "inference.deployment.")
        if any(kind in name for kind in kinds) and not isinstance(node.value, dict)
    ]  # fmt: skip
    if own:
        draft.not_seen.append(f"{', '.join(own)}: for one kind of rank only, prefill or decode")


def _is_root(found: Layout) -> bool:
    return found.inference is found.root


def replicas_of(found: Layout) -> Any:
    """Engines side by side, where the file counts them; None otherwise."""
    inference, root = found.inference, found.root
    deployments = [
        node for node in (inference.get("deployment") if inference else None, root.get("deployment")) if node
    ]
    for deployment in deployments:
        for key in ("num_infer_replicas", "num_decode_replicas"):
            count = known(deployment.get(key))
            if isinstance(count, int) and count > 1:
                return count
        nodes = known(deployment.get("num_infer_nodes"))
        if isinstance(nodes, int) and nodes > 1:
            return Unknown(f"num_infer_nodes is {nodes}: engines side by side, or one over all of them, by its release")
    return None
