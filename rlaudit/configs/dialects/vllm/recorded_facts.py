"""What a recording says of an engine beside its configuration: requests, weight updates, and the trainer's own side.

Only what is certain is a trainer's fact. That a framework divides its logits by the temperature, say, is not in a
recording; `compare` finds it in the tokens.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rlaudit.configs.syntax.node import Unknown
from rlaudit.recorder.recorded_engine import RecordedEngine, Sampled
from rlaudit.recorder.recording import Process, Recording
from rlaudit.recorder.update_protocol import LOAD_WEIGHTS, UpdateProtocol, update_protocol
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING, keeps_every_token

RESETS = "resets of the prefix cache"
_SHOWN = 3


def recorded_facts(one: RecordedEngine) -> Iterator[tuple[str, Any, str]]:
    """Yield the trainer's facts that are certain, each with its value and where that comes from."""
    protocol = update_protocol(one.processes)
    if protocol.updates:
        yield from _of_updates(protocol, one)
    requests, salted = (sum(found) for found in zip(*((p.records.get("request", 0), p.salted) for p in one.processes)))
    if requests:
        note = f"{salted} of {requests} recorded requests had a cache salt"
        why = "requests had a cache salt; whether it changes with the policy is not recorded"
        yield "salts_prefix_cache", Unknown(why) if salted else False, note
    yield "replicas", one.replicas, f"{one.replicas} engines were built alike"


def _of_updates(protocol: UpdateProtocol, one: RecordedEngine) -> Iterator[tuple[str, Any, str]]:
    flying = protocol.in_flight
    note = f"{len(protocol.updates)} updates were recorded"
    if flying is None:
        yield "weight_updates", Unknown("how many requests were in flight is not recorded"), note
    else:
        met = f"{note}, which met at most {flying} requests in flight"
        yield "weight_updates", "in flight" if flying else "between rollouts", met
    yield "update_calls", list(protocol.methods), "the methods by which weights came, as they were recorded"
    done, of = protocol.followed_by_reset
    if not any(absent.part == RESETS for process in one.processes for absent in process.absent):
        value: Any = True if done == of else False if not done else Unknown(f"{done} of {of} updates emptied the cache")
        yield "resets_prefix_cache", value, f"{done} of {of} updates emptied the prefix cache"
    modes = {pause.mode for pause in protocol.pauses if pause.mode is not None}
    clears = {pause.clears_cache for pause in protocol.pauses if pause.clears_cache is not None}
    called = f"of {len(protocol.pauses)} recorded pauses"
    if modes:
        yield "pause_mode", modes.pop() if len(modes) == 1 else Unknown("pauses had several modes"), called
    if clears:
        yield "pause_clears_cache", clears.pop() if len(clears) == 1 else Unknown("some cleared the cache"), called
    if protocol.pauses:
        names = dict.fromkeys(name for pause in protocol.pauses for name in pause.arguments)
        yield "pause_arguments", list(names), called


def recorded_sentences(one: RecordedEngine, recording: Recording) -> Iterator[str]:
    """Yield what a reader wants to know of an engine that no setting tells."""
    yield from _of_start(one)
    yield from (_requests(sampled) for sampled in one.sampled[:_SHOWN])
    if len(one.sampled) > _SHOWN:
        yield f"{len(one.sampled) - _SHOWN} more kinds of sampling parameters, of fewer requests each"
    yield from update_sentences(update_protocol(one.processes))
    yield from _of_trainer(recording)


def _of_start(one: RecordedEngine) -> Iterator[str]:
    process = one.process
    alike = f"; {one.replicas} were built alike" if one.replicas > 1 else ""
    if not one.started:
        error = one.engine.error or "its configuration was not resolved"
        yield f"the engine of process {process.pid} ({one.engine.class_name}) did not start: {error}{alike}"
        return
    workers = Counter(
        f"{worker.class_name} on {worker.device}" for each in one.processes for worker in each.workers
    )
    held = ", ".join(f"{count} x {name}" if count > 1 else name for name, count in workers.items())
    started = f"process {process.pid} built the engine with {one.engine.class_name}{alike}"
    yield f"{started}; workers: {held}" if held else f"{started}; no worker was recorded"
    models = dict.fromkeys((m.class_name, m.tensors, tuple(m.dtypes)) for each in one.processes for m in each.models)
    for class_name, tensors, dtypes in models:
        yield f"model {class_name}: {tensors} tensors in {', '.join(dtypes)}"


def _requests(sampled: Sampled) -> str:
    told = {name: value for name, value in sampled.parameters.items() if _tells(name, value)}
    number = "a number of requests that is not recorded" if sampled.requests is None else f"{sampled.requests} requests"
    return f"{number}: {', '.join(f'{name} {value}' for name, value in told.items())}"


def _tells(name: str, value: Any) -> bool:
    """Whether a sampling parameter says something of what is sampled and returned."""
    if name in {"temperature", "logprobs", "max_tokens"}:
        return True
    if name == "top_k":
        return not keeps_every_token(value)
    if name in NEUTRAL_SAMPLING:
        return bool(value != NEUTRAL_SAMPLING[name])
    return (name == "n" and value != 1) or (name in {"prompt_logprobs", "stop"} and bool(value))


def update_sentences(protocol: UpdateProtocol) -> Iterator[str]:
    """Yield how weights were updated, in sentences."""
    updates = protocol.updates
    if not updates:
        yield "no update of weights was recorded"
        return
    flying = protocol.in_flight
    met = "requests in flight unknown" if flying is None else f"at most {flying} requests in flight"
    done, of = protocol.followed_by_reset
    emptied = f"prefix cache emptied with {done} of {of}"
    failed = sum(update.failed > 0 for update in updates)
    yield (
        f"{len(updates)} weight updates by {', '.join(protocol.methods)}; {met}; {emptied}"
        + (f"; {failed} failed" if failed else "")
    )
    if protocol.rpc_methods:
        yield "methods called on workers: " + ", ".join(f"{name} {n} x" for name, n in protocol.rpc_methods.items())
    elif protocol.methods == (LOAD_WEIGHTS,):
        yield "the model's load_weights was called in the engine's own process, past every call of vLLM"
    pauses = Counter(f"mode={pause.mode}, clear_cache={pause.clears_cache}" for pause in protocol.pauses)
    for how, number in pauses.items():
        yield f"{number} pauses of generation with {how}"
    if protocol.resets:
        yield f"{protocol.resets} resets of the prefix cache, of which {protocol.refused} answered false"
    if protocol.sleeps:
        yield f"{protocol.sleeps} calls of sleep"


def _of_trainer(recording: Recording) -> Iterator[str]:
    for process in recording.processes:
        calls = process.records.get("trainer", 0)
        if calls:
            functions = ", ".join(trainer_functions(process)) or "a function of the trainer"
            yield f"{functions} in process {process.pid} gave trainer logprobs in {calls} calls"


def trainer_functions(process: Process) -> tuple[str, ...]:
    """Return the hooked functions that are none of vLLM's."""
    return tuple(name for name in process.hooked if not name.startswith(("vllm.", "worker.")))
