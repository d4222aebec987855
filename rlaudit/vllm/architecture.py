"""What kind of model runs: mixture of experts, latent attention, state space layers, images.

It is read from the checkpoint's config.json if the folder is here, else derived from the name under which its makers
published it: a fine-tune keeps its base's architecture, and mostly its name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from rlaudit.unknown import Unknown
from rlaudit.vllm.resolve import Resolution

_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
_MAMBA2 = {"bamba", "falcon_h1", "granitemoehybrid", "mamba2", "nemotron_h", "zamba2"}
# Models whose router has `e_score_correction_bias` and does not show it in topk_method.
_BIASED = {
    "afmoe", "bailing_moe_v2", "dots1", "ernie4_5_moe", "exaone_moe", "glm4_moe", "glm_moe_dsa", "kimi_linear",
    "lfm2_moe", "longcat_flash", "mimo_v2_flash", "minimax_m2", "step3p5",
}  # fmt: skip
_DEEPSEEK = {"model_type": "deepseek_v3", "n_routed_experts": 256, "kv_lora_rank": 512, "topk_method": "noaux_tc"}
_IMAGES: Mapping[str, Any] = {"vision_config": {}}
# The beginning of a published name -> the keys of its config.json that are read here. The first that fits counts.
_PUBLISHED: tuple[tuple[str, Mapping[str, Any]], ...] = (
    (r"deepseek-r1-distill|deepseek-(llm|coder-\d|math)", {"model_type": "llama"}),
    (r"deepseek-(v3|r1)|kimi-k2|moonlight-16b-a3b", _DEEPSEEK),
    (r"deepseek-(coder-)?v2", {"model_type": "deepseek_v2", "n_routed_experts": 64, "kv_lora_rank": 512}),
    (r"glm-5", {"model_type": "glm_moe_dsa", "n_routed_experts": 256, "kv_lora_rank": 512}),
    (r"glm-4\.[567](?!v)", {"model_type": "glm4_moe", "n_routed_experts": 128}),
    (r"minimax-m2", {"model_type": "minimax_m2", "num_local_experts": 256}),
    (r"qwen3[.-][56]-\d+b-a\d+b", {"model_type": "qwen3_5_moe", "num_experts": 256, "linear": True, **_IMAGES}),
    (r"qwen3[.-][56]-", {"model_type": "qwen3_5", "linear": True, **_IMAGES}),
    (r"qwen3-next-", {"model_type": "qwen3_next", "num_experts": 512, "linear": True}),
    (r"qwen3-(vl|omni)-\d+b-a\d+b", {"model_type": "qwen3_vl_moe", "num_experts": 128, **_IMAGES}),
    (r"qwen(2|2\.5|3)-(vl|omni)-", {"model_type": "qwen2_5_vl", **_IMAGES}),
    (r"qwen3-(coder-)?\d+b-a\d+b", {"model_type": "qwen3_moe", "num_experts": 128}),
    (r"qwen(1\.5-moe|2-57b-a14b)", {"model_type": "qwen2_moe", "num_experts": 60}),
    (r"qwen3-\d", {"model_type": "qwen3"}),
    (r"qwen(2|2\.5|1\.5)-|qwq-32b", {"model_type": "qwen2"}),
    (r"mixtral-", {"model_type": "mixtral", "num_local_experts": 8}),
    (r"(meta-)?llama-?4-", {"model_type": "llama4", "num_local_experts": 16, **_IMAGES}),
    (r"(meta-)?llama-?3\.2-(11|90)b", {"model_type": "mllama", **_IMAGES}),
    (r"(meta-)?llama-?[23]|tinyllama|smollm|tulu-[23]|llama-3", {"model_type": "llama"}),
    (r"(ministral|mistral)-(7b|nemo|8b)", {"model_type": "mistral"}),
    (r"gemma-4-26b-a4b", {"model_type": "gemma4", "num_experts": 128, **_IMAGES}),
    (r"gemma-(3-(4|12|27)b|3n|4)", {"model_type": "gemma3", **_IMAGES}),
    (r"gemma-", {"model_type": "gemma3_text"}),
    (r"gpt-oss-", {"model_type": "gpt_oss", "num_local_experts": 32, "quantization_config": {"quant_method": "mxfp4"}}),
    (r"(nvidia-)?nemotron-3-(nano|super)", {"model_type": "nemotron_h", "n_routed_experts": 128,
                                              "topk_method": "noaux_tc"}),
    (r"(nvidia-)?nemotron-(h-|nano-\d+b-v2)", {"model_type": "nemotron_h"}),
    (r"(olmo|phi-[34]|opt-|gpt2)", {"model_type": "dense"}),
)  # fmt: skip

# Names under which makers published models, each whole, and what their config.json says: for decisions that a fine-tune
# of the same family may take otherwise, such as a quantised one or one for rewards.
# Written down without the hub at hand: a config.json in a folder or in the hub's cache is asked first.
_WHOLE: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("Qwen", r"Qwen3-((0\.6|1\.7|4|8|14)B(-Base)?|32B|4B-(Instruct|Thinking)-2507)",
     {"architectures": ["Qwen3ForCausalLM"]}),
    ("Qwen", r"Qwen3-((30B-A3B|235B-A22B)(-(Instruct|Thinking)-2507)?|30B-A3B-Base)",
     {"architectures": ["Qwen3MoeForCausalLM"], "num_experts": 128}),
    ("Qwen", r"Qwen2\.5-(Math-(1\.5|7|72)B|Coder-(0\.5|1\.5|3|7|14|32)B|(0\.5|1\.5|3|7|14|32|72)B)(-Instruct)?",
     {"architectures": ["Qwen2ForCausalLM"]}),
    ("meta-llama", r"(Meta-)?Llama-3(\.[123])?-([138]|70|405)B(-Instruct)?", {"architectures": ["LlamaForCausalLM"]}),
    ("deepseek-ai", r"DeepSeek-R1-Distill-Qwen-(1\.5|7|14|32)B", {"architectures": ["Qwen2ForCausalLM"]}),
    ("deepseek-ai", r"DeepSeek-R1-Distill-Llama-(8|70)B", {"architectures": ["LlamaForCausalLM"]}),
    ("mistralai", r"Mistral-7B(-Instruct)?-v0\.[123]", {"architectures": ["MistralForCausalLM"]}),
    ("HuggingFaceTB", r"SmolLM2-(135M|360M|1\.7B)(-Instruct)?", {"architectures": ["LlamaForCausalLM"]}),
)  # fmt: skip

# How a user names the model of a config that does not.
_GIVEN = "the model is not known: --model NAME"


@dataclass(frozen=True)
class Architecture:
    """The keys of a model's config.json under transformers' names, of the text model if it has two."""

    config: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """`deepseek_v3`, `qwen3_moe`."""
        return str(self.config.get("model_type", ""))

    @property
    def mixture(self) -> bool:
        """Whether a router chooses among experts."""
        return any(isinstance(self.config.get(key), int) and self.config[key] > 1 for key in _EXPERTS)

    @property
    def latent_attention(self) -> bool:
        """Multi-head latent attention, as DeepSeek's: keys and values are compressed into a latent vector."""
        return bool(self.config.get("kv_lora_rank"))

    @property
    def mamba2(self) -> bool:
        """Whether state space layers are of vLLM's MambaMixer2."""
        return self.kind in _MAMBA2

    @property
    def several_caches(self) -> bool:
        """Whether layers keep a state beside or instead of keys and values: state space or linear attention."""
        layers = self.config.get("layer_types")
        linear = isinstance(layers, list) and "linear_attention" in layers
        return self.mamba2 or bool(self.config.get("linear")) or linear

    @property
    def biased_router(self) -> bool:
        """Whether a learnt bias corrects the router's choice (`e_score_correction_bias`)."""
        return self.mixture and (self.config.get("topk_method") == "noaux_tc" or self.kind in _BIASED)

    @property
    def images(self) -> bool:
        """Whether it has an encoder for images."""
        return "vision_config" in self.config

    @property
    def quantized(self) -> bool:
        """Whether the checkpoint itself is quantized."""
        return bool(self.config.get("quantization_config"))

    @property
    def calibrated_cache(self) -> bool:
        """Whether the checkpoint brings scales for an 8-bit key-value cache (compressed-tensors)."""
        quantization = self.config.get("quantization_config")
        return isinstance(quantization, Mapping) and bool(quantization.get("kv_cache_scheme"))


