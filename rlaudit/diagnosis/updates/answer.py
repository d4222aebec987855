"""The answer of a run about weight updates: what is right, what other ways leave behind, and what to set or call."""

from collections.abc import Iterator, Sequence
from itertools import product

from rlaudit.diagnosis.updates.findings import KINDS, grouped, sequences, way_out
from rlaudit.diagnosis.updates.judge import Fault, JudgedCase, Way
from rlaudit.diagnosis.updates.parts import summary
from rlaudit.settings.trainer_facts import PauseMode

# Cheapest first: nothing of a flight is computed twice, then nothing is sampled twice. With each, whether the cache is
# cleared, and whether requests are salted.
MODES = (PauseMode.KEEP, PauseMode.WAIT, PauseMode.ABORT, PauseMode.NONE)
PREFERENCE = tuple(product(MODES, ((False, False), (True, False), (False, True))))
# Ways that a sentence names, so that it is read once.
SHOWN = 2


def answer(cases: Sequence[JudgedCase]) -> tuple[str, ...]:
    """Return the answer in sentences: what is right, then each fault with its way out."""
    ran = [case for case in cases if case.ran]
    return tuple(_sentences(ran)) if ran else ("Nothing is known: no way to update ran here.",)


def _sentences(ran: Sequence[JudgedCase]) -> Iterator[str]:
    ways = grouped(ran, lambda case: case.way)
    chosen = {way: _choice(of_way) for way, of_way in ways.items()}
    old = {way: next((case for case in of_way if case.leaves_parts), None) for way, of_way in ways.items()}
    whole = {way: choice for way, choice in chosen.items() if choice and (choice.of_adapter or not old[way])}
    for call, same in grouped(whole, lambda way: whole[way].name).items():
        yield f"Right: {call} on {_listed(same)}."
    none = [way for way, choice in chosen.items() if choice is None]
    if none:
        yield f"Nothing that was tried is right on {_listed(none)}."
    left = [(way, case) for way, case in old.items() if case is not None and not case.of_adapter]
    for part, with_part in grouped(left, lambda of_way: _old_part(of_way[1])).items():
        calls = dict.fromkeys(choice.name for way, _ in with_part if (choice := chosen[way]) is not None)
        besides = f" All else is right there with {' or '.join(calls)}." if calls else ""
        instead = _capital(way_out(Fault.PART, with_part[0][1]))
        yield f"{part} on {_listed([way for way, _ in with_part])}.{besides} {instead}."
    if any(choice is not None and choice.engine == "V0" for choice in chosen.values()):
        yield "V0 has no pause: hold the loop that steps the engine during an update."
    faulty = [(fault, case) for case in ran for fault in case.faults]
    for (fault, _), of_fault in grouped(faulty, lambda bad: (bad[0], bad[1].of_adapter)).items():
        bad = [case for _, case in of_fault]
        where = _listed([*grouped(bad, lambda case: case.way)])
        yield f"{_capital(KINDS[fault].what)} on {where} with {sequences(bad)}. {_capital(way_out(fault, bad[0]))}."


def _choice(cases: Sequence[JudgedCase]) -> JudgedCase | None:
    """Return the cheapest way that is clean wherever it was tried; of adapters the first."""
    if cases[0].of_adapter:
        return next((case for case in cases if case.clean), None)
    tried = grouped(cases, lambda case: (case.mode, (case.clear_cache, bool(case.salted))))
    return next((tried[way][0] for way in PREFERENCE if way in tried and all(case.clean for case in tried[way])), None)


def _old_part(case: JudgedCase) -> str:
    read = case.parts.read_back if case.parts is not None else None
    return f"Old weights stay in {summary(read.old, 1)}" if read and read.old else "The new weights do not arrive"


def _listed(ways: Sequence[Way]) -> str:
    names = [f"{version} ({path}{', broadcast' if by == 'broadcast' else ''})" for version, path, by in ways]
    shown = [*names[:SHOWN], *([f"{len(names) - SHOWN} more"] if len(names) > SHOWN else [])]
    return "vLLM " + " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _capital(clause: str) -> str:
    return clause if clause.startswith("clear_cache") else f"{clause[0].upper()}{clause[1:]}"
