"""A safe fix is made only with the proof that what runs today goes on; otherwise the reason is said."""

import shutil
from pathlib import Path

import pytest
import toy_dialect
from toy_dialect import PLAIN, Desk

from rlaudit.cli.app import run
from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity

EXAMPLES = Path(__file__).parents[2] / "examples"
NO_CONFIGS = ("case-studies", "recorded")


def _wants(monkeypatch: pytest.MonkeyPatch, **wanted: object) -> str:
    """A rule that calls the writing of some arguments safe; its name."""

    def check(audit: Audit):  # type: ignore[no-untyped-def]
        if any(audit.config.engine.get(name) is None for name in wanted):
            yield rule.finding(audit, Severity.NOTE, "seed", "Write it.", audit.fix("write it", True, **wanted))

    rule = Rule("toy-wants", Layer.SEMANTIC, check)
    monkeypatch.setitem(toy_dialect.RULES, rule.name, rule)
    return rule.name


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"enable_prefix_caching": True}, "enable_prefix_caching is False today and would be True"),
        ({"async_scheduling": True}, "async_scheduling is not there today and would be True"),
        ({"max_num_seqs": 7}, "max_num_seqs is 256 today and would be 7"),
        # Writing one moves what vLLM decides for another one.
        ({"enforce_eager": True}, "cudagraph_mode is V0 decode today and would be NONE"),
    ],
)
def test_a_fix_that_would_change_what_runs_is_not_made_as_a_safe_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, object], said: str
) -> None:
    rule = _wants(monkeypatch, **wanted)
    path = desk.file("x.yaml")
    desk.inspect("x.yaml", "--select", rule, "-v")
    assert "--fix=unsafe does it" in desk.out
    desk.inspect("x.yaml", "--fix", "--select", rule)
    assert path.read_text() == PLAIN
    assert "the fix of toy-wants is not made: it is not shown to keep what runs today" in desk.out
    assert said in desk.out
    desk.inspect("x.yaml", "--fix=unsafe", "--select", rule)
    assert path.read_text() != PLAIN


def test_a_fix_is_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.sh"
    written = '{"full_cuda_graph": true}'
    path.write_text(f"export VLLM_ROCM_USE_AITER=1\nvllm serve m --compilation-config '{written}'\n")
    run(["inspect", str(path), "--from", "0.8.5", "--to", "0.18.1", "--fix"])
    out = capsys.readouterr().out
    assert "attention backend is open: " in out and "Unknown(" not in out


@pytest.mark.parametrize(
    "wanted",
    [{"enable_prefix_caching": False}, {"async_scheduling": False}, {"logprobs_mode": "processed_logprobs"}],
)
def test_a_fix_that_writes_down_what_runs_is_made(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, object]
) -> None:
    rule = _wants(monkeypatch, **wanted)
    path = desk.file("x.yaml")
    desk.inspect("x.yaml", "--fix", "--select", rule)
    assert next(iter(wanted)) in path.read_text()


@pytest.mark.parametrize(
    ("words", "before", "written"),
    [
        ("-tp 2", "0.16.0", "fuse_allreduce_rms"),
        ("--compilation-config '{\"full_cuda_graph\": true}'", "0.10.2", '"cudagraph_mode": "FULL"'),
        ("--prefix-caching-hash-algo builtin", "0.8.5", "--prefix-caching-hash-algo sha256"),
    ],
)
def test_the_same_in_newer_words_is_what_runs_today(
    words: str, before: str, written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.sh"
    path.write_text(f"vllm serve m {words} --port 1\n")
    run(["inspect", "run.sh", "--from", before, "--to", "0.18.1", "--fix"])
    assert written in path.read_text()


def test_what_cannot_be_told_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An engine that an unset variable chooses has no baseline: no fix is safe for it."""
    monkeypatch.chdir(tmp_path)
    text = "services:\n  a:\n    image: vllm/vllm-openai:v0.8.5\n    environment:\n      VLLM_USE_V1: ${V1}\n"
    path = tmp_path / "compose.yaml"
    path.write_text(text + "    command: --model m --seed 1\n")
    before = path.read_text()
    run(["inspect", "compose.yaml", "--from", "0.8.5", "--to", "0.18.1", "--fix"])
    capsys.readouterr()
    left = [name for name in ("processed_logprobs", "prefix-caching", "chunked-prefill") if name in path.read_text()]
    assert not left, path.read_text()
    path.write_text(before.replace("${V1}", "${V1:-0}"))
    run(["inspect", "compose.yaml", "--from", "0.8.5", "--to", "0.18.1", "--fix"])
    assert "--logprobs-mode processed_logprobs" in path.read_text()
    assert "--no-enable-prefix-caching" in path.read_text()


@pytest.mark.parametrize("case", sorted({path.parent for path in EXAMPLES.glob("*/*/command.txt")
                                         if path.parts[-3] not in NO_CONFIGS}), ids=lambda case: case.name)  # fmt: skip
def test_every_fix_of_the_examples_that_is_called_safe_is_proven(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(case, tmp_path / case.name)
    monkeypatch.chdir(folder)
    for before, after in (("0.8.5", "0.18.1"), ("0.18.1", "0.32.0")):
        run(["inspect", ".", "--from", before, "--to", after, "--diff", "--allow-no-config"])
        assert "not shown to keep what runs today" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "fixed"),
    [
        ("a.sh", "vllm serve m --disable-log-requests --port 1\n", "vllm serve m --port 1\n"),
        ("b.sh", "vllm serve m \\\n  --port 1 \\\n  --disable-log-requests\n", "vllm serve m \\\n  --port 1\n"),
        ("c.yaml", "args:\n- vllm\n- serve\n- m\n- --disable-log-requests\n", "args:\n- vllm\n- serve\n- m\n"),
        ("d.yaml", "args: [vllm, serve, m, --disable-log-requests]\n", "args: [vllm, serve, m]\n"),
    ],
)
def test_a_switch_that_is_gone_and_off_by_default_is_taken_away(
    name: str, text: str, fixed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    run(["inspect", name, "--from", "0.10.0", "--to", "0.18.1", "--select", "removed-flag", "--fix"])
    assert (tmp_path / name).read_text() == fixed
