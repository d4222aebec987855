"""What a recording shows of an engine beside its configuration: requests, weight updates, and the trainer.

Only what is certain is a trainer's fact. A recording does not show, for example, that a framework divides its logits by
the temperature; `compare` finds it in the tokens.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rlaudit.recording.recorded_engine import RecordedEngine, Sampled
from rlaudit.recording.recorded_weights import never_sent
from rlaudit.recording.recording import Recording
from rlaudit.recording.reused_blocks import stale_sentences
from rlaudit.recording.weight_updates import PAUSING
from rlaudit.settings.trainer_facts import TrainerFacts, WeightUpdates
from rlaudit.unknown import Unknown
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING, keeps_every_token

RESET = "reset_prefix_cache"
# vLLM calls these on its workers itself while it starts (0.10.2 vllm/v1/engine/core.py:200).
_AT_START = frozenset({"initialize_cache"})
_SHOWN = 3


def recorded_facts(recorded: RecordedEngine, recording: Recording) -> Iterator[tuple[TrainerFacts, str]]:
    """Yield the trainer's facts that are certain, each with its origin."""
    calls = sum(len(process.trainer) for process in recording.processes)
    if calls:
        yield TrainerFacts(scores_rollouts=True), f"the trainer's logprobs were recorded in {calls} calls"
    if recorded.all_updates:
        yield from _of_updates(recorded)
    readings = recorded.weight_readings
    if readings:
        updates = max(len(reading.updates) for reading in readings)
        faults = list(dict.fromkeys(fault for reading in readings for fault in reading.faults()))
        yield TrainerFacts(weight_faults=faults), f"the engine's weights were read after {updates} updates"
    requests = sum(len(process.requests) for process in recorded.all_processes)
    salted = sum(asked.salted is True for process in recorded.all_processes for asked in process.requests)
    stale, cached = list(stale_sentences(recorded.reused)), sum(reused.cached for reused in recorded.reused)
    if cached and all(reused.stale is not None for reused in recorded.reused):
        served = stale[0] if any(reused.stale for reused in recorded.reused) else ""
        yield TrainerFacts(stale_prefixes=served), f"{cached} prompt tokens came from the prefix cache"
    if requests:
        note = f"{salted} of {requests} recorded requests had a cache salt"
        why = "requests had a cache salt; whether it changes with the policy is not recorded"
        yield TrainerFacts(salts_prefix_cache=Unknown(why) if salted else False), note
    if recorded.replicas > 1:
        yield TrainerFacts(replicas=recorded.replicas), f"{recorded.replicas} engines were built alike"


def _of_updates(recorded: RecordedEngine) -> Iterator[tuple[TrainerFacts, str]]:
    note = f"{len(recorded.all_updates)} updates were recorded"
    in_flight = most_in_flight(recorded)
    if in_flight is None:
        yield TrainerFacts(weight_updates=Unknown("how many requests were in flight is not recorded")), note
    else:
        when = WeightUpdates.IN_FLIGHT if in_flight else WeightUpdates.BETWEEN_ROLLOUTS
        yield TrainerFacts(weight_updates=when), f"{note}: {_met(in_flight)}"
    yield TrainerFacts(update_calls=list(ways(recorded))), "the methods by which weights came, as they were recorded"
    if any(name.endswith(f".{RESET}") for process in recorded.all_processes for name in process.hooked):
        emptied, judged = followed_by_reset(recorded)
        value: Any = True
        if emptied != judged:
            value = Unknown(f"{emptied} of {judged} updates emptied the cache") if emptied else False
        unknown = sum(update.reset is None for update in recorded.updates)
        if unknown:
            why = f"{unknown} resets met requests in flight, and this release does not say if it refused them"
            value = Unknown(why)
        yield TrainerFacts(resets_prefix_cache=value), f"{emptied} of {judged} updates emptied the prefix cache"
    modes: set[Any] = {update.pause for update in recorded.all_updates if update.pause is not None}
    clears = {update.clear_cache for update in recorded.all_updates if update.clear_cache is not None}
    if modes - {""}:
        mode = modes.pop() if len(modes) == 1 else Unknown("pauses had several modes")
        yield TrainerFacts(pause_mode=mode), note
    if clears:
        clear = clears.pop() if len(clears) == 1 else Unknown("some pauses cleared the cache")
        yield TrainerFacts(pause_clears_cache=clear), note
    pauses = [call for process in recorded.all_processes for call in process.calls if call.name in PAUSING]
    reported = [call for call in pauses if call.name == "pause_generation"] or pauses
    if reported:
        names = dict.fromkeys(name for call in reported for name in call.arguments if not name.isdecimal())
        yield TrainerFacts(pause_arguments=list(names)), f"of {len(reported)} recorded pauses"


