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
