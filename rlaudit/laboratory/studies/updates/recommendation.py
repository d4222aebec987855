"""The sequence of calls to use, per vLLM release, as code that can be pasted, with the reason for every argument.

Only sequences that were tried and found clean are recommended, in the spelling of that release's own signatures. Where
none was, the recommendation says so instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import Version

from rlaudit.laboratory.studies.updates.cases import CaseKind
from rlaudit.laboratory.studies.updates.judge import JudgedCase
from rlaudit.layers import Verdict
from rlaudit.vllm.milestones import UPDATES_START_AND_FINISH

# Cheapest first: nothing of a flight is computed twice, then nothing is sampled twice.
PREFERENCE = (("keep", False), ("keep", True), ("wait", False), ("wait", True), ("abort", False), ("abort", True))
LOADS = {
    "reload_weights": 'await engine.collective_rpc("reload_weights", kwargs={"weights_path": folder})',
    "load_weights": 'await engine.collective_rpc("your_worker_extension_method", args=(folder,))',
    "reload_from_iterator": 'await engine.collective_rpc("your_worker_extension_method", args=(folder,))',
}
WHY_MODE = {
    "keep": "requests in flight stay; their next token comes from the new weights",
    "wait": "requests in flight finish with the old weights; slow ones hold the update up",
    "abort": "requests in flight end with finish_reason 'abort'; submit the rest of them again",
}


@dataclass(frozen=True)
class Recommendation:
    """What to do on one release with one set of levels. `code` is None where nothing tried was clean."""

    version: str
    levels: str
    code: str | None
    because: str


def recommend(cases: Sequence[JudgedCase]) -> tuple[Recommendation, ...]:
    """One recommendation for every engine start that had a matrix."""
    by_start: dict[str, list[JudgedCase]] = {}
    for judged in cases:
        if judged.case.kind is CaseKind.MATRIX:
            by_start.setdefault(judged.record.start.name, []).append(judged)
    return tuple(_of_start(matrix, cases) for matrix in by_start.values())


def _of_start(matrix: Sequence[JudgedCase], everything: Sequence[JudgedCase]) -> Recommendation:
    start = matrix[0].record.start
    levels = ", ".join(f"{factor}={level}" for factor, level in start.levels.items())
    clean = {(judged.case.mode, judged.case.clear_cache): judged for judged in matrix if is_clean(judged)}
    choice = next((clean[wanted] for wanted in PREFERENCE if wanted in clean), None)
    stale = [
        judged.parts.because
        for judged in everything
        if judged.record.start.version == start.version
        and judged.record.start.path == start.path
        and judged.case.kind in (CaseKind.MATRIX, CaseKind.PATH)
        and judged.parts is not None
        and judged.parts.stale
    ]
    caution = f"; on this build, {stale[0]} all the same" if stale else ""
    if choice is None:
        return Recommendation(start.version, levels, None, f"no sequence that was tried is clean{caution}")
    blemishes = {judged.case.name: _blemish(judged) for judged in matrix if judged.ran}
    bad = [f"{name} ({blemish})" for name, blemish in blemishes.items() if blemish is not None]
    seen = f"; not clean: {'; '.join(bad)}" if bad else ""
    return Recommendation(start.version, levels, code_for(choice), f"{choice.case.name} is clean here{seen}{caution}")


def is_clean(judged: JudgedCase) -> bool:
    """Whether a case lost nothing and served nothing stale: prefix cache, and keys and values of flights."""
    return judged.ran and _blemish(judged) is None


def _blemish(judged: JudgedCase) -> str | None:
    """Why a case that ran is not clean, in a few words; None where it is."""
    stale = judged.staleness
    if not (judged.in_flight.in_order and judged.others.in_order):
        return "requests are lost"
    if stale is None or stale.verdict is not Verdict.MATCH:
        return "stale keys and values are served" if stale is not None and stale.found else "not decided"
    if judged.continuity is not None and judged.continuity.verdict is Verdict.MISMATCH:
        return "tokens after the resume do not follow from those before"
    flight, margin = stale.flight, stale.flight_margin
    # A request that went on over the update on its old keys and values is as stale as a cached prompt.
    if flight is None or flight.high is None or margin is None or flight.high <= margin:
        return None
    k3 = "" if flight.value is None else f", k3 {flight.value:.2g}"
    return f"nothing stale is served to new requests, but those in flight go on with their old keys and values{k3}"


def code_for(judged: JudgedCase) -> str:
    """The calls of a case, as a coroutine to paste."""
    start, mode, clear = judged.record.start, judged.case.mode, judged.case.clear_cache
    version = Version(start.version)
    caching = start.levels.get("prefix-caching", "on")
    if judged.record.kind == "V0":
        return _between_steps(judged)
    why_clear = (
        "blocks in the cache and of requests in flight hold old keys and values: they are computed again"
        if clear
        else f"nothing is kept that could be stale (prefix caching {caching})"
    )
    load = LOADS.get(start.path) or "\n    ".join(_native(judged))
    if start.transport != "disk" and start.path in LOADS:
        # The worker receives what the trainer sends meanwhile.
        load = load.replace("args=(folder,)", "args=(names_dtypes_and_shapes,)")
    return "\n".join(
        [
            f"async def update_weights(engine, folder):  # vLLM {version}, prefix caching {caching}",
            "    await engine.pause_generation(",
            f"        # {WHY_MODE.get(mode, '')}",
            f'        mode="{mode}",',
            f"        # {why_clear}",
            f"        clear_cache={clear},",
            "    )",
            "    # an exception here leaves an engine that is updated in part: do not resume it",
            f"    {load}",
            "    # only now: whatever is sampled from here on comes from the new weights",
            "    await engine.resume_generation()",
        ]
    )


def _between_steps(judged: JudgedCase) -> str:
    """V0 has no pause: whoever steps the engine has to hold its loop."""
    start = judged.record.start
    wait = [
        f"    # {WHY_MODE['wait']}",
        "    while engine.has_unfinished_requests():",
        "        handle(engine.step())",
    ]
    keep = ["    # requests in flight go on with the keys and values that the old weights made"]
    return "\n".join(
        [
            f"def update_weights(engine, folder, handle):  # vLLM {start.version} (V0): no step may run meanwhile",
            *(wait if judged.case.mode == "wait" else keep),
            f"    {LOADS[start.path].removeprefix('await ')}",
            "    # False while a request holds blocks: then old keys and values stay in the cache",
            "    assert engine.reset_prefix_cache()",
        ]
    )


def _native(judged: JudgedCase) -> list[str]:
    update = "await engine.update_weights(WeightTransferUpdateRequest(update_info=...))"
    if Version(judged.record.start.version) < UPDATES_START_AND_FINISH:
        return [update]
    return ["await engine.start_weight_update()", update, "await engine.finish_weight_update()"]
