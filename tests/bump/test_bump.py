"""What a bump is said to be: which pins move, what that brings to the configs, and when nothing can be said."""

import json
from pathlib import Path
from typing import Any

import pytest
from repository import Repository

from rlaudit.cli.app import run

CONFIG = (
    "vllm_config:\n  vllm_kwargs:\n    dtype: bfloat16\n    num_scheduler_steps: 1\nfinetune:\n  rl: {}\nworld: {}\n"
)
PIN = "torch\nvllm=={}\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """v1 and v2 move requirements.txt from 0.8.5 to 0.18.1, and HEAD is elsewhere."""
    made = Repository(tmp_path / "repository")
    made.commit("v1", {"requirements.txt": PIN.format("0.8.5"), "conf/base.yaml": CONFIG})
    made.commit("v2", {"requirements.txt": PIN.format("0.18.1")})
    made.commit("v3", {"conf/base.yaml": None})
    monkeypatch.chdir(made.root)
    return made


def bump(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, JSON report and standard error."""
    code = run(["inspect", *words, "--output", "json"])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else {}, err


def moved(report: dict[str, Any]) -> list[str]:
    return [f"{one['path']}:{one['line']} {one['from']} {one['to']}" for one in report["bump"]["moves"]]


@pytest.mark.usefixtures("repository")
def test_a_moved_pin_is_found_and_the_configs_of_the_new_tree_are_inspected_for_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, report, _ = bump(capsys, "--bump", "v1..v2")
    assert code == 1
    assert moved(report) == ["requirements.txt:2 ==0.8.5 ==0.18.1"]
    assert report["versions"] == {"from": "0.8.5", "to": "0.18.1"}
    assert {one["location"]["path"] for one in report["findings"]} == {"conf/base.yaml"}
    assert "removed-flag" in {one["rule"] for one in report["findings"]}


@pytest.mark.parametrize(
    ("today", "after", "says"),
    [
        ("transformers==4.57.6", "transformers==4.57.6", None),
        ("transformers==4.57.6", "transformers==5.6.0", "with transformers 4.57.6 (requirements.txt:3 pins 4.57.6), "),
        ("numpy", "transformers==5.6.0", "with transformers 4 or 5 (nothing here pins it), "),
    ],
)
def test_the_transformers_of_both_trees_are_compared_by_their_own_pins(
    repository: Repository, capsys: pytest.CaptureFixture[str], today: str, after: str, says: str | None
) -> None:
    repository.commit("v4", {"requirements.txt": f"{PIN.format('0.20.0')}{today}\n", "conf/base.yaml": CONFIG})
    repository.commit("v5", {"requirements.txt": f"{PIN.format('0.22.0')}{after}\n"})
    findings = bump(capsys, "--bump", "v4..v5")[1]["findings"]
    messages = [one["message"] for one in findings if one["rule"] == "rendering-moves"]
    assert (messages == []) if says is None else (says in messages[0])