def published(view: Resolution) -> Mapping[str, Any] | None:
    """Return what the config.json of a model says whose whole name its makers gave; None for any other name.

    The name may be the maker's on the hub or that of a local folder, also of one that is not here.
    """
    model = view.config.model
    name = None if model is None else model.value if model.known else model.written
    if not isinstance(name, str):
        return None
    maker, _, last = name.rstrip("/").rpartition("/")
    is_folder = name.startswith(("/", "./", "../", "~", "$")) or name.count("/") > 1
    for of, pattern, config in _WHOLE:
        if (maker == of or is_folder) and re.fullmatch(pattern, last):
            return config
    return None


def architecture(view: Resolution) -> Architecture | Unknown:
    """Return the model's architecture; Unknown with the reason if it is not known."""
    checkpoint = view.checkpoint
    if checkpoint is not None:
        text = checkpoint.get("text_config")
        return Architecture({**checkpoint, **text} if isinstance(text, dict) else checkpoint)
    model = view.config.model
    if model is None or model.value is None:
        return Unknown("this file names no model", hangs_on=_GIVEN)
    # `$HOME/models/Qwen3-8B` leaves the folder open, but not the model.
    name = PurePosixPath(str(model.value if model.known else model.written)).name.lower()
    for pattern, config in _PUBLISHED:
        if re.match(pattern, name):
            return Architecture(config)
    if isinstance(model.value, Unknown):
        return Unknown(f"the model is not known: {model.value.reason}", hangs_on=_GIVEN)
    reason = f"the architecture of {model.value} is not known, and its config.json is not here"
    return Unknown(reason, hangs_on=f"{model.value} has no config.json here: --model FOLDER")
