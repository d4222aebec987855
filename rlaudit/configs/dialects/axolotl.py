"""axolotl: YAML with `rl:` and `trl.use_vllm`, whose `vllm:` section `axolotl vllm-serve` hands to TRL's server.

Values are taken as `cfg.vllm.key or <command line>` (cli/vllm_serve.py), so that a
written false is the same as nothing, and logprobs_mode is TRL's doing and depends on its release.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.draft import Draft, arriving, known
from rlaudit.configs.framework_source.against_copy import FrameworkFiles, hold_against
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.framework_source.release_here import ReleaseHere, release_here
from rlaudit.configs.mapping_writer import one_mapping, plain_spelling
from rlaudit.configs.merging import mapping_of
from rlaudit.configs.omitted_flag import dropped
from rlaudit.configs.rollout_config import Loss, RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, Unknown, within
from rlaudit.configs.trl.release import TRL, Releases, both, that_run
from rlaudit.configs.trl.sampling import collect_sampling
from rlaudit.pins.package import Package

# The module that serves if the config names no other.
SERVER = "axolotl.scripts.vllm_serve_lora"
_STARTS = "axolotl/cli/vllm_serve.py"
FILES = FrameworkFiles(
    "axolotl",
    engine=(f"{SERVER.replace('.', '/')}.py",),
    options=("axolotl/utils/schemas/vllm.py#VllmConfig",),
    marks=(_STARTS,),
)
AXOLOTL = Package(("axolotl",), ("axolotl-ai-cloud/axolotl", "OpenAccess-AI-Collective/axolotl"))
# axolotl, from a release on -> the TRL that it pins (requirements.txt and pyproject.toml of its tags 0.7.0 to 0.18.0).
_PINS: Mapping[str, str] = {
    "0.7.0": "0.15.0", "0.7.1": "0.15.1", "0.8.0": "0.16.0", "0.8.1": "0.16.1", "0.9.0": "0.17.0", "0.10.0": "0.18.1",
    "0.10.1": "0.18.2", "0.12.0": "0.21.0", "0.13.0": "0.25.0", "0.13.1": "0.25.1", "0.13.2": "0.27.0",
    "0.14.0": "0.27.1", "0.15.0": "0.29.0", "0.17.0": "1.5.1", "0.18.0": "1.8.0",
}  # fmt: skip
SERVE = "axolotl cli/vllm_serve.py (067b021)"
_ENGINE = (
    "tensor_parallel_size",
    "data_parallel_size",
    "gpu_memory_utilization",
    "dtype",
    "max_model_len",
    "enable_prefix_caching",
    "enforce_eager",
    "worker_extension_cls",
)
_SERVER = {"host", "port", "device", "serve_module", "enable_reasoning", "reasoning_parser"}
# Before the vllm section, the same under trl.
_OLDER = {
    "vllm_gpu_memory_utilization": "gpu_memory_utilization",
    "vllm_dtype": "dtype",
    "vllm_max_model_len": "max_model_len",
    "enable_prefix_caching": "enable_prefix_caching",
}
_LOGPROBS = (
    "TRL decides logprobs_mode: its own server says processed_logprobs since 2026-01-21 (#4873), its colocated engine "
    "since 2025-10-01 (#4163), neither did before; axolotl pins TRL, and this file does not name the release"
)


def recognise(source: Source) -> bool:
    """Whether an axolotl config (`base_model`) trains online with vLLM."""
    if "base_model" not in source.text or "vllm" not in source.text:
        return False
    root = mapping_of(source)
    if root is None or root.get("base_model") is None:
        return False
    section, trl = root.get("vllm"), root.get("trl")
    has_trl = trl is not None and any(key == "use_vllm" or key.startswith("vllm_") for key, _ in trl.items())
    return has_trl or (section is not None and isinstance(section.value, dict) and root.get("rl") is not None)


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """The server or colocated engine of the run; none where use_vllm is false."""
    root = mapping_of(source)
    if root is None or known(root.get("trl", "use_vllm")) is False:
        return ()
    draft = Draft("axolotl", source.path)
    trl, section = root.get("trl"), root.get("vllm")
    colocated = known(trl.get("vllm_mode")) == "colocate" if trl is not None else False
    checkout = FILES.checkout(source)
    _engine(draft, section, trl, vllm, checkout)
    draft.engine.by_code("logprobs_mode", Unknown(_LOGPROBS), _LOGPROBS)
    told = _trl_release(source, checkout, vllm, colocated=colocated)
    collect_sampling(draft, dict(trl.items()) if trl is not None else {}, "GRPO", told)
    _trainer(draft, root, trl)
    draft.list_options(
        root, "rl", "trl.use_vllm", "trl.vllm_mode", "trl.vllm_importance_sampling_correction", "trl.num_generations"
    )
    # Only the server of axolotl's own is started by its source.
    serves = not colocated and known(within(section, "serve_module"), SERVER) == SERVER
    hold_against(draft, FILES if serves else replace(FILES, engine=()), checkout, vllm)
    draft.refused_pin = told.refused_pin
    if not colocated and section is None:
        draft.not_seen.append(
            "the server's own settings: it is started by another command, as there is no vllm section"
        )
    home = section or trl or root
    return (
        draft.done(
            model=root.get("base_model"),
            offline=True,
            place=home.key or home.place,
            write=one_mapping(section, _spell, source.text),
        ),
    )


def _trl_release(source: Source, checkout: Checkout | None, vllm: Version, *, colocated: bool) -> Releases:
    """The releases of TRL that may train; one where axolotl's is known, if it can."""
    here = release_here(source, AXOLOTL, checkout)
    pinned = _pinned_by(here) if here is not None else release_here(source, TRL, None)
    # Training by rewards came to axolotl with TRL 0.15.
    return both(Releases(Version("0.15"), None), that_run(vllm, colocated), pinned)


