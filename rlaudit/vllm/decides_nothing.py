"""Settings whose default a release may move without moving a logprob: reports keep them back if nothing sets them.

One that a config or a framework sets is shown like every other, and so is one that a finding is about.
"""

from collections.abc import Mapping

_HELD_BY_OTHERS = "what it chooses has other rows"
_LOADING = "which files are loaded, not what is in them"
_WATCHING = "what is logged, not what is computed"
_CLASS = "the class that each release brings for its own engine"

# Name -> why no decision depends on it. A name that is missing here is shown.
DECIDES_NOTHING: Mapping[str, str] = {
    "allowed_local_media_path": "which files a request may name",
    "code_revision": _LOADING,
    "collect_detailed_traces": _WATCHING,
    "config_format": _LOADING,
    # The note cascade-attention says it: two kernels for the same sums, chosen by batch.
    "disable_cascade_attn": "only for prefixes that many requests share, by kernels of the same precision",
    # From false to null: the release decides by the model. Blocks of other sizes hold the same keys and values.
    "disable_hybrid_kv_cache_manager": "how the memory of the cache is shared out among kinds of layers",
    "disable_log_stats": _WATCHING,
    "disable_nccl_for_dp_synchronization": "by which library ranks agree on the size of a batch",
    "download_dir": _LOADING,
    "flashinfer_sampler": "which kernel draws tokens from the same distribution; no logprob is of it",
    "hf_config_path": _LOADING,
    "hf_overrides": "releases write the same nothing in other ways",
    "hf_token": _LOADING,
    "ignore_patterns": _LOADING,
    # It counts only if kv_offloading_size is set.
    "kv_offloading_backend": "by which program blocks of the cache are kept elsewhere, and come back as they were",
    "max_parallel_loading_workers": _LOADING,
    "optimization_level": _HELD_BY_OTHERS,
    "otlp_traces_endpoint": _WATCHING,
    # Weak hashes of whole prefixes; rule prefix-caching-hash speaks of the one that stops the engine.
    "prefix_caching_hash_algo": "how blocks of the prefix cache are named",
    "ray_workers_use_nsight": _WATCHING,
    "reasoning_parser": "how a server cuts its answer into fields",
    "safetensors_load_strategy": _LOADING,
    "scheduler_cls": _CLASS,
    "scheduling_policy": "releases write first come, first served in other ways",
    "show_hidden_metrics_for_version": _WATCHING,
    "trust_remote_code": "whether a checkpoint's own code may be loaded: the engine stops without it",
    "use_tqdm_on_load": _WATCHING,
    "worker_cls": _CLASS,
    "worker_extension_cls": "releases write the same nothing in other ways",
}
