"""`rlaudit probe` at the command line: verdicts, exit codes, formats, the config that it writes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from toy_server import NEUTRAL, Toy, serving

import rlaudit.probe.course
from rlaudit.cli.app import run

RAW = tuple(NEUTRAL)


def report(tmp_path: Path, *arguments: str) -> tuple[int, Any]:
    path = tmp_path / "report.json"
    code = run(["probe", *arguments, "--quiet", "--output", f"json:{path}"])
    return code, json.loads(path.read_text())


@pytest.fixture(scope="module")
def servers() -> Any:
    """Two servers, each of which is asked once: the tests differ in what is made of its answers."""
    probe, known = rlaudit.probe.course.probe, {}

    def probed(server: Any, *more: Any) -> Any:
        if server.address not in known:
            known[server.address] = probe(server, *more)
        return known[server.address]

    with pytest.MonkeyPatch.context() as patch, serving(Toy()) as processed, serving(Toy(leaves_out=RAW)) as raw:
        patch.setattr(rlaudit.probe.course, "probe", probed)
        yield {"processed": processed, "raw": raw}


@pytest.mark.parametrize(
    ("server", "options", "code", "causes"),
    [
        ("raw", ["--temperature", "0.7"], 1, ["raw-logprobs"]),
        ("raw", ["--temperature", "0.7", "--trainer-temperature", "1"], 0, []),
        ("raw", ["--temperature", "0.7", "--fail-on", "never"], 0, ["raw-logprobs"]),
        ("processed", ["--temperature", "0.7"], 0, []),
        ("processed", ["--temperature", "0.7", "--trainer-temperature", "1"], 1, ["trainer-temperature"]),
        ("processed", ["--top-p", "0.9"], 1, ["filters-not-replayed"]),
        ("processed", ["--top-p", "0.9", "--trainer-replays-filters"], 0, []),
        ("processed", ["--repetition-penalty", "1.1"], 1, ["penalty"]),
        ("raw", [], 0, []),
    ],
)
def test_a_verdict_is_about_what_rollouts_request_and_the_trainer_computes(
    servers: Any, tmp_path: Path, server: str, options: list[str], code: int, causes: list[str]
) -> None:
    ended, document = report(tmp_path, servers[server], *options)
    assert ended == code
    assert document["layers"][0]["causes"] == causes
    named = ["semantic", "inference path", "objective"]
    assert [layer["layer"] for layer in document["layers"]] == named
    if not options:
        assert document["layers"][0]["verdict"] == "not tested"


def test_a_move_from_processed_to_raw_logprobs_breaks_the_trainer_and_back_mends_it(
    servers: Any, tmp_path: Path
) -> None:
    options = ["--temperature", "0.7"]
    code, there = report(tmp_path, servers["processed"], servers["raw"], *options)
    assert (code, there["move"]["changes"][0]["change"]) == (1, "broken")
    assert any("processed_logprobs" in line for line in there["move"]["answer"])
    code, back = report(tmp_path, servers["raw"], servers["processed"], *options)
    assert (code, back["move"]["changes"][0]["change"]) == (0, "fixed")


def test_a_move_needs_no_trainer(servers: Any, tmp_path: Path) -> None:
    code, document = report(tmp_path, servers["processed"], servers["raw"])
    assert (code, document["move"]["changes"][0]["change"]) == (1, "changed")
    assert any("logprobs-mode" in line for line in document["move"]["answer"])
    code, document = report(tmp_path, servers["raw"], servers["raw"])
    assert (code, document["move"]["changes"][0]["change"]) == (0, "same")


def test_every_format_shows_a_probe(servers: Any, tmp_path: Path) -> None:
    forms = ("text", "concise", "markdown", "html", "junit", "sarif", "github", "gitlab")
    outputs = [f"--output={form}:{tmp_path / form}" for form in forms]
    assert run(["probe", servers["raw"], "--temperature", "0.7", "--quiet", *outputs]) == 1
    assert all((tmp_path / form).read_text().strip() for form in forms)


def test_the_config_that_is_written_is_read_by_inspect(
    servers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "served.yaml"
    assert run(["probe", servers["processed"], "--quiet", "--write-config", str(path)]) == 0
    written = yaml.safe_load(path.read_text())
    assert written["logprobs-mode"] == "processed_logprobs"
    capsys.readouterr()
    assert run(["inspect", str(path), "--from", "0.18.1", "--to", "0.32.0", "--output", "json"]) in (0, 1)
    document = json.loads(capsys.readouterr().out)
    settings = {setting["name"]: setting["written"] for setting in document["settings"]}
    assert settings["logprobs_mode"] == "processed_logprobs"


def test_a_budget_says_what_it_left_unasked(tmp_path: Path) -> None:
    with serving(Toy()) as address:
        code, document = report(tmp_path, address, "--budget", "50")
    assert code == 3
    assert any("budget" in line for line in document["not_seen"])


@pytest.mark.parametrize(
    "options", [["--key-variable", "NOT_SET"], ["--key-file", "/nowhere"], ["--temperature", "-1"], ["--tokens", "-"]]
)
def test_what_cannot_be_is_a_wrong_command_line(servers: Any, options: list[str]) -> None:
    assert run(["probe", servers["raw"], *options]) == 2
