"""A redacted copy, and the page that is made to be shown: what is private is in neither, and what works."""

import base64
import json
import os
import re
from array import array
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded_worlds import World
from recorder_folder import ids_of, numbers, read
from trainings_with_a_stand_in import ENGINES, Ended, place, run
from written_recording import FROZEN, WrittenProcess, lines_of, put_lines

from rlaudit.cli.app import run as rlaudit
from rlaudit.recording.public_words import public_words
from rlaudit.recording.recorded_lines import FIELDS
from rlaudit.recording.redaction import Redaction

USER, HOST = "alicewonder", "gpu-17.acme-corp.example"
MODEL = f"/home/{USER}/models/acme-secret-7b"
# What a training may hold and others may not read, in every place where it may stand.
PLANTED = (
    *(USER, HOST, MODEL, "acme-secret-7b", "acme confidential", "AcmeRemote", "10.20.30.40", "7B41E9ACME"),
    *("acme_note", "STOPACME", "acmeword", "777123", "777124", "777125", "acme_run_9", "hf_AbCdEfGhIjKlMnOpQrSt0123"),
    *("acme-data/prompts.jsonl", "acme_update_all", "acmecache"),
)
PROGRAM = f"""
import collections, json, os, sys
Names = collections.namedtuple("Names", "sysname nodename release version machine")
os.uname = lambda: Names("Linux", {HOST!r}, "6", "1", "x86_64")
import vllm
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import SamplingParams

def refused(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:
        print(json.dumps(["refused", str(error)]))

def sampling(**more):
    extra = {{"acme_note": "acme confidential"}}
    made = SamplingParams(n=4, max_tokens=9, logprobs=0, stop=("STOPACME",), extra_args=extra)
    vars(made).update(more)
    return made

if __name__ == "__main__":
    refused(EngineArgs(dtype="int3", model={MODEL!r}).create_engine_config)
    llm = vllm.LLM(
        model={MODEL!r}, hf_overrides={{"acme_note": "acme confidential"}},
        kv_transfer_config={{"kv_connector": "AcmeRemote", "kv_connector_extra_config": {{"server": "10.20.30.40:5"}}}},
    )
    engine = llm.llm_engine
    prompts = [[50000 + 7 * place + 131 * prompt for place in range(12)] for prompt in range(5)]
    for more in ({{}}, {{"logit_bias": {{"777123": 5.0}}, "stop_token_ids": [777124], "bad_words": ["acmeword"]}},
                 {{"allowed_token_ids": [777125, 4, 5], "temperature": 0.7}}):
        print(json.dumps(["given", llm.generate(prompts, sampling(**more), prefix="acme_run_9")]))
    refused(engine.collective_rpc, "acme_update_all", kwargs={{"path": {MODEL!r}}})
    refused(engine.collective_rpc, "update_weight", kwargs={{"name": {MODEL!r}, "dtype": "x", "shape": [1, 1]}})
    engine.sleep(level=1)
    engine.wake_up()
    engine.reset_prefix_cache()
    if hasattr(engine, "shutdown"):
        engine.shutdown()
"""
ARGV = ("--dataset", "/data/acme-data/prompts.jsonl", "--project=7B41E9ACME", "--user", USER)
VARIABLES = {
    "HF_HOME": f"/home/{USER}/hf",
    "VLLM_CACHE_ROOT": "/scratch/acmecache",
    "TRL_EXPERIMENT_7B41E9ACME": "acme confidential",
    "HF_TOKEN": "hf_AbCdEfGhIjKlMnOpQrSt0123",
    "USER": USER,
}


def copy_of(recording: Path, into: Path) -> Path:
    assert rlaudit(["record", "--redacted-copy", str(recording), str(into)]) == 0
    return into