def most_in_flight(recorded: RecordedEngine) -> int | None:
    """Return the most requests in flight at an update; None if that is unknown for all updates."""
    return max((update.in_flight for update in recorded.all_updates if update.in_flight is not None), default=None)


def ways(recorded: RecordedEngine) -> tuple[str, ...]:
    """Return the methods by which weights came, in any update."""
    return tuple(dict.fromkeys(name for update in recorded.all_updates for name in update.how))


def followed_by_reset(recorded: RecordedEngine) -> tuple[int, int]:
    """Return how many updates emptied the prefix cache, and how many were judged. The last update of each engine counts
    only if it emptied the cache: the training may have ended before.
    """
    judged: list[bool] = []
    for engine in recorded.everywhere:
        emptied = [update.reset is True or update.clear_cache is True for update in engine.updates]
        judged += emptied if any(emptied[-1:]) else emptied[:-1] or emptied
    return sum(judged), len(judged)


def _met(in_flight: int) -> str:
    return f"at most {in_flight} requests in flight" if in_flight else "no request in flight"


def recorded_sentences(recorded: RecordedEngine, recording: Recording) -> Iterator[str]:
    """Yield, in sentences, what no setting shows of an engine."""
    yield from _of_start(recorded)
    yield f"packages: {', '.join(f'{name} {version}' for name, version in recorded.process.versions.items())}"
    yield from (_requests(sampled) for sampled in recorded.sampled[:_SHOWN])
    if len(recorded.sampled) > _SHOWN:
        yield f"{len(recorded.sampled) - _SHOWN} more kinds of sampling parameters, of fewer requests each"
    yield from update_sentences(recorded)
    if recorded.others:
        yield _updates_by_engine(recorded)
        for engine, newest, missing, total in list(never_sent(recorded.everywhere))[:_SHOWN]:
            yield (
                f"process {engine.process.pid}{_on_host(engine, recorded)} was never sent {missing} of the {total} "
                f"tensors that process {newest.process.pid} was sent last"
            )
    yield from dict.fromkeys(sentence for reading in recorded.weight_readings for sentence in reading.sentences())
    yield from _of_trainer(recording)


def _of_start(recorded: RecordedEngine) -> Iterator[str]:
    process = recorded.process
    replicas = f"; {recorded.replicas} were built alike" if recorded.replicas > 1 else ""
    if not recorded.started:
        error = recorded.engine.error or "its configuration was not resolved"
        yield f"the engine of process {process.pid} ({recorded.engine.class_name}) did not start: {error}{replicas}"
        return
    workers = Counter(
        f"{worker.class_name} on {worker.device}" if worker.device not in (None, "None") else str(worker.class_name)
        for member in recorded.all_processes
        for worker in member.workers
    )
    worker_list = ", ".join(f"{count} x {name}" if count > 1 else name for name, count in workers.items())
    started = f"process {process.pid} built the engine with {recorded.engine.class_name}{replicas}"
    yield f"{started}; workers: {worker_list}" if worker_list else f"{started}; no worker was recorded"
    models = dict.fromkeys(
        (model.class_name, sum(model.dtypes.values()), tuple(model.dtypes))
        for member in recorded.all_processes
        for model in member.models
    )
    for class_name, tensors, dtypes in models:
        yield f"model {class_name}: {tensors} tensors in {', '.join(dtypes)}"


