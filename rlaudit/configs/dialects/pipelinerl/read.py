"""PipelineRL: Hydra YAML whose `vllm_config.vllm_kwargs` become flags of its own vLLM server.

Three generations of launch.py are told apart by their keys. With `vllm_config.use_v1: false` (conf of 2026-02, vLLM
0.8.5.post1) the V0 server runs and the flags go out as they are. With `use_v1: true` some releases of spring 2026 set
parity defaults in code, earlier ones did not. Without `use_v1` (58d3934, vLLM 0.18.1) there is only the V1 server, and
the fp32 head is always on. A file of the V0 generation read for a vLLM without V0 gives what the V1 server would get.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.pipelinerl.trainer import trainer_facts
from rlaudit.configs.draft import Draft, arriving, by_file, known
from rlaudit.configs.engine_names import canonical
from rlaudit.configs.framework_source.against_copy import FrameworkFiles, hold_against
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.hydra_defaults import Composed, composed, with_defaults
from rlaudit.configs.mapping_writer import one_mapping, plain_spelling
from rlaudit.configs.merging import mapping_of
from rlaudit.configs.rollout_config import Loss, RolloutConfig, Setting
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.edit import Edit
from rlaudit.configs.syntax.node import Node, Unknown, entries, within
from rlaudit.vllm.resolution.engine import has_v0

_SERVER, _OLD_SERVER, _LAUNCH = "pipelinerl/vllm1.py", "pipelinerl/vllm0.py", "pipelinerl/launch.py"
FILES = FrameworkFiles("pipelinerl", engine=(_SERVER,), marks=(_LAUNCH,))
# PipelineRL's vllm0.py refuses anything newer.
LAST_WITH_V0 = Version("0.10.0")
FP32_HEAD = "bf16_last_layer_fp32"
LAUNCH = "PipelineRL launch.py (58d3934)"
_DROPPED = ("disable_log_requests", "disable_frontend_multiprocessing")
# What conf/base.yaml of 58d3934 says, for a config that inherits it from a file that is not here.
_BASE: dict[str, Any] = {
    "logprobs_mode": "processed_logprobs",
    "enable_prefix_caching": False,
    "async_scheduling": False,
    "generation_config": "vllm",
    "dtype": "bfloat16",
}
_PARITY: dict[str, Any] = {
    "enable_prefix_caching": False,
    "async_scheduling": False,
    "logprobs_mode": "processed_logprobs",
}
_UNSPELT = {"max_model_len"}


def recognise(source: Source) -> bool:
    """Whether `vllm_config.vllm_kwargs`, which no other framework has, is there, or in a config that it inherits."""
    own = "vllm_kwargs" in source.text and "vllm_config" in source.text
    if not own and "defaults" not in source.text:
        return False
    root = with_defaults(source)
    kwargs = within(root, "vllm_config", "vllm_kwargs")
    return kwargs is not None and (isinstance(kwargs.value, dict) or kwargs.value is None)


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """The rollout engine: every replica gets the same flags, except for its seed."""
    config = composed(source)
    if config is None:
        return ()
    root = config.root
    draft = Draft("pipelinerl", source.path, parts=config.parts)
    use_v1 = root.get("vllm_config", "use_v1")
    checkout = FILES.checkout(source)
    old = use_v1 is not None and use_v1.value is False
    v0 = old and (vllm <= LAST_WITH_V0 or _starts_old_server(checkout))
    _engine(draft, root, checkout, v0=v0)
    _head(draft, root, config)
    _environment(draft, root, use_v1, vllm, v0=v0)
    _sampling(draft, root)
    trainer_facts(draft, root, vllm, v0=v0)
    _inherited(draft, root, config)
    hold_against(draft, replace(FILES, engine=(_OLD_SERVER,)) if v0 else FILES, checkout, vllm)
    draft.list_options(root, "vllm_config.use_v1", "fp32_lm_head", "finetune.send_weight_updates", "attempts")
    draft.not_seen.append(
        "the number of rollout engines: it follows from the GPUs of the cluster, which this file does not name"
    )
    return (
        draft.done(
            model=root.get("model_path"),
            place=_home(source, root),
            write=_write(source),
        ),
    )


def _starts_old_server(checkout: Checkout | None) -> bool:
    """Whether launch.py still has the V0 server to start, whatever the vLLM."""
    if checkout is None or checkout.file(_OLD_SERVER) is None:
        return False
    launch = checkout.file(_LAUNCH)
    return launch is not None and "vllm0" in launch.text


def _hands_on(checkout: Checkout | None, name: str) -> bool:
    """Whether a launch.py that is there has no word of an argument, and so leaves out none of that name."""
    launch = checkout.file(_LAUNCH) if checkout is not None else None
    return launch is not None and re.search(name.replace("_", "[-_]"), launch.text) is None


def _home(source: Source, root: Node) -> Any:
    own = mapping_of(source)
    kwargs = within(own, "vllm_config", "vllm_kwargs")
    node = kwargs or root
    return node.key or node.place


def _write(source: Source) -> Callable[[str, Any], tuple[Edit, ...] | None]:
    own = mapping_of(source)
    kwargs = within(own, "vllm_config", "vllm_kwargs")
    return one_mapping(kwargs, _spell, source.text)


def _spell(name: str, value: Any) -> tuple[str, str] | None:
    """Dashes as PipelineRL's own configs write them; a flag without a value is an empty string there."""
    key = name if name in _UNSPELT else name.replace("_", "-")
    return plain_spelling(key, value)