@pytest.fixture(scope="module", params=ENGINES)
def recordings(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A redacted copy, what the training printed, and the recording that the copy was made of."""
    folder = tmp_path_factory.mktemp("training")
    here, program = place(folder), folder / "program.py"
    program.write_text(PROGRAM)
    ended = run(*ARGV, recorded=here, engine=request.param, program=program, **VARIABLES)
    assert (ended.code, ended.stderr) == (0, "")
    return copy_of(here.out, folder / "copy"), ended, here.out


def forms(data: bytes) -> set[bytes]:
    """Return the bytes as they are, in hexadecimal digits, and in base64 wherever they may begin in it."""
    found = {data, data.hex().encode(), data.hex().upper().encode()}
    for before in range(3):
        coded = base64.b64encode(bytes(before) + data)
        # What is made of other bytes, too, is no sign of these.
        found.add(coded[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6])
    return found


def forms_of_text(text: str) -> set[bytes]:
    return set().union(*(forms(text.encode(coding)) for coding in ("utf-8", "utf-16-le", "utf-16-be")))


def forms_of_ids(ended: Ended) -> set[bytes]:
    """Return every run of four ids of a prompt or a completion, as numbers and in digits."""
    found: set[bytes] = set()
    for what, samples in ended.printed:
        for prompt, _, ids, _, _ in samples if what == "given" else ():
            for tokens in (prompt, ids):
                for begin in range(len(tokens) - 3):
                    four = tokens[begin : begin + 4]
                    found |= forms(np.asarray(four, "<i4").tobytes()) | forms(np.asarray(four, "<i8").tobytes())
                    found |= {join.join(map(str, four)).encode() for join in (",", ", ", " ")}
    return found


def bytes_below(folder: Path) -> bytes:
    """Return every byte of a folder, with the names in it."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return b"\n".join([*(str(file.relative_to(folder)).encode() + b"\n" + file.read_bytes() for file in files)])


def private(ended: Ended) -> set[bytes]:
    return forms_of_ids(ended).union(*map(forms_of_text, PLANTED))


def met(wanted: set[bytes], data: bytes) -> list[bytes]:
    # The decimals of some clock hold any six digits once in a hundred runs: they are no token id.
    data = re.sub(rb"(?<=\d)\.\d{3,}", b"", data)
    return [one for one in wanted if one in data]


def page_of(recording: Path, into: Path) -> bytes:
    assert rlaudit(["inspect", str(recording), "--output", f"html:{into}"]) in (0, 1)
    return into.read_bytes()


def test_nothing_private_is_in_any_byte_of_a_redacted_copy(recordings: Any) -> None:
    copy, ended, plain = recordings
    # All of it was there to be recorded, except what no part of the recorder ever writes.
    missed = {text for text in PLANTED if not met(forms_of_text(text), bytes_below(plain))}
    assert missed == {"hf_AbCdEfGhIjKlMnOpQrSt0123"}
    assert met(forms_of_ids(ended), bytes_below(plain))
    assert met(private(ended), bytes_below(copy)) == []
    assert copy.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("of_the_copy", [True, False])
def test_nothing_private_is_in_the_page_of_any_recording(recordings: Any, of_the_copy: bool, tmp_path: Path) -> None:
    copy, ended, plain = recordings
    folder = copy if of_the_copy else plain
    page = page_of(folder, tmp_path / "page.html")
    more = [str(folder).encode(), folder.parent.parent.name.encode(), os.uname().nodename.encode() + b"-"]
    assert met(private(ended).union(more), page) == []
    assert b"<script" not in page and b"were left out before this page was made" in page
    assert b"methods called on workers: " in page and b"4 tensors in torch.bfloat16" in page


def test_samples_of_a_prompt_and_where_they_part_are_those_of_the_recording(recordings: Any) -> None:
    copy, _, plain = recordings
    # Logprobs are kept, and tell which sequence is which.
    rows = [sorted(read(one).of_kind("sequence"), key=lambda one: one["logprobs"]) for one in (copy, plain)]
    assert [one["logprobs"] for one in rows[0]] == [one["logprobs"] for one in rows[1]]
    assert len(rows[0]) == 3 * 5 * 4
    shared = [[common(ids_of(a), ids_of(b)) for a, b in combinations(own, 2)] for own in rows]
    assert shared[0] == shared[1]
    groups = [[a["prompt"] == b["prompt"] for a, b in combinations(own, 2)] for own in rows]
    assert groups[0] == groups[1] and any(groups[0])
    assert min(min(ids_of(one)) for one in rows[0]) >= 1 << 30


def common(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """Return how many ids two sequences share from their beginning."""
    return next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), -1)


