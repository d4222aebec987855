"""What a recording says of an engine beside its configuration: requests, weight updates, and the trainer's own side.

Only what is certain is a trainer's fact. That a framework divides its logits by the temperature, say, is not in a
recording; `compare` finds it in the tokens.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rlaudit.recorder.deaths import death_sentences
from rlaudit.recorder.recorded_engine import RecordedEngine, Sampled
from rlaudit.recorder.recorded_weights import never_sent
from rlaudit.recorder.recording import Recording
from rlaudit.recorder.reused_blocks import stale_sentences
from rlaudit.recorder.weight_updates import PAUSING
from rlaudit.settings.trainer_facts import TrainerFacts, WeightUpdates
from rlaudit.unknown import Unknown
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING, keeps_every_token

RESET = "reset_prefix_cache"
# vLLM calls these on its workers itself while it starts (0.10.2 vllm/v1/engine/core.py:200).
_AT_START = frozenset({"initialize_cache"})
_SHOWN = 3


def recorded_facts(one: RecordedEngine, recording: Recording) -> Iterator[tuple[TrainerFacts, str]]:
    """Yield the trainer's facts that are certain, each with where it comes from."""
    calls = sum(process.records.get("trainer", 0) for process in recording.processes)
    if calls:
        yield TrainerFacts(scores_rollouts=True), f"the trainer's logprobs were recorded in {calls} calls"
    if one.all_updates:
        yield from _of_updates(one)
    readings = one.weight_readings
    if readings:
        updates = max(len(reading.updates) for reading in readings)
        faults = list(dict.fromkeys(fault for reading in readings for fault in reading.faults()))
        yield TrainerFacts(weight_faults=faults), f"the engine's weights were read after {updates} updates"
    requests = sum(process.records.get("request", 0) for process in one.all_processes)
    salted = sum(process.salted for process in one.all_processes)
    stale, cached = list(stale_sentences(one.reused)), sum(reused.cached for reused in one.reused)
    if cached and all(reused.stale is not None for reused in one.reused):
        served = stale[0] if any(reused.stale for reused in one.reused) else ""
        yield TrainerFacts(stale_prefixes=served), f"{cached} prompt tokens came from the prefix cache"
    if requests:
        note = f"{salted} of {requests} recorded requests had a cache salt"
        why = "requests had a cache salt; whether it changes with the policy is not recorded"
        yield TrainerFacts(salts_prefix_cache=Unknown(why) if salted else False), note
    if one.replicas > 1:
        yield TrainerFacts(replicas=one.replicas), f"{one.replicas} engines were built alike"


def _of_updates(one: RecordedEngine) -> Iterator[tuple[TrainerFacts, str]]:
    note = f"{len(one.all_updates)} updates were recorded"
    flying = most_in_flight(one)
    if flying is None:
        yield TrainerFacts(weight_updates=Unknown("how many requests were in flight is not recorded")), note
    else:
        when = WeightUpdates.IN_FLIGHT if flying else WeightUpdates.BETWEEN_ROLLOUTS
        yield TrainerFacts(weight_updates=when), f"{note}: {_met(flying)}"
    yield TrainerFacts(update_calls=list(ways(one))), "the methods by which weights came, as they were recorded"
    if any(name.endswith(f".{RESET}") for process in one.all_processes for name in process.hooked):
        done, of = followed_by_reset(one)
        value: Any = True if done == of else False if not done else Unknown(f"{done} of {of} updates emptied the cache")
        unsaid = sum(update.reset is None for update in one.updates)
        if unsaid:
            value = Unknown(f"{unsaid} resets met requests in flight, and this release does not say if it refused them")
        yield TrainerFacts(resets_prefix_cache=value), f"{done} of {of} updates emptied the prefix cache"
    modes: set[Any] = {update.pause for update in one.all_updates if update.pause is not None}
    clears = {update.clear_cache for update in one.all_updates if update.clear_cache is not None}
    if modes - {""}:
        mode = modes.pop() if len(modes) == 1 else Unknown("pauses had several modes")
        yield TrainerFacts(pause_mode=mode), note
    if clears:
        clear = clears.pop() if len(clears) == 1 else Unknown("some pauses cleared the cache")
        yield TrainerFacts(pause_clears_cache=clear), note
    pauses = [call for process in one.all_processes for call in process.calls if call.name in PAUSING]
    own = [call for call in pauses if call.name == "pause_generation"] or pauses
    if own:
        names = dict.fromkeys(name for call in own for name in call.arguments if not name.isdecimal())
        yield TrainerFacts(pause_arguments=list(names)), f"of {len(own)} recorded pauses"


def most_in_flight(one: RecordedEngine) -> int | None:
    """Return the most requests that an update met; None if that is unknown of all."""
    return max((update.in_flight for update in one.all_updates if update.in_flight is not None), default=None)


def ways(one: RecordedEngine) -> tuple[str, ...]:
    """Return the methods by which weights came, in any update."""
    return tuple(dict.fromkeys(name for update in one.all_updates for name in update.how))


def followed_by_reset(one: RecordedEngine) -> tuple[int, int]:
    """Return how many updates, of how many, emptied the prefix cache. The last one of each engine counts only if it
    did: the training may have ended before.
    """
    judged: list[bool] = []
    for each in one.everywhere:
        emptied = [update.reset is True or update.clear_cache is True for update in each.updates]
        judged += emptied if any(emptied[-1:]) else emptied[:-1] or emptied
    return sum(judged), len(judged)


def _met(flying: int) -> str:
    return f"at most {flying} requests in flight" if flying else "no request in flight"


