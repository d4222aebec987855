"""Requests and tokens of vLLM V0, which has logprobs of every token, asked for or not.

`RequestOutput.from_seq_group` is called for each group and step, in every front end and for every kind of output. The
sequences of a group hold the tokens themselves.
Standard library and Python 3.9.
"""

import time

import rlaudit_recorder as recorder


def _group_begins(call):
    """Follow a group of one sequence. For n > 1 the call is nested, with a group of all samples: it is passed over."""
    process = recorder._process
    depth = process.thread.__dict__.setdefault("groups", 0)
    process.thread.groups = depth + 1
    group = call.argument(1, "seq_group")
    if depth or group.sampling_params is None or len(group.seqs) != 1:
        return
    sequence, request = group.seqs[0], group.request_id
    if not hasattr(group, "_rlaudit_tokens"):
        group._rlaudit_tokens = 0
        parent, mark, index = request.rpartition("_parallel_sample_")
        sample = {"index": int(index) if mark else 0, "parent": parent if mark else None}
        parts = "images or sound" if getattr(group, "multi_modal_data", None) else "text"
        lora = getattr(group.lora_request, "lora_name", None)
        prompt = list(sequence.prompt_token_ids or ())
        about = {**sample, "parts": parts, "salted": False, "lora": lora}
        kept = recorder.requested("v0", request, prompt, group.sampling_params, **about)
        if kept is not None:
            kept.held, kept.take = sequence, _take_tokens
    tokens = sequence.get_output_len() - group._rlaudit_tokens
    if tokens > 0:
        first = group._rlaudit_tokens == 0
        group._rlaudit_tokens += tokens
        step = _step(process, tokens, (sequence.data.get_num_cached_tokens() or 0) if first else 0)
        if request in process.kept.get("v0", ()):
            process.kept["v0"][request].add(step, tokens)
    if group.is_finished() and request in process.unseen.get("v0", ()):
        process.unseen["v0"].discard(request)
        process.totals["sequences"] += 1
        reasons = {"FINISHED_STOPPED": "stop", "FINISHED_LENGTH_CAPPED": "length", "FINISHED_ABORTED": "abort"}
        recorder.finish(
            process, "v0", request, reasons.get(sequence.status.name, sequence.status.name), sequence.stop_reason
        )


def _group_ends(call, error):
    recorder._process.thread.groups -= 1


def _step(process, tokens, cached):
    """Count tokens and return their step. V0 stamps none: what comes within a millisecond is of one step."""
    recorder.close_runs(process)
    process.totals["tokens"] += tokens
    process.totals["cached"] += cached
    now = time.monotonic()
    if process.steps and now - process.steps[-1][0] < 1e-3:
        stamp, tokens_before, cached_before = process.steps.pop()
        process.steps.append((stamp, tokens_before + tokens, cached_before + cached))
    else:
        process.steps.append((now, tokens, cached))
    return process.first_step + len(process.steps) - 1


def _take_tokens(sequence):
    held = sequence.held
    sequence.ids = list(held.get_output_token_ids())
    each_token = zip(held.output_logprobs or (), sequence.ids)
    sequence.logprobs = [float(logprobs[token].logprob) for logprobs, token in each_token]
    sequence.cached = held.data.get_num_cached_tokens()


def _aborts_end(call, error):
    request = call.argument(1, "request_id")
    named = {request} if isinstance(request, str) else set(request)
    unfinished = recorder._process.unseen.get("v0", set())
    for request in list(unfinished):
        if request in named or request.rpartition("_parallel_sample_")[0] in named:
            recorder._process.totals["aborted"] += 1
            unfinished.discard(request)
            recorder.finish(recorder._process, "v0", request, "abort")


HANDLERS = {"from_seq_group": (_group_begins, _group_ends), "abort_request": (None, _aborts_end)}
