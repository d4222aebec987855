"""What a weight-update audit says, as tables and sentences that the text and the Markdown report share."""

from collections.abc import Sequence

from rlaudit.report.figures import damaged
from rlaudit.report.report_format import Document

Table = list[list[str]]
STALE = {"match": "none", "mismatch": "STALE", "inconclusive": "unclear", "not tested": "not tested"}
CLEAN = {True: "yes", False: "no", None: ""}
ENDS = ("completed", "aborted", "truncated", "duplicated", "lost", "failed")


def headline(document: Document) -> str:
    """The releases and the question."""
    versions = dict.fromkeys(case["version"] for case in document["weight_updates"]["cases"])
    return f"Weight updates in vLLM {', '.join(versions)}. {document['description']}"


def sequences(document: Document) -> Table:
    """The matrix: what became of requests, and what the tokens after each sequence of calls were computed from."""
    rows = [["engine", "sequence", "in flight", "others", "cached", "stale KV", "excess k3", "flights after", "clean"]]
    for case in _cases(document):
        if case["kind"] not in ("matrix", "in a row"):
            continue
        stale = case["staleness"]
        if case["problem"] or stale is None:
            rows.append([case["start"], case["name"], case["problem"] or "not judged", *[""] * 6])
            continue
        rows.append(
            [
                case["start"],
                case["name"],
                _requests(case["in_flight"]),
                _requests(case["around"]),
                str(stale["cached_tokens"]),
                STALE[stale["verdict"]],
                interval(stale["excess"], "difference"),
                interval(stale["flight"]),
                CLEAN[case["clean"]],
            ]
        )
    return rows


def lags(document: Document) -> Table:
    """Tokens in flight by the number of updates since they were sampled, and what that does to the objective."""
    rows = [["engine", "sequence", "lag", "tokens", "k3, right weights", "k2, trainer's weights", "clipped"]]
    for case in _cases(document):
        for group in case["lags"]:
            right, trainer = group["right_weights"], group["trainer_weights"]
            rows.append(
                [
                    case["start"],
                    case["name"],
                    str(group["lag"]),
                    str(group["tokens"]),
                    interval(right.get("k3")),
                    interval(trainer.get("k2")),
                    interval(trainer.get("ppo_clip_fraction")),
                ]
            )
    return rows


def parts(document: Document) -> list[str]:
    """Which parameters each way of loading reaches, a sentence for every case that was read back."""
    said = []
    for case in _cases(document):
        where = f"{case['start']}, loading by {case['path']}"
        planted = f" ({case['name']})" if case["kind"] == "planted" else ""
        if case["kind"] in ("path", "planted") and case["problem"]:
            said.append(f"{where}{planted}: refused. {case['problem']}")
        elif case["parts"]:
            said.append(f"{where}{planted}: {case['parts']['because']}. {case['parts']['sure']}")
    return said


def decay(document: Document) -> Table:
    """Stale keys and values by distance: a column for each number of tokens since the cached blocks."""
    found = [case for case in _cases(document) if case["staleness"] and case["staleness"]["verdict"] == "mismatch"]
    if not found:
        return [[]]
    distances = list(dict.fromkeys(one["tokens_from_cache"] for case in found for one in case["staleness"]["decay"]))
    rows = [["engine", "sequence", *(f"{name} tokens after" for name in distances)]]
    for case in found:
        figures = {one["tokens_from_cache"]: interval(one) for one in case["staleness"]["decay"]}
        rows.append([case["start"], case["name"], *(figures.get(name, "-") for name in distances)])
    return rows


def survival(document: Document) -> list[str]:
    """How long stale blocks live: the excess after several updates beside the one after a single update."""
    said = []
    for case in _cases(document):
        stale = case["staleness"]
        if case["kind"] != "in a row" or case["problem"] or stale is None:
            continue
        once = next(
            (
                other["staleness"]["excess"]
                for other in _cases(document)
                if other["start"] == case["start"] and other["kind"] == "matrix" and other["staleness"]
                if (other["mode"], other["clear_cache"]) == (case["mode"], case["clear_cache"])
            ),
            None,
        )
        said.append(
            f"{case['start']}: after {len(case['updates'])} updates {stale['cached_tokens']} prompt tokens are still "
            f"served from blocks of the first version: excess k3 {interval(stale['excess'], 'difference')}, "
            f"after one update {interval(once, 'difference')}"
        )
    return said


def faults(document: Document) -> list[str]:
    """Updates that had to fail: what the engine said, called itself, was left with, and whether it came back."""
    said = []
    for case in _cases(document):
        fault = case["fault"]
        if fault is None or case["problem"]:
            continue
        refused = f"refused ({fault['refused']})" if fault["refused"] else "NOT refused"
        if case["name"] == "killed":
            refused = ""
        recovers = {True: "a whole update brings it back", False: "it does not come back", None: ""}
        state = ", ".join(f"{count} {name}" for name, count in fault["state"].items())
        sentence = [
            refused,
            fault["health_said"],
            f"parameters: {state}" if state else "",
            *(f"{call} does not come back" for call in fault["hangs"]),
            recovers[fault["recovers"]],
            f"requests in flight: {_requests(case['in_flight'])}",
        ]
        said.append(f"{case['start']}: {'; '.join(part for part in sentence if part)}")
    return said


def calls(document: Document) -> list[tuple[str, str, str]]:
    """(title, reason, code) of what to call on each engine; no code where nothing that was tried is clean."""
    return [
        (f"Calls to use, vLLM {one['version']} ({one['levels']})", one["because"], one["code"] or "")
        for one in document["weight_updates"]["recommendations"]
    ]


def verdict(document: Document) -> str:
    """The layer's verdict in a line."""
    layer = next(layer for layer in document["layers"] if layer["layer"] == "inference path")
    return f"{layer['layer']}: {layer['verdict'].upper()}: {layer['because']}"


def cost(document: Document) -> str:
    """What the run took."""
    spent = document["weight_updates"]["cost"]
    said = f"{spent['seconds']:.0f} s, {spent['cells_run']} cells run, {spent['cells_kept']} kept"
    return f"{said}; {damaged(spent['damaged'])}" if spent.get("damaged") else said


def interval(found: Document | None, key: str = "value") -> str:
    """A figure with its interval; a question mark where the interval is of too few sequences."""
    if found is None or found[key] is None:
        return "-"
    if found["low"] is None:
        return f"{found[key]:.2g}"
    return f"{found[key]:.2g} [{found['low']:.2g}, {found['high']:.2g}]" + ("" if found["reliable"] else "?")


def _cases(document: Document) -> Sequence[Document]:
    found: Sequence[Document] = document["weight_updates"]["cases"]
    return found


def _requests(count: Document) -> str:
    said = [f"{count[name]} {name}" for name in ENDS if count[name]]
    leaked = [f"{count['leaked_tokens']} tokens leaked"] if count["leaked_tokens"] else []
    return ", ".join(said + leaked) or "none"
