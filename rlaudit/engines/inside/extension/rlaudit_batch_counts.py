"""Counts, inside a vLLM worker, what each batch really ran: sampler, cascade attention, CUDA graph.

What may run does not always run: FlashInfer's sampler is not used for requests with a seed, cascade attention for short
prefixes, a graph for sizes that were not captured. So the decisions themselves are counted, by wrappers of vLLM's
functions, which behave as before; all of them are outside compiled and captured code. Written against the sources of
0.8.5 (V0 and V1), 0.18.1, 0.26.0 and 0.32.0.

Python 3.9 syntax; imports only what a vLLM environment holds.
"""

import sys

# Modules with vLLM's call of FlashInfer's sampler, and the name of the called function.
FLASHINFER_CALLS = (
    ("vllm.v1.sample.ops.topk_topp_sampler", "flashinfer_sample"),
    ("vllm.v1.worker.gpu.sample.sampler", "flashinfer_sample"),
    ("vllm.model_executor.layers.sampler", "flashinfer_top_k_top_p_sampling"),
)


def watch(runner):
    """Return counts that grow while the engine runs; None for a part that this runner lacks.

    batches: sampled ones. flashinfer_batches: those that FlashInfer drew. cascade: batches that were considered for
    cascade attention and those that used it, with the longest common prefix (tokens) and the most requests of the
    considered ones. graphs: batches by the CUDA-graph mode they were dispatched to. failed: errors by the part's name.
    """
    counts = {"batches": 0, "flashinfer_batches": 0, "cascade": None, "graphs": None, "failed": {}}
    for part in (watch_sampler, watch_cascade, watch_graphs):
        try:
            part(runner, counts)
        except Exception as error:
            counts["failed"][part.__name__] = "%s: %s" % (type(error).__name__, error)
    return counts


def watch_sampler(runner, counts):
    """Count sampled batches: V1 and V2 samplers have `sample`, V0's module only `forward`."""

    def sampled(result, arguments):
        counts["batches"] += 1

    def by_flashinfer(result, arguments):
        counts["flashinfer_batches"] += 1

    sampler = getattr(runner, "sampler", None)
    if sampler is None:
        return
    observe(sampler, "sample" if hasattr(sampler, "sample") else "forward", sampled)
    for module_name, name in FLASHINFER_CALLS:
        module = sys.modules.get(module_name)
        if getattr(module, name, None) is not None:
            observe(module, name, by_flashinfer)


def watch_cascade(runner, counts):
    """Count the runner's decisions by batch, and the requests to its attention backends.

    The V2 runner and 0.32.0 have none of them.
    """
    names = ("_compute_cascade_attn_prefix_lens", "_compute_cascade_attn_prefix_len")
    name = next((name for name in names if hasattr(runner, name)), None)
    if name is None:
        return
    cascade = {"considered": 0, "used": 0, "longest_prefix": 0, "most_requests": 0}
    counts["cascade"] = cascade

    def decided(result, arguments):
        cascade["considered"] += 1
        cascade["used"] += bool(result)

    def offered(result, arguments):
        cascade["longest_prefix"] = max(cascade["longest_prefix"], int(arguments["common_prefix_len"]))
        cascade["most_requests"] = max(cascade["most_requests"], len(arguments["query_lens"]))

    observe(runner, name, decided)
    for builder in metadata_builders(runner):
        observe(builder, "use_cascade_attention", offered)


def metadata_builders(runner):
    """Return the metadata builders: one for the model in 0.8.5, later one for each group of layers.

    A group has a method for it, except in 0.10.2.
    """
    if hasattr(runner, "attn_metadata_builder"):
        return [runner.attn_metadata_builder]
    groups = [group for groups_of_cache in getattr(runner, "attn_groups", ()) for group in groups_of_cache]
    return [getattr(group, "metadata_builder", None) or group.get_metadata_builder() for group in groups]


def watch_graphs(runner, counts):
    """Count batches by graph mode: in both runners one object chooses the graph of a batch."""
    dispatcher = getattr(runner, "cudagraph_dispatcher", None) or getattr(runner, "cudagraph_manager", None)
    if not hasattr(dispatcher, "dispatch"):
        return
    counts["graphs"] = graphs = {}

    def dispatched(result, arguments):
        mode = (result[0] if isinstance(result, tuple) else result.cg_mode).name
        graphs[mode] = graphs.get(mode, 0) + 1

    observe(dispatcher, "dispatch", dispatched)


def observe(owner, name, note):
    """Call `note(result, keyword arguments)` after every call of owner.name."""
    original = getattr(owner, name)

    def observed(*positional, **arguments):
        result = original(*positional, **arguments)
        note(result, arguments)
        return result

    setattr(owner, name, observed)
