"""Every block of the README and of the topics of `explain`: commands run, quoted output is what they print, YAML does
what it says."""

import re

import pytest
from documented_commands import ROOT, blocks, command_lines, lay_out, run_line

from rlaudit.cli.app import run
from rlaudit.cli.commands import COMMANDS
from rlaudit.cli.examples import EXAMPLES
from rlaudit.cli.names import TOPICS

README = (ROOT / "README.md").read_text(encoding="utf-8")
ALL = "\n".join([README, *(file.read_text(encoding="utf-8") for file in TOPICS.values())])
BLOCKS = blocks(ALL)
COMMAND_BLOCKS = [content for language, content in BLOCKS if not language and command_lines(content)]
OTHER_BLOCKS = [(language, content) for language, content in BLOCKS if content not in COMMAND_BLOCKS]
LINES = list(dict.fromkeys(line for content in COMMAND_BLOCKS for line in command_lines(content)))
FINISHED = {0, 1, 3}
# These run in test_help_examples.py, which knows how each of them ends.
OF_THE_HELP = {line for lines in EXAMPLES.values() for line in lines}


def squeezed(text):
    return " ".join(text.split())


def test_every_block_is_commands_or_checked_below():
    assert len(LINES) > 10
    assert len(OTHER_BLOCKS) == 3
    for content in COMMAND_BLOCKS:
        assert len(command_lines(content)) == len(content.strip().splitlines()), content


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("rlaudit ") and line not in OF_THE_HELP])
def test_a_command_of_the_readme_runs(line, tmp_path, monkeypatch, capsys):
    assert run_line(line, tmp_path, monkeypatch, LINES) in FINISHED
    assert "Traceback" not in capsys.readouterr().err


def test_what_ci_runs_is_what_the_readme_says():
    ci = (ROOT / ".ci" / "run").read_text()
    installing = [line for line in LINES if line.startswith("pip ")]
    assert installing == ["pip install . && rlaudit ablate recipes/v0-to-v1.yaml", "pip install '.[test]' && pytest"]
    assert "pip install -q '.[test]'\npytest\n" in ci
    # The recipe itself takes a quarter of an hour; its dry run is the line that runs here.
    assert run(["ablate", str(ROOT / "recipes" / "v0-to-v1.yaml"), "--dry-run"]) == 0


@pytest.mark.parametrize("quoted", [content for _, content in OTHER_BLOCKS if content.startswith("$ ")])
def test_the_answer_that_is_quoted_is_what_its_command_begins_with(quoted, monkeypatch, capsys):
    command, _, screen = quoted.partition("\n")
    monkeypatch.chdir(ROOT)
    run(command.split()[2:])
    printed = squeezed(capsys.readouterr().out)
    first, second = (squeezed(part) for part in screen.split("..."))
    assert printed.startswith(first)
    assert second in printed


def test_the_suppression_that_is_quoted_silences_its_rule(tmp_path, monkeypatch, capsys):
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    quoted = next(content for language, content in OTHER_BLOCKS if language == "yaml")
    config = (tmp_path / "base.yaml").read_text()
    told = []
    for name, line in (("loud.yaml", quoted.partition("  #")[0] + "\n"), ("silenced.yaml", quoted)):
        assert config.count("  vllm_kwargs:\n") == 1
        (tmp_path / name).write_text(config.replace("  vllm_kwargs:\n", f"  vllm_kwargs:\n{line}"))
        run(["inspect", name, "--from", "0.8.5", "--to", "0.18.1", "--output", "concise"])
        told.append("error prefix-cache-across-updates" in capsys.readouterr().out)
    assert told == [True, False]


def test_every_command_is_in_the_readme():
    assert all(f"rlaudit {command}" in README for command in COMMANDS)


def test_every_file_that_is_named_is_there():
    for path in re.findall(r"(?:examples|recipes|rlaudit|tests)/[\w./-]*[\w/]", ALL):
        assert (ROOT / path).exists(), path


def test_the_readme_is_one_page_and_names_every_topic():
    assert len(README.splitlines()) <= 150
    for name in TOPICS:
        assert f"`{name}`" in README, name


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_is_explained(name, capsys):
    assert run(["explain", name]) == 0
    assert capsys.readouterr().out.startswith(TOPICS[name].read_text(encoding="utf-8"))
