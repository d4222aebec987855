"""Nothing that comes out of a file moves the cursor of a terminal or gives orders to a CI."""

from pathlib import Path

import pytest

from rlaudit.cli.app import run
from rlaudit.text.printable import no_commands

HOSTILE = "::stop-commands::\x1b[2J.yaml"
CONFIG = "logprobs_mode: raw_logprobs\nenable_prefix_caching: true\nmodel: m\n"
FORMATS = ("text", "concise", "json", "markdown", "sarif", "junit", "github", "html")
OURS = ("::error ", "::warning ", "::notice ")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def no_orders(text: str) -> bool:
    return "\x1b" not in text and not any(
        line.lstrip().startswith("::") and not line.startswith(OURS) for line in text.splitlines()
    )


@pytest.mark.parametrize("name", FORMATS)
def test_the_name_of_a_file_gives_no_orders_in_any_format(
    name: str, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (desk / HOSTILE).write_text(CONFIG)
    run(["inspect", HOSTILE, "--from", "0.8.5", "--to", "0.18.1", "--output", name])
    written = capsys.readouterr()
    assert written.out
    assert no_orders(written.out)
    assert no_orders(written.err)


def test_a_dry_run_shows_the_words_of_a_recipe_as_text(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = '{name: "x\\n::stop-commands::y\\e[2J", candidate: {version: 0.18.1}}'
    (desk / "recipe.yaml").write_text(f"schema: rlaudit-recipe/1\nblocks: [{block}]\n")
    assert run(["ablate", "recipe.yaml", "--dry-run", "--cpu"]) == 0
    out = capsys.readouterr().out
    assert "stop-commands" in out
    assert no_orders(out)


def test_an_error_shows_what_it_quotes_as_text(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "gone\x1b[2J\n::stop-commands::x"]) == 2
    said = capsys.readouterr().err
    assert "stop-commands" in said
    assert no_orders(said)


def test_only_a_line_that_would_be_an_order_is_changed() -> None:
    assert no_commands("a::b\n  ::error::x\n:: y\n:z") == "a::b\n  \\x3a:error::x\n\\x3a: y\n:z"