def _engine(draft: Draft, root: Node, checkout: Checkout | None, *, v0: bool) -> None:
    kwargs = root.get("vllm_config", "vllm_kwargs")
    use_v1 = root.get("vllm_config", "use_v1")
    for key, node in entries(kwargs):
        name = canonical(key)
        if v0 or _hands_on(checkout, name):
            draft.engine[name] = _flag(name, node, bools_spelt=use_v1 is None or not v0)
        elif name in _DROPPED:
            draft.lose(name, node, Loss.NOT_PASSED, f"{LAUNCH}:132-135 drops it for the V1 server")
        elif name == "num_scheduler_steps" and use_v1 is not None:
            draft.lose(name, node, Loss.NOT_PASSED, "PipelineRL's launch.py leaves it out for the V1 server")
        else:
            draft.engine[name] = _flag(name, node, bools_spelt=use_v1 is None or not v0)
    seed = root.get("seed")
    draft.engine.by_code(
        "seed", arriving(seed) if seed is not None else Unknown("`seed` is not in this file"),
        f"{LAUNCH}: `seed` plus the index of the rollout engine",
    )  # fmt: skip
    if use_v1 is not None and use_v1.value is not False:
        for name, value in _PARITY.items():
            if name not in draft.engine:
                reason = (
                    f"releases of PipelineRL with `use_v1` differ: those of late April 2026 set {name} to {value!r} "
                    "in launch.py, earlier ones leave vLLM's default"
                )
                draft.engine.by_code(name, Unknown(reason), reason)


def _flag(name: str, node: Node, *, bools_spelt: bool) -> Setting:
    if node.value is None or node.value == "":
        return by_file(name, node, value=True, note="no value: launch.py passes the flag alone")
    if isinstance(node.value, bool) and not bools_spelt:
        note = "launch.py of the V0 releases may write this as `--flag True` or `--flag False`, which vLLM refuses"
        return by_file(name, node, note=note)
    if node.value is False:
        return by_file(name, node, note=f"passed as --no-{name.replace('_', '-')} ({LAUNCH}:139-148)")
    return by_file(name, node)


