"""`rlaudit record --redact`, and the page that is made to be shown: what is private is in neither, and what works."""

import base64
import json
import os
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded_worlds import World
from recorder_folder import Written, ids_of, numbers
from redacted_copies import redacted_copy
from trainings_with_a_stand_in import ENGINES, Ended, place, run, surroundings, words

from rlaudit.cli.app import run as rlaudit
from rlaudit.recorder.public_words import public_words
from rlaudit.recorder.recorded_lines import FIELDS
from rlaudit.recorder.recording import is_recording
from rlaudit.recorder.redaction_key import key_variables
from rlaudit.recorder.shipped.rlaudit_redaction import _RULES, VARIABLE, Redaction

USER, HOST = "alicewonder", "gpu-17.acme-corp.example"
MODEL = f"/home/{USER}/models/acme-secret-7b"
# What a training may hold and others may not read, in every place where it may stand.
PLANTED = (
    *(USER, HOST, MODEL, "acme-secret-7b", "acme confidential", "AcmeRemote", "10.20.30.40", "7B41E9ACME"),
    *("acme_note", "STOPACME", "acmeword", "777123", "777124", "777125", "acme_run_9", "hf_AbCdEfGhIjKlMnOpQrSt0123"),
    *("acme-data/prompts.jsonl", "acme_update_all", "acmecache", "acmelosses"),
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


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp(USER)))
        yield key_variables()


def trained(folder: Path, key: dict[str, str], engine: str, redact: bool) -> tuple[Path, Ended, Written]:
    here = place(folder, redact=redact, trainer_functions=("acmelosses:logprobs",))
    program = folder / "program.py"
    program.write_text(PROGRAM)
    ended = run(*ARGV, recorded=here, engine=engine, program=program, **VARIABLES, **(key if redact else {}))
    assert (ended.code, ended.stderr) == (0, "")
    return here.out, ended, here.written()


