"""What a reader of figures made from a recording must know: what it is of, and what of it is in no figure."""

import json
from collections.abc import Iterator

from rlaudit.recording.reused_blocks import stale_sentences
from rlaudit.tokens.recorded.recorded_log import RecordedLog, unused_rows
from rlaudit.tokens.recorded.trainer_rows import Role

SHOWN = 6


def notes(log: RecordedLog) -> tuple[str, ...]:
    """Return what was recorded, in sentences."""
    return tuple(_notes(log))


def _notes(log: RecordedLog) -> Iterator[str]:
    processes = log.recording.processes
    releases = dict.fromkeys(
        process.versions["vllm"] for process in processes if process.engines and "vllm" in process.versions
    )
    modes = dict.fromkeys(
        str(section["logprobs_mode"])
        for process in processes
        for engine in process.engines
        for section in (engine.effective or {}).values()
        if isinstance(section, dict) and section.get("logprobs_mode") is not None
    )
    updates = sum(len(served.updates) for served in log.recording.served)
    engine = " and ".join(f"vLLM {release}" for release in releases) or "an unknown vLLM"
    mode = f", logprobs_mode {' and '.join(modes)}" if modes else ""
    yield f"recorded inside the run: {engine}{mode}; {updates} updates of the weights"
    for reused in {front.served: front.reused for front in log.fronts}.values():
        yield from stale_sentences(reused.values())
    roles = log.rows.roles()
    scored_for = dict.fromkeys(roles[caller] for calls in log.rows.scored.values() for caller in calls)
    if Role.OLD in scored_for or Role.CURRENT in scored_for:
        policy = "old policy" if Role.OLD in scored_for else "policy in training"
        yield f"these trainer logprobs are the ones that the loss used for the {policy}"
    if any(served.first_sampled for served in log.recording.served):
        yield (
            "the engine received new weights before its first sample, so give --score MODEL a model with these weights"
        )


def not_seen(log: RecordedLog) -> tuple[str, ...]:
    """Return what is missing and what is left out, in sentences."""
    return tuple(dict.fromkeys(_not_seen(log)))


def _not_seen(log: RecordedLog) -> Iterator[str]:
    for reason, count in sorted(log.left_out.items()):
        yield f"{count} recorded sequences {reason.value}, so they were left out of all figures"
    for group, tokens, sequences in log.groups[1:]:
        judged = "none" if log.group is None else str(log.group)
        yield (
            f"{sequences} sequences ({tokens} tokens) were sampled with {group} and were left out: the judged "
            f"sequences were sampled with {judged}"
        )
    if log.group is not None and json.loads(log.group.others):
        yield f"it was not tested how {log.group.others} changes the tokens"
    yield from _of_trainer(log)
    if inside := sum(sequence.inside for sequence in log.sequences):
        yield (
            f"{inside} tokens were sampled while weights were updated. They count as tokens of the version before "
            "the update"
        )
    if unknown := sum(sequence.unknown for sequence in log.sequences):
        yield f"the weights that sampled {unknown} tokens are unknown"
    numbers = [len(served.updates) for served in log.recording.served]
    if len(set(numbers)) > 1:
        yield (
            f"{len(numbers)} engines had {min(numbers)} to {max(numbers)} updates of the weights; each engine's "
            "versions are counted apart, so the lag here is too small for an engine that missed an update"
        )
    if adapters := sum(sequence.kept.lora is not None for sequence in log.sequences):
        yield f"{adapters} sequences used an adapter, whose version is unknown"
    for served in log.recording.served:
        yield from served.missing
    damaged = {sentence for sentence, _ in log.recording.damaged}
    missing = [sentence for sentence in log.recording.missing if sentence not in damaged]
    yield from missing[:SHOWN]
    if len(missing) > SHOWN:
        yield f"{len(missing) - SHOWN} more sentences on what is missing: rlaudit inspect {log.recording.path}"


def _of_trainer(log: RecordedLog) -> Iterator[str]:
    if log.is_scored:
        if log.late:
            yield f"{log.late} sequences finished after the trainer's last recorded call and were left out"
        if log.elsewhere:
            yield (
                f"{log.elsewhere} sequences were scored on another host than they were sampled on, with another clock, "
                "so the trainer's version of the weights, and the lag, are not known"
            )
        if log.alike:
            yield (
                f"{log.alike} sequences have the same tokens as one of another prompt. They were left out, since "
                "it is unknown which trainer logprobs belong to them"
            )
        for why, count in sorted(unused_rows(log).items()):
            yield f"{count} of {log.rows.rows} sequences that the trainer scored were left out: they {why.value}"
    elif log.rows.rows:
        yield f"none of {log.rows.rows} sequences that the trainer scored is a recorded completion"
    elif functions := dict.fromkeys(name for process in log.recording.processes for name in process.trainer_functions):
        yield (
            f"{' and '.join(functions)} is recorded, but gave no logprobs of a recorded completion: it was not called "
            "with such a completion, or only inside torch.compile, where nothing is recorded"
        )