def packed(folder: Path) -> Path:
    """Write a training whose trainer has prompts and completions in one row, some completions of several prompts."""
    process = WrittenProcess(folder)
    process.engine(model_config={"logprobs_mode": "processed_logprobs"})
    process.sampling()
    rng, row, scored = np.random.default_rng(3), [5, 5], [0.0, 0.0]
    masked = []
    for number in range(40):
        prompt = [900 + number // 2, 800 + number // 2, 7][: 2 + number % 4 // 2]
        # An end of sequence at once, of every prompt.
        ids = [2] if number % 5 == 0 else [*rng.integers(10, 700, int(rng.integers(3, 20))).tolist(), 2]
        logprobs = (-rng.exponential(1.0, len(ids))).tolist()
        process.sampled(prompt, ids, logprobs, a_step=1, of_request={"index": number % 2})
        near = [value - 1e-3 for value in logprobs]
        if number % 3:
            row, scored = [*row, *prompt, *ids], [*scored, *[0.0] * len(prompt), *near]
        else:
            masked.append((1 + number, 4, [-100, *ids, 0, 0], [0.0, *near, 0.0, 0.0]))
    for gradients in (False, True):
        stretches = [(0, 0, row, scored), *masked, (99, 0, [3, 3, 3], [0.0] * 3)]
        process.stretches(stretches, gradients, {**FROZEN, "number": 1, "trainable": True})
    return process.write()


WORLDS = [World(), World(raw=True), World(late=True), World(trainer=False, prompts=24)]


@pytest.mark.parametrize("write", [*(world.write for world in WORLDS), packed])
def test_compare_has_the_figures_of_the_recording(write: Callable[[Path], Path], tmp_path: Path) -> None:
    plain = write(tmp_path / "plain" / "r")
    copy = copy_of(plain, tmp_path / "copy" / "r")
    shown = [without_paths(compared(folder, tmp_path), folder) for folder in (plain, copy)]
    untested = [not_tested(report) for report in shown]
    # Which token came twice is not known any more, nor whether a penalty fits; what else there is to test, is.
    assert untested[1] - untested[0] <= {"penalty", "quantised-kv"}
    for part in ("token_figures", "effects"):
        assert shown[0][part] == shown[1][part]
    assert [figures_of(report) for report in shown[:1]] == [figures_of(report) for report in shown[1:]]
    assert [one["cause"] for one in shown[0]["layers"]] == [one["cause"] for one in shown[1]["layers"]]
    gone = {line for line in shown[0]["not_seen"] if "of the trainer's function" in line}
    assert gone <= set(shown[1]["not_seen"])


def figures_of(report: Any) -> list[dict[str, Any]]:
    """Return what was measured.

    Whether completions lack their end token is not known of hashed ids, and with it what samples of a prompt show.
    """
    told = {"limits", "layers", "objective"}
    return [{name: value for name, value in one.items() if name not in told} for one in report["comparisons"]]


def not_tested(report: Any) -> set[str]:
    """Take what is said of causes out of a report, and return which of them were not tested."""
    (attribution,) = [one.pop("attribution") or {} for one in report["comparisons"]]
    return {one["name"] for one in attribution.get("not_tested", ())}


def compared(folder: Path, into: Path) -> Any:
    rlaudit(["compare", str(folder), "--quiet", "--output", f"json:{into / 'report.json'}"])
    return json.loads((into / "report.json").read_text())


def without_paths(value: Any, folder: Path) -> Any:
    text = json.dumps(value).replace(str(folder), "r")
    return json.loads(text)


def test_what_needs_token_ids_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = copy_of(World().write(tmp_path / "plain"), tmp_path / "copy")
    assert rlaudit(["compare", str(copy), "--score", "a/model"]) == 2
    assert "a redacted recording has hashes of them" in capsys.readouterr().err
    table = tmp_path / "trainer.jsonl"
    row = {"prompt_id": "0", "sample_id": "0", "token_id": [1, 2], "trainer_logprob": [-1.0, -1.0]}
    table.write_text(json.dumps(row) + "\n")
    assert rlaudit(["compare", str(copy), str(table)]) == 3
    assert "is redacted" in capsys.readouterr().err


def test_hashes_of_two_copies_are_no_difference_and_a_copy_of_a_copy_says_the_same(tmp_path: Path) -> None:
    plain = World().write(tmp_path / "plain")
    written = b'"written":{"model":"/models/a","revision":"mine"}'
    put_lines(plain, [line.replace(b'"written":{}', written) for line in lines_of(plain)])
    one, other = (copy_of(plain, tmp_path / name / "r") for name in ("one", "other"))
    out = tmp_path / "report.json"
    rlaudit(["diagnose", str(one), str(other), "--output", f"json:{out}"])
    assert json.loads(out.read_text())["trainings"]["differences"] == []
    again = copy_of(one, tmp_path / "again" / "r")
    shown = [without_paths(compared(folder, tmp_path), folder) for folder in (one, again)]
    assert shown[0]["token_figures"] == shown[1]["token_figures"]


@pytest.mark.parametrize("words", ["plain full", "full new", "plain", "plain new more", "plain --quiet"])
def test_a_copy_is_written_of_a_recording_into_a_new_place_alone(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    World(updates=1, prompts=1).write(tmp_path / "plain")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    assert rlaudit(["record", "--redacted-copy", *words.split()]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "plain"]
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]


@pytest.mark.parametrize("set_by", ["option", "folder", "variable", "nested"])
def test_redaction_while_recording_stops_before_anything_is_written(
    set_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    older = tmp_path / "older" / ("recorder" if set_by == "nested" else "")
    older.mkdir(parents=True)
    (older / "rlaudit_recorder.py").write_text("")
    (older / "settings.json").write_text('{"prompts": 16, "redact": true, "ring": 0}')
    if set_by == "variable":
        monkeypatch.setenv("PYTHONPATH", f"{older}{os.pathsep}")
    into = tmp_path / ("older" if set_by == "nested" else "new")
    words = {"option": ["--redact", "--into", str(into), "--", "true"], "folder": ["--export", str(older)]}
    before = sorted(tmp_path.rglob("*"))
    assert rlaudit(["record", *words.get(set_by, ["--into", str(into), "--", "true"])]) == 2
    assert "--redacted-copy RECORDING OUT" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture
def rules() -> Redaction:
    public = public_words()
    return Redaction(bytes(32), public["words"], public["names"])


def test_every_kind_and_field_that_is_read_has_a_rule_or_is_known_to_be_left_out(rules: Redaction) -> None:
    redacted = {kind: rules.redacted({"kind": kind, **dict.fromkeys(fields)}) for kind, fields in FIELDS.items()}
    assert [kind for kind, found in redacted.items() if found["kind"] != kind] == []
    left_out = [(kind, name) for kind, found in redacted.items() for name in FIELDS[kind] if name not in found]
    assert left_out == [("process", "argv")]


SECRET = "alice wonder"
FREE: dict[str, dict[str, Any]] = {
    "process": {"host": SECRET, "boot": SECRET, "environment": {SECRET: SECRET, "VLLM_USE_V1": SECRET},
                "versions": {SECRET: "1", "vllm": SECRET}},
    "engine": {"class": SECRET, "error": SECRET, "written": {SECRET: SECRET, "model": SECRET},
               "effective": {"model_config": {SECRET: SECRET}}},
    "event": {"what": SECRET, "error": SECRET, "result": [SECRET],
              "arguments": {SECRET: SECRET, "method": SECRET, "args": [[7, 8, SECRET]]}},
    "sampling": {"parameters": {"stop": [SECRET], "logit_bias": {SECRET: 1}}},
    "request": dict.fromkeys(("request", "parent", "lora", "prompt"), SECRET),
    "sequence": dict.fromkeys(("request", "prompt", "finish"), SECRET),
    "failed": {"hook": SECRET, "error": SECRET},
    "load": {"error": SECRET},
    "trainer": {"model": {"class": SECRET, SECRET: SECRET}},
    "hooks": {"hooked": [SECRET]},
    "model": {"class": SECRET},
    "worker": {"class": SECRET},
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(FIELDS))
def test_a_field_that_may_hold_anything_holds_nothing_private_afterwards(kind: str, rules: Redaction) -> None:
    for name, held in FREE.get(kind, {}).items():
        found = rules.redacted({"kind": kind, "at": 1.0, name: held, "lengths": [], "ids": array("i")})
        assert SECRET not in json.dumps(found, default=list), name
    assert "wonder" not in json.dumps(rules.redacted({"kind": SECRET, "at": 1.0, "ids": SECRET}))


def test_hashes_of_beginnings_are_none_of_a_known_vocabulary() -> None:
    public = public_words()
    one, other = (Redaction(key * 32, public["words"], public["names"]) for key in (b"a", b"b"))
    ids = [1, 2, 2, 2, 3]
    assert len(set(one.beginnings(ids))) == 5
    assert list(one.beginnings(ids[:3])) == list(one.beginnings(ids))[:3]
    assert set(one.beginnings(ids)).isdisjoint(other.beginnings(ids))
    assert numbers(base64.b64encode(one.beginnings(ids).tobytes()).decode(), "<i4").min() >= 1 << 30
