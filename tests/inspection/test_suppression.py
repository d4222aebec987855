"""Decisions to live with a finding: what they cover, and when they stop holding."""

from datetime import date

import pytest
from toy_dialect import PLAIN, Desk

from rlaudit.inspection.suppression import inline_suppressions

RAW_LINE, WARM_LINE = 2, 5


def with_comment(comment: str, line: int) -> str:
    lines = PLAIN.splitlines()
    lines[line - 1] += f"  {comment}"
    return "\n".join(lines) + "\n"


def above(comment: str, line: int) -> str:
    lines = PLAIN.splitlines()
    return "\n".join([*lines[: line - 1], comment, *lines[line - 1 :]]) + "\n"


def test_without_a_suppression_both_toys_are_found(desk: Desk) -> None:
    desk.file("x.yaml")
    assert desk.rules("x.yaml") == ["2 toy-raw", "5 toy-warm"]


def test_a_comment_on_the_line_or_above_it_speaks_for_its_rule_only(desk: Desk) -> None:
    desk.file("x.yaml", with_comment("# rlaudit: ignore[toy-warm] known", WARM_LINE))
    assert desk.rules("x.yaml") == ["2 toy-raw"]
    desk.file("x.yaml", above("  # rlaudit: ignore[toy-raw, toy-warm] known", RAW_LINE))
    assert desk.rules("x.yaml") == ["2 suppression-unused", "6 toy-warm"]


def test_comments_and_blank_lines_between_a_suppression_and_its_line_do_not_matter(desk: Desk) -> None:
    desk.file("x.yaml", above("# rlaudit: ignore[toy-raw] known\n\n# something else", RAW_LINE))
    assert desk.rules("x.yaml") == ["8 toy-warm"]


def test_a_comment_for_the_file_speaks_for_every_line_of_it_and_of_no_other(desk: Desk) -> None:
    desk.file("x.yaml", PLAIN + "# rlaudit: ignore-file[toy-raw] known\n")
    desk.file("y.yaml")
    desk.inspect("x.yaml", "y.yaml", "--output", "concise")
    assert "x.yaml:2" not in desk.out
    assert "y.yaml:2:3: error toy-raw" in desk.out


def test_a_comment_above_a_continued_command_speaks_for_all_its_lines() -> None:
    text = "# rlaudit: ignore[a] known\nvllm serve m \\\n  --dtype auto \\\n  --seed 1\nvllm serve n\n"
    assert inline_suppressions(text, "x.sh")[0].lines == (1, 4)


@pytest.mark.parametrize(
    "text", ["key: a#rlaudit: ignore[toy-raw] x", "# rlaudit ignore[toy-raw] x", "# rlaudit: ignore toy-raw x"]
)
def test_what_only_looks_like_a_suppression_is_none(text: str) -> None:
    assert inline_suppressions(text + " rlaudit:", "x.yaml") == ()


@pytest.mark.parametrize(
    ("comment", "finds", "says"),
    [
        ("# rlaudit: ignore[toy-warm]", ["suppression-without-reason"], "gives no reason"),
        ("# rlaudit: ignore[toy-warn] typo", ["suppression-unknown-rule", "toy-warm"], "did you mean toy-warm?"),
        ("# rlaudit: ignore[toy-caching] gone", ["suppression-unused", "toy-warm"], "found nothing"),
        ("# rlaudit: ignore[] why", ["suppression-unknown-rule", "toy-warm"], "names no rule"),
        (
            "# rlaudit: ignore[toy-warm, until=2020-01-31] why",
            ["suppression-expired", "toy-warm"],
            "ended on 2020-01-31",
        ),
        ("# rlaudit: ignore[toy-warm, until=2999-01-31] why", [], ""),
        ("# rlaudit: ignore[toy-warm, until=soon] why", ["suppression-unknown-rule"], "is not a day"),
        ("# rlaudit: ignore[toy-warm, since=2020-01-01] why", ["suppression-unknown-rule"], "only until"),
    ],
)
def test_what_is_wrong_with_a_suppression_is_itself_a_finding(
    desk: Desk, comment: str, finds: list[str], says: str
) -> None:
    desk.file("x.yaml", with_comment(comment, WARM_LINE))
    assert sorted(line.split()[1] for line in desk.rules("x.yaml") if line.startswith("5")) == finds
    assert says in desk.out


def test_a_suppression_ends_after_its_day_and_not_on_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.file("x.yaml", with_comment("# rlaudit: ignore[toy-warm, until=2026-03-01] why", WARM_LINE))

    class Today(date):
        day_of_test = (2026, 3, 1)

        @classmethod
        def today(cls) -> "Today":
            return cls(*cls.day_of_test)

    monkeypatch.setattr("rlaudit.inspection.requested.date", Today)
    assert desk.rules("x.yaml") == ["2 toy-raw"]
    Today.day_of_test = (2026, 3, 2)
    assert desk.rules("x.yaml") == ["2 toy-raw", "5 toy-warm", "5 suppression-expired"]


def test_a_rule_that_did_not_run_leaves_its_suppressions_alone(desk: Desk) -> None:
    desk.file("x.yaml", with_comment("# rlaudit: ignore[toy-caching] why", WARM_LINE))
    assert desk.rules("x.yaml", "--select", "semantic") == ["2 toy-raw", "5 toy-warm"]


def test_findings_about_suppressions_can_be_left_out_by_name(desk: Desk) -> None:
    desk.file("x.yaml", with_comment("# rlaudit: ignore[toy-warm]", WARM_LINE))
    assert desk.rules("x.yaml", "--ignore", "suppression-without-reason") == ["2 toy-raw"]


def test_the_settings_suppress_by_path_with_the_same_duties(desk: Desk) -> None:
    desk.file("conf/x.yaml")
    desk.file("other/y.yaml")
    desk.file(
        "rlaudit.toml",
        '[[ignore]]\nrule = "toy-raw"\npath = "conf/*"\nreason = "known"\n\n'
        '[[ignore]]\nrule = ["toy-warm"]\npath = "conf"\nuntil = 2020-01-01\nreason = "later"\n\n'
        '[[ignore]]\nrule = "toy-raw"\npath = "elsewhere/*"\nreason = "not inspected today"\n',
    )
    desk.inspect("conf", "other", "--output", "concise")
    assert [line.split(" ")[0] + " " + line.split(" ")[2] for line in desk.out.splitlines()] == [
        "conf/x.yaml:5:18: toy-warm",
        "other/y.yaml:2:3: toy-raw",
        "other/y.yaml:5:18: toy-warm",
        "rlaudit.toml:6:1: suppression-expired",
    ]


def test_a_suppressed_finding_does_not_decide_the_exit_code(desk: Desk) -> None:
    desk.file("x.yaml", above("# rlaudit: ignore[toy-raw] known", RAW_LINE))
    assert desk.inspect("x.yaml") == 0
    assert "suppressed: 1 inline" in desk.out


def test_what_to_do_about_a_suppression_names_it(desk: Desk) -> None:
    desk.file("x.yaml", with_comment("# rlaudit: ignore[toy-caching] gone", WARM_LINE))
    desk.inspect("x.yaml")
    assert (
        "  - Change or remove the suppression of toy-caching (for suppression-unused; needed today, too)\n" in desk.out
    )
