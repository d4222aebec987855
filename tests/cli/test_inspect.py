"""The inspect command: exit codes, what goes where, and what it says of what it did not see."""

import io
import json
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from toy_dialect import PLAIN, V0, V1, Desk

from rlaudit.cli.app import run
from rlaudit.report.schema import report_schema
from rlaudit.vllm.catalogue import known_versions

CACHED = PLAIN.replace("seed: 1", "enable_prefix_caching: true")
COOL = PLAIN.replace("0.7", "1.0")
BROKEN = "a: [1, 2\nb: }\n"


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (PLAIN, [], 1),
        (PLAIN, ["--exit-zero"], 0),
        (PLAIN, ["--fail-on", "never"], 0),
        (CACHED, ["--ignore", "toy-raw"], 0),
        (CACHED, ["--ignore", "toy-raw", "--fail-on", "warning"], 1),
        (PLAIN, ["--select", "toy-warm", "--fail-on", "warning"], 0),
        (PLAIN, ["--select", "toy-warm", "--fail-on", "note"], 1),
        (CACHED, ["--fail-for", "move"], 1),
        (CACHED, ["--ignore", "toy-raw", "--fail-on", "warning", "--fail-for", "move"], 0),
        (CACHED, ["--ignore", "toy-raw", "--fail-on", "warning", "--fail-for", "state"], 1),
        (COOL, ["--select", "semantic,inference-path", "--ignore", "toy-raw"], 0),
        ("a: 1\n", [], 3),
        ("a: 1\n", ["--allow-no-config"], 0),
        (BROKEN, [], 3),
        (BROKEN, ["--allow-no-config"], 3),
        (PLAIN.replace("seed: 1", "seed: 13"), ["--exit-zero"], 70),
    ],
)
def test_the_exit_code_is_the_contracts(desk: Desk, text: str, options: list[str], code: int) -> None:
    desk.file("x.yaml", text)
    assert desk.inspect("x.yaml", *options) == code
    assert f"Exit code {code}: " in desk.out
    assert "Traceback" not in desk.err


def test_a_project_that_pins_vllm_is_inspected_where_it_is_and_a_file_is_of_the_format_that_its_name_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "serve.sh").write_text("vllm serve m --logprobs-mode raw_logprobs\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "requirements.txt").write_text("vllm==0.10.2\n")
    assert run(["inspect", "--to", "0.18.1", "--output", "report.html", "--output", "text"]) in {0, 1}
    assert "serve.sh" in capsys.readouterr().out
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "no config was named"),
        (["x.yaml", "--form", "1"], "there is no option --form"),
        (["x.yaml", "--fail-on", "bad"], "invalid choice: 'bad'"),
        (["x.yaml", "--fix=all"], "invalid choice: 'all'"),
        (["x.yaml", "--select", "toy-rew"], "did you mean toy-raw?"),
        (["x.yaml", "--ignore", "zzz"], "layers: semantic, inference-path, objective"),
        (["x.yaml", "--output", "yaml"], "unknown output format 'yaml'"),
        (["x.yaml", "--output", "json", "--output", "text"], "only one report can go to stdout"),
        (["x.yaml", "--diff", "--output", "json"], "--diff goes to stdout"),
        (["x.yaml", "--platform", "tpu"], "machine 'tpu' is not known"),
        (["x.yaml", "--output", "json:x.yaml/y.json"], "cannot be written"),
    ],
)
def test_a_command_line_that_cannot_be_meant_ends_with_2_and_one_sentence(
    desk: Desk, words: list[str], says: str
) -> None:
    desk.file("x.yaml")
    assert desk.inspect(*words) == 2
    assert says in desk.err
    assert desk.out == ""
    assert "Traceback" not in desk.err


@pytest.mark.parametrize(("before", "after"), [("new", V1), (V0, "0.7.3")])
def test_a_version_that_is_none_is_refused(desk: Desk, before: str, after: str) -> None:
    desk.file("x.yaml")
    assert desk.inspect("x.yaml", "--from", before, "--to", after, migrate=False) == 2


def test_a_named_file_that_is_not_there_does_not_hide_the_others(desk: Desk) -> None:
    desk.file("x.yaml")
    assert desk.inspect("x.yaml", "gone.yaml") == 3
    assert "toy-raw" in desk.out
    assert "gone.yaml could not be read" in desk.out
    assert "- gone.yaml: no such file or directory" in desk.out