def _pinned_by(here: ReleaseHere) -> ReleaseHere | None:
    """As a pin, whether axolotl is pinned or lies there: TRL can be moved with it."""
    older = [trl for axolotl, trl in _PINS.items() if Version(axolotl) <= here.version]
    if not older:
        return None
    return ReleaseHere(Version(older[-1]), here.pinned_at or f"axolotl {here.version}, whose source is here,")


def _spell(name: str, value: Any) -> tuple[str, str] | None:
    if name not in _ENGINE or value is False or not isinstance(value, bool | int | float | str):
        return None
    return plain_spelling(name, value)


def _engine(draft: Draft, section: Node | None, trl: Node | None, vllm: Version, checkout: Checkout | None) -> None:
    given = {_OLDER[key]: node for key, node in trl.items() if key in _OLDER} if trl is not None else {}
    given |= dict(section.items()) if section is not None else {}
    for name, node in given.items():
        if name in _SERVER:
            continue
        if name not in _ENGINE:
            draft.lose(name, node, Loss.UNKNOWN_KEY, f"{SERVE}: the vllm section has no such key")
        elif node.value is False and _drops(name, checkout) is None:
            reason = f"whether {_STARTS} of the axolotl that is here takes a false is not followed"
            draft.engine.by_file(name, node, Unknown(reason), reason)
        elif node.value is False and _drops(name, checkout):
            reason = f"{SERVE} takes `cfg.vllm.{name} or ...`: false counts as not written (#3764)"
            draft.engine[name] = dropped(draft, name, node, vllm, reason)
        else:
            draft.engine.by_file(name, node)


def _drops(name: str, checkout: Checkout | None) -> bool | None:
    """Whether a false counts as nothing, as in the releases read here; None if no `or` in the copy shows it."""
    starts = checkout.file(_STARTS) if checkout is not None else None
    if starts is None or re.search(rf"\bor\b[^\n]*\.{name}\b|\.{name}\s+or\b", starts.text):
        return True
    return None


def _trainer(draft: Draft, root: Node, trl: Node | None) -> None:
    draft.trains("divides_by_temperature", True, "TRL's GRPO trainer divides the logits by the temperature")
    draft.trains("replays_filters", False, "TRL takes its softmax over the full vocabulary")
    draft.trains("salts_prefix_cache", False, "TRL sends no cache salt")
    draft.trains("resets_prefix_cache", True, "TRL resets the prefix cache after every weight update")
    prefetch = within(trl, "async_prefetch")
    flying = known(prefetch) is True
    note = "trl.async_prefetch: rollouts are generated while the trainer steps" if flying else "TRL waits for rollouts"
    draft.trains("weight_updates", "in flight" if flying else "between rollouts", note, prefetch if flying else None)
    correction = within(trl, "vllm_importance_sampling_correction")
    if correction is not None:
        value = arriving(correction)
        draft.trains("importance_sampling_correction", value, "trl.vllm_importance_sampling_correction", correction)
        for name in ("uses_rollout_logprobs", "logs_mismatch"):
            draft.trains(name, value, "TRL asks for the engine's logprobs only where the correction is on", correction)
    else:
        draft.not_seen.append("whether TRL's importance sampling correction is on: its default depends on the release")
    mode = within(trl, "vllm_importance_sampling_mode")
    if mode is not None:
        draft.trains("importance_sampling_mode", arriving(mode), "trl.vllm_importance_sampling_mode", mode)
    bf16 = root.get("bf16")
    if bf16 is not None and bf16.value is True:
        draft.trains("dtype", "bfloat16", "bf16", bf16)
    elif bf16 is not None:
        reason = "bf16: auto follows the GPU" if bf16.value == "auto" else "bf16 is off; the base model's dtype decides"
        draft.trains("dtype", Unknown(reason), "bf16", bf16)


DIALECT = Dialect("axolotl", "axolotl", 10, recognise, read)
