"""The answer of a run about weight updates: what is right, what other ways leave behind, and what to set or call."""

from collections.abc import Iterator, Sequence
from itertools import product

from rlaudit.diagnosis.updates.findings import grouped, sequences
from rlaudit.diagnosis.updates.judge import Fault, JudgedCase
from rlaudit.diagnosis.updates.parts import summary
from rlaudit.settings.trainer_facts import PauseMode

# Cheapest first: nothing of a flight is computed twice, then nothing is sampled twice. With each, whether the cache is
# cleared, and whether requests are salted.
PREFERENCE = tuple(
    product(
        (PauseMode.KEEP, PauseMode.WAIT, PauseMode.ABORT, PauseMode.NONE),
        ((False, False), (True, False), (False, True)),
    )
)
# What a fault does, and the way out, in vLLM's words.
BEHIND = {
    Fault.STALE: "Old keys and values reach new requests",
    Fault.OLD_FLIGHTS: "Requests in flight keep old keys and values",
    Fault.OLD_ADAPTER: "Requests get the old adapter",
    Fault.BROKEN: "Tokens do not follow those before the pause",
    Fault.LOST: "Requests are lost",
    Fault.UNDECIDED: "Not decided",
}
WAY_OUT = {
    Fault.STALE: "Set clear_cache=True in pause_generation, or a cache_salt per version of the weights.",
    Fault.OLD_FLIGHTS: "clear_cache=True in pause_generation computes them again; mode=wait lets requests end first.",
    Fault.OLD_ADAPTER: "Give each adapter a new lora_int_id, or set load_inplace=True.",
    Fault.BROKEN: "Set async_scheduling=False, or use mode=wait.",
    Fault.LOST: "Use another sequence of calls.",
    Fault.UNDECIDED: "More prompts decide it (--prompts, --samples).",
}
RENAMED = "Give each adapter a lora_name that no other had."
UNTIED = (
    "Start with an untied checkpoint (lm_head.weight written out, tie_word_embeddings=false), or restart the engine."
)
# Ways that a sentence names, so that it is read once.
SHOWN = 2
# A release, and how weights come to it and are loaded.
Way = tuple[str, str, str | None]


def answer(cases: Sequence[JudgedCase]) -> tuple[str, ...]:
    """Return the answer in sentences: what is right, then each fault with its way out."""
    ran = [case for case in cases if case.ran]
    return tuple(_sentences(ran)) if ran else ("Nothing is known: no way to update ran here.",)


def _sentences(ran: Sequence[JudgedCase]) -> Iterator[str]:
    ways = grouped(ran, _way)
    chosen = {way: _choice(of_way) for way, of_way in ways.items()}
    whole = {way: choice for way, choice in chosen.items() if choice and not _old_parts(ways[way])}
    for call, same in grouped(whole, lambda way: whole[way].name).items():
        yield f"Right: {call} on {_listed(same)}."
    none = [way for way, choice in chosen.items() if choice is None]
    if none:
        yield f"Nothing that was tried is right on {_listed(none)}."
    old = {way: part for way, of_way in ways.items() if (part := _old_parts(of_way))}
    for part, same in grouped(old, lambda way: old[way]).items():
        calls = dict.fromkeys(choice.name for way in same if (choice := chosen[way]) is not None)
        besides = f" All else is right there with {' or '.join(calls)}." if calls else ""
        yield f"{part} on {_listed(same)}.{besides}"
    if any(case.parts and case.parts.read_back and case.parts.read_back.old_head_behind for case in ran):
        yield UNTIED
    if any(choice is not None and choice.engine == "V0" for choice in chosen.values()):
        yield "V0 has no pause: hold the loop that steps the engine during an update."
    faulty = [(case, fault) for case in ran if (fault := case.fault) is not None]
    for (fault, of_adapter), same_fault in grouped(faulty, lambda bad: (bad[1], bad[0].of_adapter)).items():
        bad = [case for case, _ in same_fault]
        way_out = RENAMED if fault is Fault.STALE and of_adapter else WAY_OUT[fault]
        yield f"{BEHIND[fault]} on {_listed([*grouped(bad, _way)])} with {sequences(bad)}. {way_out}"


def _way(case: JudgedCase) -> Way:
    return case.version, case.path, case.brought_by


def _listed(ways: Sequence[Way]) -> str:
    names = [f"{version} ({path}{', broadcast' if by == 'broadcast' else ''})" for version, path, by in ways]
    shown = [*names[:SHOWN], *([f"{len(names) - SHOWN} more"] if len(names) > SHOWN else [])]
    return "vLLM " + " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _choice(cases: Sequence[JudgedCase]) -> JudgedCase | None:
    """Return the cheapest way that is clean wherever it was tried; of adapters the first."""
    if cases[0].of_adapter:
        return next((case for case in cases if case.clean), None)
    tried = grouped(cases, lambda case: (case.mode, (case.clear_cache, bool(case.salted))))
    return next((tried[way][0] for way in PREFERENCE if way in tried and all(case.clean for case in tried[way])), None)


def _old_parts(cases: Sequence[JudgedCase]) -> str | None:
    """Say what stayed old of the weights, if they were read back and something did."""
    read = next((case.parts for case in cases if case.leaves_parts and not case.of_adapter), None)
    if read is None:
        return None
    old = read.read_back.old if read.read_back is not None else ()
    return f"Old weights stay in {summary(old, shown=1)}" if old else "The new weights do not arrive"