def test_a_broken_file_in_a_folder_is_said_and_does_not_end_the_audit(desk: Desk) -> None:
    desk.file("a/x.yaml", COOL)
    desk.file("a/y.yaml", BROKEN)
    assert desk.inspect("a", "--select", "toy-warm") == 0
    assert "- a/y.yaml: " in desk.out
    assert "in line 2" in desk.out


def test_a_rule_that_fails_is_a_bug_that_hides_no_other_finding(desk: Desk) -> None:
    desk.file("x.yaml", PLAIN.replace("seed: 1", "seed: 13"))
    assert desk.inspect("x.yaml") == 70
    assert "toy-raw" in desk.out
    assert "x.yaml: rule toy-failing failed: KeyError: 'thirteen'" in desk.err


def test_standard_input_is_read_under_the_name_it_is_given(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, code in (("stdin.yaml", 1), ("x.toml", 3)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PLAIN.encode())))
        assert desk.inspect("-", "--stdin-name", name) == code
        assert name in desk.out


def test_a_release_that_is_not_catalogued_is_said_before_anything_it_is_said_to_do(desk: Desk) -> None:
    newest = known_versions()[-1]
    desk.file("x.yaml")
    desk.inspect("x.yaml", "--from", V1, "--to", "99.0", migrate=False)
    assert desk.err.startswith(f"rlaudit: vLLM 99.0 is newer than any release catalogued here: read as {newest}")
    assert f"-> 99.0 (engine V1, read as {newest})" in desk.out.splitlines()[0]


def test_detections_go_to_stderr_once_for_all_files_that_share_them(desk: Desk) -> None:
    desk.file("uv.lock", f'[[package]]\nname = "vllm"\nversion = "{V0}"\n')
    for name in ("a", "b", "c"):
        desk.file(f"conf/{name}.yaml")
    desk.inspect("conf", "--to", V1, migrate=False)
    assert desk.err == f"rlaudit: conf/a.yaml and 2 more: --from {V0}, read from uv.lock:3\n"
    assert f"vLLM {V0} (" in desk.out


def test_without_any_version_the_newest_known_stands_on_both_sides_and_that_is_said(desk: Desk) -> None:
    desk.file("x.yaml")
    assert desk.inspect("x.yaml", migrate=False) == 0
    assert "nothing says which vLLM runs" in desk.err
    assert "->" not in desk.out.splitlines()[0]


def test_files_in_projects_of_their_own_get_versions_of_their_own(desk: Desk) -> None:
    for name, version in (("a", V0), ("b", "0.9.2")):
        desk.file(f"{name}/uv.lock", f'name = "vllm"\nversion = "{version}"\n')
        desk.file(f"{name}/x.yaml")
    desk.inspect(".", "--to", V1, "--output", "json", migrate=False)
    document = json.loads(desk.out)
    assert [config["versions"]["from"] for config in document["configs"]] == [V0, "0.9.2"]
    assert document["versions"] == {"from": None, "to": None}


def test_several_reports_are_written_and_a_format_never_changes_the_exit_code(desk: Desk) -> None:
    desk.file("x.yaml")
    formats = ("text", "concise", "json", "markdown", "sarif", "junit", "github")
    words = [word for name in formats for word in ("--output", f"{name}:out/{name}")]
    assert desk.inspect("x.yaml", *words) == 1
    assert desk.out == ""
    for name in formats:
        assert "toy-raw" in (desk.folder / "out" / name).read_text()


def test_the_document_follows_the_schema_and_report_renders_it_again(desk: Desk) -> None:
    schema = report_schema(closed=True)
    desk.file("x.yaml", CACHED + "  typo: .nan\n")
    desk.file("y.yaml", "# rlaudit: ignore-file[toy-raw] known\n" + PLAIN + "---\n" + PLAIN)
    desk.file("z.yaml", BROKEN)
    assert desk.inspect("x.yaml", "y.yaml", "z.yaml", "--output", "json:r.json", "--output", "text:r.txt") == 3
    document = json.loads((desk.folder / "r.json").read_text())
    Draft202012Validator(schema).validate(document)
    assert run(["report", "r.json", "--output", "text:again.txt"]) == 3
    assert (desk.folder / "again.txt").read_text() == (desk.folder / "r.txt").read_text()