def _requests(sampled: Sampled) -> str:
    shown = {name: value for name, value in sampled.parameters.items() if _tells(name, value)}
    if sampled.most is not None:
        low, high = sampled.most
        shown["max_tokens"] = low if low == high else f"{low} to {high}"
    number = "a number of requests that is not recorded" if sampled.requests is None else f"{sampled.requests} requests"
    return f"{number}: {', '.join(f'{name} {value}' for name, value in shown.items())}"


def _tells(name: str, value: Any) -> bool:
    """Return whether a sampling parameter changes what is sampled or returned."""
    if name in {"temperature", "logprobs", "max_tokens"}:
        return True
    if name == "top_k":
        return not keeps_every_token(value)
    if name in NEUTRAL_SAMPLING:
        return bool(value != NEUTRAL_SAMPLING[name])
    return (name == "n" and value != 1) or (name in {"prompt_logprobs", "stop"} and bool(value))


def update_sentences(recorded: RecordedEngine) -> Iterator[str]:
    """Yield how weights were updated, in sentences."""
    if not recorded.all_updates:
        yield "no update of weights was recorded"
    else:
        in_flight = most_in_flight(recorded)
        met = "requests in flight unknown" if in_flight is None else _met(in_flight)
        emptied, judged = followed_by_reset(recorded)
        failed = sum(update.error is not None for update in recorded.all_updates)
        sizes = sorted({update.tensors for update in recorded.all_updates})
        tensors = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        yield (
            f"{len(recorded.all_updates)} weight updates by {', '.join(ways(recorded))}, {tensors} tensors each; "
            f"{met}; prefix cache emptied with {emptied} of {judged}" + (f"; {failed} failed" if failed else "")
        )
        orders = Counter(update.order for update in recorded.all_updates)
        for order, number in orders.most_common(_SHOWN):
            yield f"{number} x in this order: {', then '.join(order)}"
    yield from stale_sentences(recorded.reused)
    called: Counter[str] = Counter()
    for process in recorded.all_processes:
        for call in process.calls:
            if call.method is not None and call.method not in _AT_START:
                called[call.method] += call.count
    if called:
        yield "methods called on workers: " + ", ".join(f"{name} {number} x" for name, number in called.items())


def _updates_by_engine(recorded: RecordedEngine) -> str:
    """Return how many updates each of several engines had. Their versions of the weights are counted one by one."""
    by_number: dict[int, list[RecordedEngine]] = {}
    for engine in recorded.everywhere:
        by_number.setdefault(len(engine.updates), []).append(engine)
    if len(by_number) == 1:
        return f"each of these {len(recorded.everywhere)} engines had {len(recorded.updates)} weight updates"
    parts = []
    for number, engines in sorted(by_number.items(), reverse=True):
        engine_list = ", ".join(
            f"process {engine.process.pid}{_on_host(engine, recorded)} ({engine.tokens_since} tokens since)"
            for engine in engines
        )
        parts.append(f"{number} in {engine_list if len(engines) <= _SHOWN else f'{len(engines)} processes'}")
    return f"these engines had different numbers of weight updates: {'; '.join(parts)}"


def _on_host(engine: RecordedEngine, recorded: RecordedEngine) -> str:
    hosts = {member.process.host for member in recorded.everywhere}
    return f" of {engine.process.host}" if len(hosts) > 1 else ""


def _of_trainer(recording: Recording) -> Iterator[str]:
    for process in recording.processes:
        calls = len(process.trainer)
        if calls:
            functions = ", ".join(process.trainer_functions) or "a function of the trainer"
            yield f"{functions} in process {process.pid} gave trainer logprobs in {calls} calls"