@pytest.fixture(scope="module", params=ENGINES)
def recordings(request: Any, key: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same training, recorded with --redact and without."""
    folder = tmp_path_factory.mktemp("training")
    (folder / "redacted").mkdir()
    (folder / "plain").mkdir()
    return (
        trained(folder / "redacted", key, request.param, redact=True),
        trained(folder / "plain", key, request.param, redact=False),
    )


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
    return [one for one in wanted if one in data]


def page_of(recording: Path, into: Path) -> bytes:
    assert rlaudit(["inspect", str(recording), "--output", f"html:{into}"]) in (0, 1)
    return into.read_bytes()


def test_nothing_private_is_in_any_byte_of_a_redacted_recording(recordings: Any, key: dict[str, str]) -> None:
    (redacted, ended, written), (plain, _, unredacted) = recordings
    # All of it was there to be recorded, except what no part of the recorder ever writes.
    missed = {text for text in PLANTED if not met(forms_of_text(text), bytes_below(plain))}
    assert missed == {"hf_AbCdEfGhIjKlMnOpQrSt0123"}
    assert met(forms_of_ids(ended), bytes_below(plain))
    data = bytes_below(redacted)
    assert met(private(ended), data) == []
    own = Path(key[VARIABLE])
    assert met(forms_of_text(str(own)) | forms(bytes.fromhex(own.read_text())), data) == []
    assert written.of_kind("failed") == unredacted.of_kind("failed") == unredacted.of_kind("dropped") == []
    assert {line["what"] for line in written.of_kind("dropped")} == {"the last steps of all requests"}


@pytest.mark.parametrize("redacted", [True, False])
def test_nothing_private_is_in_the_page_of_any_recording(recordings: Any, redacted: bool, tmp_path: Path) -> None:
    (folder, ended, _) = recordings[0 if redacted else 1]
    page = page_of(folder, tmp_path / "page.html")
    more = [str(folder).encode(), folder.parent.parent.name.encode(), os.uname().nodename.encode() + b"-"]
    assert met(private(ended).union(more), page) == []
    assert b"<svg" in page and b"<script" not in page and b"were left out before this page was made" in page
    assert b"methods called on workers: " in page and b"4 tensors in torch.bfloat16" in page


def test_samples_of_a_prompt_and_where_they_part_are_those_of_the_same_training(recordings: Any) -> None:
    (_, _, redacted), (_, _, plain) = recordings
    # Logprobs are kept, and tell which sequence is which.
    rows = [sorted(written.of_kind("sequence"), key=lambda one: one["logprobs"]) for written in (redacted, plain)]
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


def test_two_trainings_under_one_key_have_the_same_names_for_the_same_prompts(
    recordings: Any, key: dict[str, str], tmp_path: Path
) -> None:
    _, _, again = trained(tmp_path, key, "V1", redact=True)
    prompts = [{one["prompt"] for one in written.of_kind("prompt")} for written in (again, recordings[0][2])]
    assert prompts[0] == prompts[1] and len(prompts[0]) == 5


@pytest.mark.parametrize("world", [World(), World(raw=True), World(late=True), World(trainer=False, prompts=24)])
def test_compare_has_the_figures_of_the_unredacted_recording(world: World, tmp_path: Path) -> None:
    plain = world.write(tmp_path / "plain" / "r")
    redacted = redacted_copy(plain, tmp_path / "redacted" / "r")
    reports = [compared(folder, tmp_path) for folder in (plain, redacted)]
    shown = [without_paths(report, folder) for report, folder in zip(reports, (plain, redacted), strict=True)]
    untested = [not_tested(report) for report in shown]
    # Which token came twice is not known any more, nor whether a penalty fits; what else there is to test, is.
    assert untested[1] - untested[0] <= {"penalty", "quantised-kv"}
    for part in ("token_figures", "effects"):
        assert shown[0][part] == shown[1][part]
    assert [figures_of(report) for report in shown[:1]] == [figures_of(report) for report in shown[1:]]
    assert [one["cause"] for one in shown[0]["layers"]] == [one["cause"] for one in shown[1]["layers"]]
    assert any("--redact" in line for line in set(shown[1]["not_seen"]) - set(shown[0]["not_seen"]))


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
    redacted = redacted_copy(World().write(tmp_path / "plain"), tmp_path / "redacted")
    assert rlaudit(["compare", str(redacted), "--score", "a/model"]) == 2
    assert "--redact" in capsys.readouterr().err
    table = tmp_path / "trainer.jsonl"
    row = {"prompt_id": "0", "sample_id": "0", "token_id": [1, 2], "trainer_logprob": [-1.0, -1.0]}
    table.write_text(json.dumps(row) + "\n")
    assert rlaudit(["compare", str(redacted), str(table)]) == 3
    assert "--redact" in capsys.readouterr().err


def test_under_two_keys_what_is_hashed_is_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = World().write(tmp_path / "plain")
    file = next(plain.glob("*.jsonl"))
    file.write_text(file.read_text().replace('"written":{}', '"written":{"model":"/models/a","revision":"mine"}'))
    one, other = (redacted_copy(plain, tmp_path / str(key), bytes([key]) * 32) for key in (1, 2))
    out = tmp_path / "report.json"
    rlaudit(["diagnose", str(one), str(other), "--output", f"json:{out}"])
    assert json.loads(out.read_text())["trainings"]["differences"] == []


def test_without_its_key_a_process_runs_on_and_is_not_recorded(tmp_path: Path) -> None:
    here = place(tmp_path, redact=True)
    ended = run(1, 2, recorded=here, **{VARIABLE: str(tmp_path / "no-key")})
    assert ended.by_the_program == run(1, 2).by_the_program
    assert "this process is not recorded" in ended.stderr
    assert not here.out.exists() or not is_recording(here.out)


def test_the_key_is_its_owners_alone_and_stays(key: dict[str, str]) -> None:
    path = Path(key[VARIABLE])
    assert path.stat().st_mode & 0o777 == 0o600 and len(bytes.fromhex(path.read_text())) == 32
    assert key_variables() == key


def test_every_kind_and_field_that_is_read_has_a_rule_or_is_known_to_be_left_out() -> None:
    assert set(_RULES) == set(FIELDS)
    left_out = {(kind, name) for kind, fields in FIELDS.items() for name in fields if name not in _RULES[kind]}
    # A trainer's ids are hashed row by row.
    assert left_out == {("process", "argv"), ("process", "executable"), ("trainer", "ids")}


@pytest.mark.parametrize("kind", sorted(FIELDS))
def test_a_field_that_may_hold_anything_holds_nothing_private_afterwards(kind: str) -> None:
    public = public_words()
    rules = Redaction(bytes(32), public["words"], public["names"])
    secret = "alice wonder"
    free = {"process": "host name environment versions boot key", "engine": "class written effective error",
            "event": "what arguments result error", "sampling": "parameters", "request": "request parent lora prompt",
            "sequence": "request prompt finish stop", "failed": "hook error", "load": "error",
            "trainer": "function model", "hooks": "hooked", "model": "class", "worker": "class"}  # fmt: skip
    held: Any = {"environment": {secret: secret, "VLLM_USE_V1": secret}, "versions": {secret: "1", "vllm": secret},
                 "written": {secret: secret, "model": secret}, "effective": {"model_config": {secret: secret}},
                 "arguments": {secret: secret, "method": secret, "args": [[7, 8, secret]]},
                 "parameters": {"stop": [secret], "logit_bias": {secret: 1}}, "hooked": [secret],
                 "model": {"class": secret, secret: secret}, "result": [secret]}  # fmt: skip
    for name in free.get(kind, "").split():
        found = rules.redacted({"kind": kind, "at": 1.0, name: held.get(name, secret), "lengths": [], "ids": ""})
        assert secret not in json.dumps(found), name
    assert "wonder" not in json.dumps(rules.redacted({"kind": secret, "at": 1.0, "ids": secret}))


def test_hashes_of_beginnings_are_none_of_a_known_vocabulary() -> None:
    public = public_words()
    one, other = (Redaction(key * 32, public["words"], public["names"]) for key in (b"a", b"b"))
    ids = [1, 2, 2, 2, 3]
    assert len(set(one.beginnings(ids))) == 5
    assert list(one.beginnings(ids[:3])) == list(one.beginnings(ids))[:3]
    assert set(one.beginnings(ids)).isdisjoint(other.beginnings(ids))
    assert numbers(base64.b64encode(one.beginnings(ids).tobytes()).decode(), "<i4").min() >= 1 << 30


def test_the_command_keeps_the_recorders_folder_and_the_key_out_of_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    for name, value in surroundings(None, "V1").items():
        monkeypatch.setenv(name, value)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    into = tmp_path / "made" / "r"
    assert rlaudit(["record", "--redact", "--into", str(into), "--", *words(*ARGV, program=program)]) == 0
    assert "redacted" in capfd.readouterr().err
    assert [file.suffix for file in into.iterdir()] == [".jsonl"]
    assert (tmp_path / "made" / "r.recorder" / "settings.json").is_file()
    assert met(set().union(*map(forms_of_text, (*PLANTED, str(tmp_path)))), bytes_below(into)) == []
    assert rlaudit(["record", "--redact", "--export", str(tmp_path / "folder"), "--into", str(into)]) == 0
    exported = capfd.readouterr().out
    assert f"export {VARIABLE}={tmp_path / 'data' / 'rlaudit' / 'redaction.key'}" in exported.splitlines()
