"""An advisory is listed, explained, selected, suppressed and reported as a rule is, in every format."""

import json
from pathlib import Path

import pytest

from rlaudit.cli.app import run
from rlaudit.rules.advisories import known_advisories

NAME = "routed-experts-refuse-async"
SERVER = "vllm serve Qwen/Qwen3-30B-A3B --enable-return-routed-experts\n"


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert run(list(words)) == code
    return capsys.readouterr().out


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("serve.sh").write_text(SERVER)
    return "serve.sh"


def test_every_advisory_is_listed_with_its_window_and_its_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    lines = {line.split()[0]: line for line in printed(capsys, "list", "advisories").splitlines()}
    assert list(lines) == sorted(known_advisories())
    for name, advisory in known_advisories().items():
        assert str(advisory.window) in lines[name]
        assert lines[name].endswith(advisory.sentence)


def test_the_advisories_of_a_framework_are_listed_apart(capsys: pytest.CaptureFixture[str]) -> None:
    names = [line.split()[0] for line in printed(capsys, "list", "advisories", "--framework", "ms_swift").splitlines()]
    assert names == [name for name, advisory in known_advisories().items() if advisory.of == "ms-swift"]
    assert run(["list", "advisories", "--framework", "nobody"]) == run(["list", "rules", "--framework", "trl"]) == 2


@pytest.mark.parametrize(("release", "code"), [("1.6.0", 1), ("1.10.0", 0)])
def test_a_pin_decides_and_stands_in_the_message(
    release: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("GRPOConfig(use_vllm=True, vllm_mode='colocate', vllm_enable_sleep_mode=True)\n")
    Path("uv.lock").write_text(f'[[package]]\nname = "trl"\nversion = "{release}"\n')
    arguments = ["inspect", "train.py", "--from", "0.18.1", "--to", "0.19.0"]
    text = printed(capsys, *arguments, code=code)
    assert ("trl 1.6.0 (uv.lock:3 pins 1.6.0) is among the affected releases (0.28.0 to 1.9.0)" in text) is bool(code)
    assert ("Take trl 1.10.0 or later (for trl-reloads-first-weights" in text) is bool(code)
    given = printed(capsys, *arguments, "--framework", "trl==1.5.0", code=1)
    assert "trl 1.5.0 (--framework pins 1.5.0) is among the affected releases" in given


@pytest.mark.parametrize(("given", "said"), [((), True), (("--model", "Qwen/Qwen3-8B"), False)])
def test_a_defect_that_one_fact_leaves_open_is_a_line_of_the_first_screen(
    given: tuple[str, ...], said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("GRPOConfig(use_vllm=True, vllm_mode='colocate')\n")
    text = printed(capsys, "inspect", "train.py", "--from", "0.18.1", "--to", "0.20.0", *given)
    first = text.partition("the move")[0]
    assert ("These known defects may occur here: experts-swapped-by-plain-loads" in first) is said
    assert ("(the model is not known: --model NAME). See: rlaudit explain" in first) is said


def test_a_move_lists_what_it_enters_leaves_and_keeps(capsys: pytest.CaptureFixture[str]) -> None:
    entered, left, kept = (
        printed(capsys, "list", "advisories", "--from", "0.20.2", "--to", "0.21.0").rstrip().split("\n\n")
    )
    assert entered.startswith("Entered: 0.21.0 has them, 0.20.2 has not (")
    assert NAME in entered
    assert left.startswith("Left: 0.20.2 has them, 0.21.0 has not (")
    assert "graphs-keep-replaced-experts" in left
    assert "lost-token-window" in kept


@pytest.mark.parametrize(
    "words",
    [
        ("advisories", "--to", "0.21.0"),
        ("rules", "--from", "0.20.2", "--to", "0.21.0"),
        ("advisories", "--from", "x", "--to", "0.21.0"),
    ],
)
def test_half_a_move_and_another_list_are_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", *words]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", known_advisories())
def test_an_explanation_has_every_edge_and_what_to_do(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "explain", name)
    words = " ".join(text.split())
    advisory = known_advisories()[name]
    seen = filter(None, (advisory.window.before, advisory.window.first, advisory.window.last, advisory.window.fixed))
    confirm = advisory.confirm if isinstance(advisory.confirm, str) else advisory.confirm.words
    for said in (advisory.way_out, confirm, *(f"{one.release}, {one.at}: {one.says}" for one in seen)):
        assert said in words
    assert max(map(len, text.splitlines())) <= 120


def test_it_is_an_error_of_its_own_layer_with_a_fix_that_ends_it(
    server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("inspect", server, "--from", "0.20.2", "--to", "0.21.0", "--select", NAME)
    [finding] = json.loads(printed(capsys, *words, "--output", "json", code=1))["findings"]
    assert (finding["rule"], finding["severity"], finding["layer"]) == (NAME, "error", "inference path")
    assert "affected releases (0.21.0" in finding["message"]
    run([*words, "--fix=unsafe"])
    capsys.readouterr()
    assert json.loads(printed(capsys, *words, "--output", "json"))["findings"] == []
    assert "--no-async-scheduling" in Path(server).read_text()


def test_it_is_suppressed_by_its_name(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(server).write_text(SERVER.rstrip() + f"  # rlaudit: ignore[{NAME}] patched here\n")
    words = ("inspect", server, "--from", "0.20.2", "--to", "0.21.0", "--select", NAME, "--output", "json")
    [finding] = json.loads(printed(capsys, *words))["findings"]
    assert finding["suppressed"]["reason"] == "patched here"