def test_a_semantic_error_is_a_mismatch_and_nothing_is_ever_a_match(desk: Desk) -> None:
    def verdicts(text: str) -> list[str]:
        desk.file("x.yaml", text)
        desk.inspect("x.yaml", "--output", "json")
        return [layer["verdict"] for layer in json.loads(desk.out)["layers"]]

    assert verdicts(PLAIN) == ["mismatch", "not tested", "not tested"]
    assert verdicts("# rlaudit: ignore-file[toy-raw] known\n" + CACHED) == ["not tested"] * 3


def test_a_mismatch_of_settings_is_wrong_if_the_command_that_confirms_it_shows_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "base.yaml"
    config.write_text("vllm_config: {vllm_kwargs: {seed: 1}}\nllm: {parameters: {temperature: 0.7}}\n")
    run(["inspect", str(config), "--from", "0.8.5", "--to", "0.18.1", "--select", "raw-logprobs", "--output", "json"])
    document = json.loads(capsys.readouterr().out)
    (found,) = document["findings"]
    assert document["layers"][0]["falsifier"] == f"{found['confirm']} shows no such mismatch"


def test_written_and_effective_stand_side_by_side(desk: Desk) -> None:
    desk.file("x.yaml", PLAIN.replace("seed: 1", "dtype: bfloat16\n    logprobs_mode: raw_logprobs"))
    desk.inspect("x.yaml", "--output", "json")
    rows = {row["name"]: row for row in json.loads(desk.out)["settings"]}
    assert rows["dtype"]["origin"] == "file"
    assert rows["dtype"]["location"]["line"] == 3
    assert not rows["dtype"]["moves"]
    assert rows["logprobs_mode"]["effective_from"] == {"absent": f"vLLM {V0} has no logprobs_mode"}
    assert rows["logprobs_mode"]["effective_to"] == "raw_logprobs"
    assert rows["temperature"]["group"] == "sampling"


def test_what_is_written_and_lost_is_named_with_its_place(desk: Desk) -> None:
    desk.file("x.yaml", PLAIN + "  typo: 3\n")
    desk.inspect("x.yaml")
    assert "- x.yaml:6:9: typo (3): toys have no such key" in desk.out
    assert "- whether toys train" in desk.out


def test_verbose_shows_the_notes(desk: Desk) -> None:
    desk.file("x.yaml", PLAIN)
    desk.inspect("x.yaml")
    assert "toy-warm" not in desk.out and "-v also shows: notes (1)" in desk.out
    desk.inspect("x.yaml", "-v")
    assert " note x.yaml:5:18 toy-warm" in desk.out
    desk.inspect("x.yaml", "--verbose", "--output", "markdown")
    assert "toy-warm" in desk.out


def test_the_words_of_a_config_cannot_move_the_cursor(desk: Desk) -> None:
    desk.file("x.yaml", PLAIN + '  typo: "\\e[2J\\u202e"\n')
    desk.inspect("x.yaml")
    assert "\x1b" not in desk.out
    assert "\u202e" not in desk.out
    assert "\\x1b[2J\\u202e" in desk.out


def test_nothing_heavy_is_imported(desk: Desk) -> None:
    import subprocess

    desk.file("x.yaml")
    code = (
        "import sys; from rlaudit.cli.app import run; run(['inspect', 'x.yaml', '--from', '0.8.5', '--to', '0.18.1']);"
        "print(*sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    finished = subprocess.run([sys.executable, "-c", code], cwd=desk.folder, capture_output=True, text=True, check=True)
    loaded = set(finished.stderr.splitlines()[-1].split())
    assert "yaml" in loaded
    assert not loaded & {
        "numpy",
        "pandas",
        "pydantic",
        "scipy",
        "torch",
        "jsonschema",
        "rich",
        "typer",
        "transformers",
        "vllm",
    }


@pytest.mark.parametrize(
    ("here", "says"),
    [("2.36", "vLLM 0.11.1 has the same defaults and runs here: use it for the ablation"), ("2.38", "")],
)
def test_a_release_that_cannot_run_on_this_processor_is_named_with_the_nearest_one_alike(
    here: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("platform.libc_ver", lambda: ("glibc", here))
    (tmp_path / "serve.sh").write_text("vllm serve m --enforce-eager\n")
    run(["inspect", str(tmp_path / "serve.sh"), "--from", "0.11.2", "--to", "0.18.1"])
    said = capsys.readouterr().err
    assert ("no CPU build of vLLM 0.11.2 runs here" in said) == bool(says) and says in said