def _head(draft: Draft, root: Node, config: Composed) -> None:
    """The fp32 output head: a knob up to 2026-05-05 (f3803d6), always on since."""
    knob = root.get("fp32_lm_head")
    written = root.get("vllm_config", "quantization")
    use_v1 = root.get("vllm_config", "use_v1")
    if knob is not None and isinstance(arriving(knob), Unknown):
        draft.engine.by_file("quantization", knob)
        return
    if knob is not None and knob.value:
        note = "fp32_lm_head: true makes launch.py pass it"
        draft.engine.by_code("quantization", FP32_HEAD, note)
        if written is not None and written.value not in (None, "", FP32_HEAD):
            draft.lose("quantization", written, Loss.OVERRULED, "fp32_lm_head: true overrules it in launch.py")
    elif knob is not None or use_v1 is not None:
        if written is not None and written.value not in (None, ""):
            draft.engine.by_file("quantization", written)
        elif written is not None:
            draft.engine.by_file("quantization", written, value=None, note="null: no flag is passed")
    elif _base_missing(config):
        reason = (
            "`fp32_lm_head` is not in this file and its base config is not beside it; PipelineRL since 2026-05-05 "
            f"(f3803d6) always passes {FP32_HEAD}"
        )
        draft.engine.by_code("quantization", Unknown(reason), reason)
    else:
        draft.engine.by_code("quantization", FP32_HEAD, f"{LAUNCH}:107-114 always passes it")
        if written is not None and written.value not in (None, "", FP32_HEAD):
            draft.lose("quantization", written, Loss.OVERRULED, f"{LAUNCH} refuses any other quantization")
    quantization = draft.engine.get("quantization")
    if quantization is not None and quantization.value == FP32_HEAD:
        prefix = root.get("fp32_layer_prefix")
        draft.environment.by_code("PIPELINERL_FP32_LAYER_PREFIX", known(prefix, "lm_head"), f"{LAUNCH}:117-120")


def _environment(draft: Draft, root: Node, use_v1: Node | None, vllm: Version, *, v0: bool) -> None:
    if v0:
        note = "PipelineRL entrypoints/run_vllm0.py:2 sets it, as vllm_config.use_v1 is false"
        draft.environment.by_code("VLLM_USE_V1", "0", note)
    elif use_v1 is not None and use_v1.value is False:
        reason = (
            f"PipelineRL's V0 server (vllm0.py) refuses vLLM newer than {LAST_WITH_V0}; under {vllm} the same "
            "flags go to the V1 server"
        )
        draft.lose("use_v1", use_v1, Loss.OVERRULED, reason)
    elif use_v1 is not None and use_v1.value is True and has_v0(vllm):
        note = "vllm_config.use_v1 is true: PipelineRL starts its V1 server (vllm1.py), which builds V1's AsyncLLM"
        draft.environment.by_file("VLLM_USE_V1", use_v1, "1", note)
    debug = known(root.get("debug", "use_existing_llms"))
    if debug is True:
        draft.not_seen.append("the engines themselves: debug.use_existing_llms is true, so others started them")


def _sampling(draft: Draft, root: Node) -> None:
    parameters = root.get("llm", "parameters")
    for key, node in entries(parameters):
        draft.sampling.by_file(key, node)
    note = "async_llm.py asks for the logprob of the sampled token with every training rollout"
    draft.sampling.unless_set("logprobs", 0, note)


def _inherited(draft: Draft, root: Node, config: Composed) -> None:
    """What a base config would have said, where the file that inherits it is all there is."""
    for file in config.missing:
        draft.not_seen.append(f"{file}, which `defaults:` inherits, is not beside this file")
    base = _base_missing(config)
    if not base:
        return
    for name, value in _BASE.items():
        if name not in draft.engine:
            reason = f"{base[0]} is not beside this file; PipelineRL's own conf/base.yaml says {value!r} (58d3934)"
            draft.engine.by_code(name, Unknown(reason), reason)
    if "temperature" not in draft.sampling:
        reason = f"{base[0]} is not beside this file; PipelineRL's own conf/base.yaml says 1.0 (58d3934)"
        draft.sampling.by_code("temperature", Unknown(reason), reason)


def _base_missing(config: Composed) -> tuple[str, ...]:
    """Whole configs that are not there; groups such as finetune/base.yaml hold nothing about vLLM."""
    return tuple(file for file in config.missing if "/" not in file)


DIALECT = Dialect("pipelinerl", "PipelineRL", 10, recognise, read)
