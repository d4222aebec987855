"""The first release of each behaviour of vLLM that several modules depend on, or a reader or a rule alone.

What a release declares (arguments, defaults, flags, variables) is in its catalogue; how it decides a value that a
config leaves open is in `resolution/`. This file has the rest. tests/vllm_releases/test_facts_stand_once.py keeps
versions of vLLM out of the other packages.
"""

from packaging.version import Version

# Logprobs. V1 returns raw ones before there is a choice; `processed_logprobs` lacked temperature and filters at first
# (vllm/v1/sample/sampler.py of 0.10.0 and 0.10.2, pull requests 21398 and 22387).
LOGPROBS_MODE = Version("0.10.0")
PROCESSED_IS_FINAL = Version("0.10.2")
# max_logprobs=-1 takes the limit away (vllm/v1/engine/processor.py, 0.10.0:62, 0.10.1:64).
MINUS_ONE_IS_NO_LIMIT = Version("0.10.1")
# V1 returns logprobs together with drafted tokens.
DRAFTED_WITH_LOGPROBS = Version("0.14.0")
# The server takes presence and frequency penalty from generation_config.json, too.
PENALTIES_FROM_THE_MODEL = Version("0.31.0")

# Precision. hf_overrides={"head_dtype": ...} is honoured for text generation (logits_processor.py, 0.26.0:105, pull
# request 48390); a float32 checkpoint runs as bfloat16 and not as float16 (vllm/config.py:3185); auto follows a
# checkpoint that quantises its key-value cache.
HEAD_DTYPE = Version("0.26.0")
FLOAT32_RUNS_AS_BFLOAT16 = Version("0.9.1")
CACHE_DTYPE_FROM_CHECKPOINT = Version("0.14.0")

# Engine and scheduling.
V1_ON_CPU = Version("0.9.2")
VLLM_USE_V1_IS_NOT_READ = Version("0.11.1")
HONOURS_NO_CHUNKED_PREFILL = Version("0.11.1")
NO_CASCADE_ATTENTION = Version("0.32.0")
# The rank is mixed into a shared seed (vllm/utils/torch_utils.py:542); before, data-parallel ranks draw alike.
SEED_OF_EVERY_RANK = Version("0.32.0")
# VLLM_ATTENTION_BACKEND is no longer read: the argument decides.
NO_BACKEND_VARIABLE = Version("0.15.0")
# First release -> which models run on Model Runner V2 unless the variable says otherwise (vllm/config/vllm.py).
SECOND_RUNNER = {
    Version("0.22.0"): "dense Qwen3 models",
    Version("0.23.0"): "dense Qwen3, Llama and Mistral models",
    Version("0.25.0"): "every dense generation model",
    Version("0.29.0"): "every model whose features it supports",
}
# FlashInfer samples by default where it is installed: not in between, after reports of wrong samples (pull requests
# 26859 and 40376); 0.8.5 refuses FlashInfer 0.2.3 and later, the only ones that are still around.
FLASHINFER_SAMPLES = Version("0.9.0")
FLASHINFER_ONLY_WHEN_ASKED = Version("0.11.1")
FLASHINFER_SAMPLES_AGAIN = Version("0.21.0")

# Batch invariance: VLLM_BATCH_INVARIANT is read, and is a variable that the release lists.
BATCH_INVARIANCE = Version("0.11.1")
BATCH_INVARIANCE_IS_LISTED = Version("0.19.0")

# Weight updates.
PAUSE_GENERATION = Version("0.12.0")
PAUSE_TAKES_A_MODE = Version("0.16.0")
WEIGHT_TRANSFER_CONFIG = Version("0.16.0")
INSECURE_SERIALIZATION = Version("0.9.0")  # VLLM_ALLOW_INSECURE_SERIALIZATION, which worker extensions need

# Names that vLLM does not know. The log says "Unknown vLLM environment variable" (vllm/envs.py, not in 0.16.0; 0.18.1:
# 1711); a config object rejects a key that it does not know (ConfigDict(extra="forbid") on CompilationConfig).
UNKNOWN_VARIABLE_IS_LOGGED = Version("0.17.0")
UNKNOWN_KEY_IS_REFUSED = Version("0.13.0")

# The command line. `-O3` sets a level of torch.compile up to 0.11.0 (vllm/utils/__init__.py:1896), its mode in 0.11.1
# and 0.11.2, and the optimization level from 0.12.0 (argparse_utils.py:251).
OPTIMIZATION_LEVEL = Version("0.12.0")
COMPILATION_MODE = Version("0.11.1")
COMPILATION_CONFIG_IS_NO_LEVEL = Version("0.9.2")  # before, `--compilation-config 3` (vllm/config.py, from_cli)
NO_MODEL_FLAG_FOR_SERVE = Version("0.11.1")
DOTTED_FLAGS = Version("0.9.0")  # vllm/utils.py:1391 builds JSON from them
# `8k` and `auto` as numbers (arg_utils.py:477 of 0.8.5, :240 of 0.9.1, :231 of 0.10.2, :300 of 0.14.0).
READS_SUFFIXES = {
    "max_model_len": Version("0.8.5"),
    "max_num_batched_tokens": Version("0.9.1"),
    "kv_cache_memory_bytes": Version("0.10.2"),
}
AUTO_MODEL_LEN = Version("0.14.0")
HF_OVERRIDES_MAY_BE_A_FUNCTION = Version("0.9.0")
PAIRS_ARE_NO_JSON = Version("0.10.0")  # before, `--limit-mm-per-prompt image=1,video=2` (nullable_kvs; vllm#20969)
# --config FILE: what becomes of false, lists and mappings; see configs/readers/config_file.py.
CONFIG_FILE_NEGATES, CONFIG_FILE_LISTS, CONFIG_FILE_MAPPINGS = map(Version, ("0.28.0", "0.10.2", "0.16.0"))

# Hardware: CUDA_VISIBLE_DEVICES may hold UUIDs (vllm/platforms/cuda.py, device_control_id_to_physical_device_id; 0.22.0
# and older call int() in interface.py); wheels on PyPI are for CUDA 13, those for 12.9 on vLLM's own index
# (https://wheels.vllm.ai/0.20.0/cu129 and later, which its installation page names).
# The oldest with a CPU build on the index, and the last before V1 became the default engine.
OLDEST_RUN = Version("0.8.5")
VISIBLE_UUIDS = Version("0.24.0")
CUDA_12_9_ELSEWHERE = Version("0.20.0")
# vllm/v1/serial_utils.py pickles nothing any more on its way to the engine's process, unless it is allowed to.
NOTHING_IS_PICKLED = Version("0.9.0")