def recorded_sentences(one: RecordedEngine, recording: Recording) -> Iterator[str]:
    """Yield what a reader wants to know of an engine that no setting tells."""
    yield from _of_start(one)
    yield f"packages: {', '.join(f'{name} {version}' for name, version in one.process.versions.items())}"
    yield from (_requests(sampled) for sampled in one.sampled[:_SHOWN])
    if len(one.sampled) > _SHOWN:
        yield f"{len(one.sampled) - _SHOWN} more kinds of sampling parameters, of fewer requests each"
    yield from update_sentences(one)
    if one.others:
        yield _updates_by_engine(one)
        for each, newest, missing, of in list(never_sent(one.everywhere))[:_SHOWN]:
            yield (
                f"process {each.process.pid}{_on_host(each, one)} was never sent {missing} of the {of} tensors that "
                f"process {newest.process.pid} was sent last"
            )
    yield from dict.fromkeys(sentence for reading in one.weight_readings for sentence in reading.sentences())
    yield from _of_trainer(recording)
    yield from death_sentences(recording, one.processes)


def _of_start(one: RecordedEngine) -> Iterator[str]:
    process = one.process
    alike = f"; {one.replicas} were built alike" if one.replicas > 1 else ""
    if not one.started:
        error = one.engine.error or "its configuration was not resolved"
        yield f"the engine of process {process.pid} ({one.engine.class_name}) did not start: {error}{alike}"
        return
    workers = Counter(
        f"{worker.class_name} on {worker.device}" if worker.device not in (None, "None") else str(worker.class_name)
        for each in one.all_processes
        for worker in each.workers
    )
    held = ", ".join(f"{count} x {name}" if count > 1 else name for name, count in workers.items())
    started = f"process {process.pid} built the engine with {one.engine.class_name}{alike}"
    yield f"{started}; workers: {held}" if held else f"{started}; no worker was recorded"
    models = dict.fromkeys(
        (m.class_name, m.tensors, tuple(m.dtypes)) for each in one.all_processes for m in each.models
    )
    for class_name, tensors, dtypes in models:
        yield f"model {class_name}: {tensors} tensors in {', '.join(dtypes)}"


def _requests(sampled: Sampled) -> str:
    told = {name: value for name, value in sampled.parameters.items() if _tells(name, value)}
    if sampled.most is not None:
        low, high = sampled.most
        told["max_tokens"] = low if low == high else f"{low} to {high}"
    number = "a number of requests that is not recorded" if sampled.requests is None else f"{sampled.requests} requests"
    return f"{number}: {', '.join(f'{name} {value}' for name, value in told.items())}"


def _tells(name: str, value: Any) -> bool:
    """Return whether a sampling parameter says something of what is sampled and returned."""
    if name in {"temperature", "logprobs", "max_tokens"}:
        return True
    if name == "top_k":
        return not keeps_every_token(value)
    if name in NEUTRAL_SAMPLING:
        return bool(value != NEUTRAL_SAMPLING[name])
    return (name == "n" and value != 1) or (name in {"prompt_logprobs", "stop"} and bool(value))


def update_sentences(one: RecordedEngine) -> Iterator[str]:
    """Yield how weights were updated, in sentences."""
    if not one.all_updates:
        yield "no update of weights was recorded"
    else:
        flying = most_in_flight(one)
        met = "requests in flight unknown" if flying is None else _met(flying)
        done, of = followed_by_reset(one)
        failed = sum(update.error is not None for update in one.all_updates)
        sizes = sorted({update.tensors for update in one.all_updates})
        tensors = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        yield (
            f"{len(one.all_updates)} weight updates by {', '.join(ways(one))}, {tensors} tensors each; {met}; prefix "
            f"cache emptied with {done} of {of}" + (f"; {failed} failed" if failed else "")
        )
        orders = Counter(update.order for update in one.all_updates)
        for order, number in orders.most_common(_SHOWN):
            yield f"{number} x in this order: {', then '.join(order)}"
    yield from stale_sentences(one.reused)
    called: Counter[str] = Counter()
    for process in one.all_processes:
        for call in process.calls:
            if call.method is not None and call.method not in _AT_START:
                called[call.method] += call.count
    if called:
        yield "methods called on workers: " + ", ".join(f"{name} {number} x" for name, number in called.items())


def _updates_by_engine(one: RecordedEngine) -> str:
    """Return how many updates each of several engines had. Their versions of the weights are counted one by one."""
    by_number: dict[int, list[RecordedEngine]] = {}
    for each in one.everywhere:
        by_number.setdefault(len(each.updates), []).append(each)
    if len(by_number) == 1:
        return f"each of these {len(one.everywhere)} engines had {len(one.updates)} weight updates"
    parts = []
    for number, engines in sorted(by_number.items(), reverse=True):
        named = ", ".join(
            f"process {each.process.pid}{_on_host(each, one)} ({each.tokens_since} tokens since)" for each in engines
        )
        parts.append(f"{number} in {named if len(engines) <= _SHOWN else f'{len(engines)} processes'}")
    return f"these engines had different numbers of weight updates: {'; '.join(parts)}"


def _on_host(each: RecordedEngine, one: RecordedEngine) -> str:
    hosts = {other.process.host for other in one.everywhere}
    return f" of {each.process.host}" if len(hosts) > 1 else ""


def _of_trainer(recording: Recording) -> Iterator[str]:
    for process in recording.processes:
        calls = process.records.get("trainer", 0)
        if calls:
            functions = ", ".join(process.trainer_functions) or "a function of the trainer"
            yield f"{functions} in process {process.pid} gave trainer logprobs in {calls} calls"