def test_the_known_defects_that_the_range_crosses_are_named(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.commit("v4", {"requirements.txt": PIN.format("0.25.1"), "conf/base.yaml": CONFIG})
    repository.commit("v5", {"requirements.txt": PIN.format("0.26.0")})
    repository.commit("v6", {"requirements.txt": PIN.format("0.27.0")})
    for bumped, move in (("v4..v5", "entered"), ("v5..v6", "left")):
        advisories = {one["name"]: one for one in bump(capsys, "--bump", bumped)[1]["bump"]["advisories"]}
        assert advisories["rounded-processed-logprobs"]["move"] == move


@pytest.mark.usefixtures("repository")
def test_the_report_begins_with_what_the_move_brings_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    run(["inspect", "--bump", "v1..v2"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("  The move brings ") and "removed-flag" in lines[1]
    assert lines[3] == " What to do"
    assert any("removed-flag" in line for line in lines[4:9])


def test_what_the_old_release_has_already_is_counted_and_not_repeated(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = CONFIG.replace("dtype: bfloat16", "no_such_argument: 1")
    repository.commit("v4", {"conf/base.yaml": wrong})
    repository.commit("v5", {"requirements.txt": PIN.format("0.18.2")})
    _, report, _ = bump(capsys, "--bump", "v4..v5")
    assert "removed-flag" not in {one["rule"] for one in report["findings"]}
    assert report["bump"]["standing"] > 0


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("words", [["v1...v2"], ["v1..v2", "conf"], ["v1..v2", "conf/base.yaml"]])
def test_three_dots_and_paths_say_the_same(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    _, report, _ = bump(capsys, "--bump", *words)
    assert moved(report) == ["requirements.txt:2 ==0.8.5 ==0.18.1"]
    assert report["findings"]


def test_three_dots_begin_where_the_branch_did(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.git("checkout", "-q", "-b", "feature", "v1")
    repository.commit("f1", {"notes.txt": "x"})
    assert bump(capsys, "--bump", "main..feature")[1]["bump"]["moves"]
    code, report, err = bump(capsys, "--bump", "main...feature")
    assert (code, report["bump"]["moves"]) == (0, [])
    assert "no pin of vLLM moves from where feature left main to feature" in err


def test_one_revision_is_held_against_the_files_as_they_are(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository.root / "requirements.txt").write_text(PIN.format("0.20.0"))
    (repository.root / "base.yaml").write_text(CONFIG)
    _, report, _ = bump(capsys, "--bump", "HEAD")
    assert moved(report) == ["requirements.txt:2 ==0.18.1 ==0.20.0"]
    assert report["configs"][0]["path"] == "base.yaml"


def test_two_folders_need_no_git(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, version in (("old", "0.8.5"), ("new", "0.18.1")):
        (tmp_path / name / ".github" / "workflows").mkdir(parents=True)
        (tmp_path / name / ".github" / "workflows" / "ci.yml").write_text(f"- run: pip install vllm=={version}\n")
        (tmp_path / name / "base.yaml").write_text(CONFIG)
    code, report, _ = bump(capsys, "--bump", str(tmp_path / "old"), str(tmp_path / "new"))
    assert code == 1
    assert moved(report) == [".github/workflows/ci.yml:1 ==0.8.5 ==0.18.1"]


def test_pins_that_disagree_are_said_and_the_lock_file_is_believed(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = 'name = "vllm"\nversion = "{}"\n'
    files = {"uv.lock": lock.format("0.9.0"), "old/Dockerfile": "FROM vllm/vllm-openai:v0.8.5\n", "base.yaml": CONFIG}
    repository.commit("v4", files)
    repository.commit("v5", {"uv.lock": lock.format("0.18.1"), "requirements.txt": PIN.format("0.20.0")})
    _, report, err = bump(capsys, "--bump", "v4..v5")
    assert report["versions"] == {"from": "0.9.0", "to": "0.18.1"}
    said = "the pins disagree, and uv.lock is believed: requirements.txt moves 0.18.1 to 0.20.0"
    assert said in report["bump"]["said"]
    assert "pins that do not move with it: old/Dockerfile:1 says 0.8.5" in report["bump"]["said"]
    assert said in err


@pytest.mark.parametrize(
    ("was", "now", "versions"),
    [
        (">=0.17.0,<=0.24.0", ">=0.17.0,<=0.25.1", ("0.24.0", "0.25.1")),
        (">=0.24.0", ">=0.26.0", ("0.24.0", "0.26.0")),
        ("==0.24.0", "==0.25.0", ("0.24.0", "0.25.0")),
        ("==0.25.0", "==0.24.0", ("0.25.0", "0.24.0")),
    ],
)
def test_a_range_stands_for_the_end_that_moves(
    repository: Repository, capsys: pytest.CaptureFixture[str], was: str, now: str, versions: tuple[str, str]
) -> None:
    for tag, clauses in (("v4", was), ("v5", now)):
        repository.commit(tag, {"requirements.txt": f"vllm{clauses}\n", "base.yaml": CONFIG})
    _, report, _ = bump(capsys, "--bump", "v4..v5")
    assert (report["versions"]["from"], report["versions"]["to"]) == versions


def test_the_tree_is_inspected_as_it_was_with_its_own_settings(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.commit("v4", {"base.yaml": CONFIG, "rlaudit.toml": 'ignore = []\nfail-on = "never"\n'})
    repository.commit("v5", {"requirements.txt": PIN.format("0.20.0")})
    repository.commit("v6", {"rlaudit.toml": "fail-on = 1\n", "base.yaml": None})
    assert bump(capsys, "--bump", "v4..v5")[0] == 0


@pytest.mark.parametrize(
    ("files", "code", "says"),
    [
        ({"notes.txt": "x"}, 0, "no pin of vLLM moves from v3 to v4"),
        ({"requirements.txt": "torch\n"}, 0, "no pin of vLLM moves from v3 to v4"),
        ({"requirements.txt": "vllm @ git+https://github.com/vllm-project/vllm@1ff9d33\n"}, 3, "not from one known"),
        ({"requirements.txt": PIN.format("0.6.3")}, 3, "not from one known release to another"),
        ({"requirements.txt": PIN.format("0.20.0")}, 3, ""),
    ],
)
def test_where_nothing_is_compared_a_sentence_says_why(
    repository: Repository, capsys: pytest.CaptureFixture[str], files: dict[str, str | None], code: int, says: str
) -> None:
    repository.commit("v4", files)
    found, _, err = bump(capsys, "--bump", "v3..v4")
    assert found == code
    assert says in err


def test_no_pin_at_all_is_an_audit_that_is_not_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Repository(tmp_path / "empty")
    made.commit("v1", {"a.txt": "x"})
    made.commit("v2", {"a.txt": "y"})
    words = ("--bump", "v1..v2", str(made.root))
    assert bump(capsys, *words)[0] == 3
    assert bump(capsys, *words, "--allow-no-config")[0] == 0


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["v1..nowhere"], 2, "'nowhere' is no revision of"),
        (["--bump=-x..v1"], 2, "'-x' is no revision of"),
        (["v1..v2", "/"], 2, "/: no git repository"),
        (["v1..v2", "--from", "0.8.5"], 2, "leave them out"),
        (["v1..v2", "--fix"], 2, "--bump changes no file"),
        (["v1..v2", "-"], 2, "standard input is in none"),
        (["conf"], 2, ""),
    ],
)
def test_what_cannot_be_meant_ends_with_2_and_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
) -> None:
    found, _, err = bump(capsys, *([] if words[0].startswith("--bump") else ["--bump"]), *words)
    assert found == code
    assert says in err
    assert "Traceback" not in err


def test_a_shallow_clone_says_what_to_fetch(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.root}", str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    code, _, err = bump(capsys, "--bump", "HEAD~2..HEAD")
    assert code == 3
    assert "HEAD~2 is not in this shallow clone" in err
    assert "fetch-depth" in err


def test_nothing_of_a_hostile_tree_leaves_its_folder(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret.yaml").write_text(CONFIG)
    (repository.root / "out.yaml").symlink_to("../../secret.yaml")
    (repository.root / "inside.yaml").symlink_to("base.yaml")
    (repository.root / "folder").symlink_to("/")
    repository.commit("v4", {"base.yaml": CONFIG, ".gitattributes": "* filter=evil\n"})
    repository.git("config", "filter.evil.smudge", f"touch {tmp_path}/ran")
    repository.commit("v5", {"requirements.txt": PIN.format("0.20.0")})
    _, report, _ = bump(capsys, "--bump", "v4..v5")
    assert [one["path"] for one in report["configs"]] == ["base.yaml"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("output", ["text", "markdown", "html", "concise", "github", "junit", "sarif"])
def test_every_format_tells_it(capsys: pytest.CaptureFixture[str], output: str) -> None:
    assert run(["inspect", "--bump", "v1..v2", "--output", output]) == 1
    out, _ = capsys.readouterr()
    assert "removed-flag" in out
    if output in {"text", "markdown", "html"}:
        assert "requirements.txt:2" in out
