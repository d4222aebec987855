"""Words and names that no user made: those of vLLM's own code, in every release that is catalogued.

A setting that takes one of a few words is shown; a setting that takes any text (a path, a name, an address) is not.
So a word is public if some release offers it as a choice, or it is one of the few that are offered nowhere.
"""

import re
from collections.abc import Iterator
from typing import TypedDict

from rlaudit.configs.dialects.vllm.server_report import RENAMED
from rlaudit.recorder.shipped.rlaudit_recorder import PACKAGES, WORKER_METHODS
from rlaudit.vllm.catalogue import Catalogue, Declared, known_versions

_WORD = re.compile(r"[A-Za-z][\w.&-]*")
# Resolved values and words of the engine core that no release lists (vllm/config, vllm/v1/engine, 0.8.5 to 0.33.0).
_WORDS = """
    EngineArgs AsyncEngineArgs external_launcher uni mp ray nccl ipc gloo vllm transformers triton cuda cpu rocm xpu tpu
    hpu true false True False NONE PIECEWISE FULL FULL_DECODE_ONLY FULL_AND_PIECEWISE FINAL_ONLY DELTA CUMULATIVE
    RAW_LOGPROBS PROCESSED_LOGPROBS RAW_LOGITS PROCESSED_LOGITS left right decoder encoder pooling generate inductor
    keep wait abort stop length error repetition kv_cache weights eager graph
    FLASH_ATTN FLASHINFER TRITON_ATTN XFORMERS TORCH_SDPA FLEX_ATTENTION FLASHMLA TRITON_MLA CUTLASS_MLA FLASH_ATTN_MLA
    FLASHINFER_MLA ROCM_FLASH ROCM_ATTN ROCM_AITER_FA CPU_ATTN TREE_ATTN FLASH_ATTN_VLLM_V1 FLASHINFER_VLLM_V1
    TRITON_ATTN_VLLM_V1 TORCH_SDPA_VLLM_V1 XFORMERS_VLLM_V1 silu gelu gelu_pytorch_tanh gelu_new relu default yarn
    linear no bf16 fp16
"""
# Of workers, by the frameworks of rlaudit/configs/dialects.
_METHODS = """
    initialize_cache initialize_from_config determine_available_memory compile_or_warm_up_model get_kv_cache_spec
    get_model_info apply_model reset_prefix_cache update_weight update_weights update_weight_cuda_ipc update_named_param
    init_weight_update_group init_process_group init_communicator close_communicator receive_weight_update
    update_weights_from_ipc update_weights_from_ipc_handles update_weights_from_collective update_weights_from_disk
    update_weight_from_tensor load_weights reload_model init_collective report_device_id init_actor
    areal_update_weights areal_init_update_weight_group add_lora remove_lora list_loras pin_lora
"""
# Of a model's config.json: sizes, and what decides a layer.
_OF_MODELS = """
    hf_config hf_text_config tie_word_embeddings hidden_size intermediate_size num_hidden_layers num_attention_heads
    num_key_value_heads head_dim vocab_size max_position_embeddings hidden_act num_experts num_experts_per_tok
    num_local_experts moe_intermediate_size sliding_window rope_theta rms_norm_eps torch_dtype dtype attention_bias
    attention_dropout initializer_range use_cache
"""
# Sections of a resolved configuration, and fields that are arguments under another name.
_OF_CONFIGURATIONS = """
    model_config cache_config parallel_config scheduler_config device_config load_config lora_config decoding_config
    structured_outputs_config observability_config compilation_config speculative_config kv_transfer_config
    weight_transfer_config attention_config kernel_config offload_config profiler_config pass_config device device_type
    world_size rank world_size_across_dp worker_cls sd_worker_cls scheduler_cls runner_type worker_extension_cls level
    splitting_ops local_cache_dir max_seq_len_to_capture is_attention_free num_gpu_blocks num_cpu_blocks backend
"""
# And arguments of every release, which stand beside the catalogued ones.
_OF_THE_RECORDER = "model tokenizer prompts limit logprobs redact trainer_functions"
# Beside vLLM's own. They decide what is computed, and whether twice the same.
_VARIABLES = """
    CUDA_VISIBLE_DEVICES CUDA_LAUNCH_BLOCKING CUDA_MODULE_LOADING CUDA_DEVICE_MAX_CONNECTIONS CUBLAS_WORKSPACE_CONFIG
    NCCL_ALGO NCCL_PROTO NCCL_NVLS_ENABLE NCCL_P2P_DISABLE NCCL_CUMEM_ENABLE NCCL_DEBUG TORCH_COMPILE_DISABLE
    TORCHDYNAMO_DISABLE TORCHINDUCTOR_MAX_AUTOTUNE PYTORCH_CUDA_ALLOC_CONF PYTORCH_NVML_BASED_CUDA_CHECK HF_HUB_OFFLINE
    HF_DATASETS_OFFLINE TRANSFORMERS_OFFLINE OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS ACCELERATE_USE_IPEX
    ACCELERATE_MIXED_PRECISION ACCELERATE_USE_FSDP ACCELERATE_USE_DEEPSPEED RANK LOCAL_RANK WORLD_SIZE PYTHONHASHSEED
    TRITON_INTERPRET HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES ASCEND_RT_VISIBLE_DEVICES
"""


class Public(TypedDict):
    """Words that are values, names that are keys."""

    words: list[str]
    names: list[str]


def public_words() -> Public:
    """Return what a redacted recording and a public page keep."""
    words = {*_WORDS.split(), *_METHODS.split(), *WORKER_METHODS, *PACKAGES}
    names = {*" ".join((_OF_MODELS, _OF_CONFIGURATIONS, _OF_THE_RECORDER, _VARIABLES)).split(), *RENAMED}
    for release in known_versions():
        for declared in _declared(Catalogue.at(release)):
            names.update(declared.name.split("."))
            words.update(word for word in declared.choices or () if _WORD.fullmatch(word))
    return {"words": sorted(words), "names": sorted(names)}


def _declared(release: Catalogue) -> Iterator[Declared]:
    for table in (release.engine, release.frontend, release.sampling, release.nested, release.variables):
        yield from table.values()
