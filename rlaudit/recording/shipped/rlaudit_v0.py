"""Requests and tokens of vLLM V0, which has logprobs of every token, asked for or not.

`RequestOutput.from_seq_group` is called for each group and step, in every front end and for every kind of output. The
sequences of a group hold the tokens themselves.
Standard library and Python 3.9.
"""

import functools
import inspect
import time

import rlaudit_recorder as recorder


def _wrap_from_seq_group(owner, name, target):
    """Look at each group before its output is made. Once a sequence and step: it has a wrapper of its own."""
    function = inspect.getattr_static(owner, name).__func__
    if getattr(function, "_rlaudit", False):
        return

    @functools.wraps(function)
    def recorded(cls, seq_group, *args, **kwargs):
        try:
            _note_group(seq_group)
        except Exception as error:
            recorder.failed(target, error)
        return function(cls, seq_group, *args, **kwargs)

    recorded._rlaudit = True
    setattr(owner, name, classmethod(recorded))
    recorder.note_hook(target)


def _note_group(group):
    """Follow a group of one sequence. That of all samples of a prompt (n > 1) comes in a nested call: not followed."""
    if len(group.seqs) != 1 or group.sampling_params is None:
        return
    process, sequence = recorder.this_process(), group.seqs[0]
    noted = getattr(group, "_rlaudit", None)
    if noted is None:
        # How many tokens are noted, and what is kept of the request.
        noted = group._rlaudit = [0, None]
        noted[1] = _requested(process, group, sequence)
    length = sequence.get_output_len()
    tokens = length - noted[0]
    if tokens > 0:
        noted[0] = length
        step = _step(process, tokens)
        if noted[1] is not None:
            noted[1].add(step, tokens)
    if group.is_finished():
        request = group.request_id
        if request in process.unfinished:
            process.unfinished.discard(request)
            process.totals["sequences"] += 1
            reasons = {"FINISHED_STOPPED": "stop", "FINISHED_LENGTH_CAPPED": "length", "FINISHED_ABORTED": "abort"}
            status = sequence.status.name
            recorder.finish(process, "v0", request, reasons.get(status, status))


def _requested(process, group, sequence):
    request = group.request_id
    process.unfinished.add(request)
    parent, mark, index = request.rpartition("_parallel_sample_")
    sample = {"index": int(index) if mark else 0, "parent": parent if mark else None}
    parts = "images or sound" if getattr(group, "multi_modal_data", None) else "text"
    lora = getattr(group.lora_request, "lora_name", None)
    prompt = list(sequence.prompt_token_ids or ())
    about = {**sample, "parts": parts, "salted": False, "lora": lora}
    kept = recorder.requested("v0", request, prompt, group.sampling_params, **about)
    if kept is not None:
        kept.held, kept.take = sequence, _take_tokens
    return kept


def _step(process, tokens):
    """Count tokens and return their step. V0 stamps none: what comes within a millisecond is of one step."""
    now, steps, totals = time.monotonic(), process.steps, process.totals
    totals["tokens"] += tokens
    if steps and now - steps[-1][0] < 1e-3:
        steps[-1][1] += tokens
    else:
        recorder.close_runs(process)
        if len(steps) >= 1000:
            recorder.put_steps(process)
        process.steps.append([now, tokens, 0])
    return process.first_step + len(process.steps) - 1


def _take_tokens(sequence):
    state = sequence.held
    sequence.ids = list(state.get_output_token_ids())
    each_token = zip(state.output_logprobs or (), sequence.ids)
    sequence.logprobs = [float(logprobs[token].logprob) for logprobs, token in each_token]
    sequence.cached = state.data.get_num_cached_tokens()


def _aborts_end(call, error):
    request = call.argument(1, "request_id")
    names = {request} if isinstance(request, str) else set(request)
    unfinished = call.process.unfinished
    for request in list(unfinished):
        if request in names or request.rpartition("_parallel_sample_")[0] in names:
            call.process.totals["aborted"] += 1
            unfinished.discard(request)
            recorder.finish(call.process, "v0", request, "abort")


HANDLERS = {"from_seq_group": _wrap_from_seq_group, "abort_request": (None, _aborts_end)}
