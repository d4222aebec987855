"""`rlaudit explain 0.8.5..0.18.1`: what moves between two releases, and what keeps each as it was."""

import re

import pytest
from packaging.version import Version
from terminal import on_a_terminal

from rlaudit.cli.app import run
from rlaudit.cli.move_page import move_page
from rlaudit.inspection.inspect_file import run_rules
from rlaudit.rules import known_rules
from rlaudit.rules.audit.audit import audit_of
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.severity import Severity
from rlaudit.vllm.machine import MACHINES

H100 = MACHINES["h100"]
MOVES = [("0.8.5", "0.18.1"), ("0.10.2", "0.22.0"), ("0.18.1", "0.32.0"), ("0.9.2", "0.10.2"), ("0.18.1", "0.8.5")]


def section(page: str, head: str) -> str:
    return next(part for part in page.split("\n\n") if part.startswith(head))


def test_the_published_migration_is_answered_first_with_the_settings_that_keep_it() -> None:
    page = move_page("0.8.5", "0.18.1", H100)
    of_v0 = section(page, "The same if 0.8.5 runs with VLLM_USE_V1=0 (V0)")
    for line in (
        "logprobs_semantics: processed -> raw",
        "set logprobs_mode: processed_logprobs",
        "set enable_prefix_caching: false",
        "set async_scheduling: false",
        "vllm/config/vllm.py:",
        "enable_prefix_caching: False -> True",
        "async_scheduling: not set -> True",
        "engine: V0 -> V1",
    ):
        assert line in of_v0
    for line in (
        "prefix_caching_hash_algo: builtin -> sha256",
        "VLLM_USE_DEEP_GEMM: False -> True",
        "  reset_prefix_cache: (device=None) -> (",
        "GuidedDecodingParams: StructuredOutputsParams takes its place.",
        "vllm.worker: ",
    ):
        assert line in page
    assert "vllm.beam_search" not in page and "VLLM_USE_V1: " in page
    assert "swap_space: V1 never swapped" in section(page, "Removed arguments")
    assert "sleep-zeroes-cache-scales" in section(page, "Defects that 0.8.5 has and 0.18.1 has not")
    assert "head-dtype-ignored" in section(page, "Defects that 0.18.1 has and 0.8.5 has not")
    assert section(page, "Added").splitlines()[1] == "  arguments: 103"
    assert page.index("The same if") < page.index("Defects that") < page.index("Removed arguments")


@pytest.mark.parametrize(("old", "new"), MOVES)
def test_what_is_to_be_set_works_on_the_release_it_is_about(old: str, new: str) -> None:
    kept = dict(re.findall(r"as before: set (\w+): (\S+)", move_page(old, new, H100)))
    values = {name: {"true": True, "false": False}.get(text, text) for name, text in kept.items()}
    values = {name: int(value) if str(value).isdigit() else value for name, value in values.items()}
    engine = {name: Setting(name, value, value, Origin.FILE) for name, value in values.items()}
    config = RolloutConfig("vllm", "", engine=engine)
    audit = audit_of(config, config, (Version(new), Version(new)), H100)
    findings, _, bugs = run_rules(audit, tuple(known_rules().values()))
    assert not bugs
    assert not [finding for finding in findings if finding.severity is Severity.ERROR]
    assert {name: audit.after.value(name) for name in values} == values


def test_a_mode_that_a_release_has_not_yet_or_not_finally_is_not_advised() -> None:
    assert "set logprobs_mode" not in move_page("0.8.5", "0.9.0", H100)
    assert "set logprobs_mode" not in move_page("0.8.5", "0.10.0", H100)


def test_v0_is_not_mentioned_where_neither_release_has_it() -> None:
    assert "VLLM_USE_V1=0" not in move_page("0.18.1", "0.32.0", H100)


def test_a_release_that_is_not_catalogued_is_said_first() -> None:
    assert "not catalogued" in move_page("0.8.5", "0.18.2", H100).splitlines()[0]


@pytest.mark.parametrize(
    ("move", "says"),
    [
        ("0.18.1..0.18.1", "0.18.1..0.18.1 is one release"),
        ("0.18.1..", "'' is not a vLLM version"),
        ("0.8.5...0.18.1", "'.0.18.1' is not a vLLM version"),
        ("0.7.0..0.18.1", "vLLM 0.7.0 is too old"),
        ("..0.18.1", "nothing is called '..0.18.1'"),
    ],
)
def test_what_is_no_move_ends_with_2_and_one_sentence(move: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", move]) == 2
    printed = capsys.readouterr()
    assert says in printed.err and not printed.out


@pytest.mark.parametrize("columns", [80, 140])
def test_on_a_terminal_no_line_but_a_long_word_is_wider_than_it(columns: int) -> None:
    text, code = on_a_terminal("explain", "0.8.5..0.18.1", columns=columns)
    assert code == 0
    assert len(text.splitlines()) > len(move_page("0.8.5", "0.18.1", H100).splitlines())
    assert all(len(line) <= columns for line in text.splitlines())
