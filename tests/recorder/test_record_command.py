"""`rlaudit record -- COMMAND`: the command notices nothing, and at the end it is said what was recorded."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from recorded_commands import environment, python, record, record_words

from rlaudit.cli.app import run

SHOW_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"
SHOW_WORDS = "import json, os, sys; print(json.dumps([os.fsencode(word).hex() for word in sys.argv[1:]]))"
LEAVE_A_MARK = "open('ran', 'w').close()"
EVERY_SIGN = ["two words", "it's", 'a "quote"', "", "-", "--", "--prompts", "$HOME", "line\nbreak", "*", "\udcff"]


def shown(ended):
    return json.loads(ended.stdout)


def test_a_command_that_starts_vllm_ends_with_its_own_code_and_output(tmp_path):
    ended = record(tmp_path, "--into", "out", "--", *python("import vllm; print('trained')"))
    assert ended.returncode == 0
    assert ended.stdout == "trained\n"
    assert "1 process, 1 engine, 2 requests, 3 sequences, 1,006 tokens, 0.0 MB" in ended.stderr
    assert f"rlaudit inspect {tmp_path / 'out'}\n" in ended.stderr
    assert f"rlaudit compare {tmp_path / 'out'}\n" in ended.stderr


def test_what_is_missing_is_said(tmp_path):
    said = record(tmp_path, "--into", "out", "--", *python("import vllm")).stderr
    # The stand-in hooks nothing.
    assert "rlaudit watches: engine configuration, requests, tokens" in said
    assert "tokens (the limit is reached)" in said
    assert "1 of 1 process did not end in order" in said


@pytest.mark.parametrize(
    ("command", "code"), [("exit 3", 3), ("exit 130", 130), ("kill -9 $$", 137), ("kill -15 $$", 143)]
)
def test_the_code_of_a_command_that_fails_is_the_one_that_a_shell_has(command, code, tmp_path):
    ended = record(tmp_path, "--", "sh", "-c", command)
    assert ended.returncode == code
    assert "interrupted" not in ended.stderr


def test_without_an_engine_a_command_that_succeeds_ends_with_3_and_the_reason(tmp_path):
    ended = record(tmp_path, "--", *python("print('no engine')"))
    assert ended.returncode == 3
    assert ended.stdout == "no engine\n"
    assert "no vLLM engine was recorded" in ended.stderr
    assert "rlaudit record --export DIR" in ended.stderr


def test_input_output_and_errors_are_those_of_the_command(tmp_path):
    ended = record(tmp_path, "--", "sh", "-c", "cat; echo err >&2", stdin="one\ntwo\n")
    assert ended.stdout == "one\ntwo\n"
    assert "\nerr\n" in ended.stderr
    assert all(line == "err" or line.startswith(("rlaudit: ", "  ")) for line in ended.stderr.splitlines())
    # A dash is a word of the command.
    assert record(tmp_path, "--", sys.executable, "-", stdin="print('from a pipe')").stdout == "from a pipe\n"


@pytest.mark.parametrize("separator", [["--"], []])
def test_every_word_arrives_as_it_was_written(separator, tmp_path):
    arrived = shown(record(tmp_path, *separator, *python(SHOW_WORDS, *EVERY_SIGN)))
    assert arrived == [os.fsencode(word).hex() for word in EVERY_SIGN]


@pytest.mark.parametrize("variables", [{}, {"VLLM_PLUGINS": ""}, {"VLLM_PLUGINS": "ascend"}])
def test_two_variables_change_and_no_other(variables, tmp_path):
    without = subprocess.run(
        python(SHOW_ENVIRONMENT), check=True, env=environment(tmp_path, **variables), capture_output=True, text=True
    )
    before = json.loads(without.stdout)
    after = shown(record(tmp_path, "--into", "out", "--", *python(SHOW_ENVIRONMENT), **variables))
    assert after.pop("RLAUDIT_RECORD") == str(tmp_path / "out")
    assert after.pop("PYTHONPATH") == f"{tmp_path / 'out' / 'recorder'}{os.pathsep}{before.pop('PYTHONPATH')}"
    assert after == before


def test_signals_and_open_files_are_inherited_as_without_rlaudit(tmp_path):
    # The last eight digits are the signals 1 to 32: the two behind are the C library's own.
    looked_at = ["sh", "-c", "grep -E 'SigBlk|SigIgn' /proc/self/status | grep -o '.......$'; cat <&7"]
    (tmp_path / "open").write_text("read through a descriptor\n")

    def output(words):
        shell = ["bash", "-c", '"$@" 7<open', "bash", *words]
        return subprocess.run(
            shell, check=False, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=120
        ).stdout

    assert "read through" in output(looked_at)
    assert output(record_words(tmp_path, "--", *looked_at)) == output(looked_at)


def test_what_is_recorded_is_written_for_the_recorder(tmp_path):
    kept = ["--prompts", "1/4", "--limit", "1.5GiB", "--logprobs"]
    record(tmp_path, "--into", "out", *kept, "--trainer-function", "mine.losses:logprobs", "--", "true")
    assert json.loads((tmp_path / "out" / "recorder" / "settings.json").read_text()) == {
        "prompts": 4,
        "limit": 3 << 29,
        "logprobs": True,
        "trainer_functions": ["mine.losses:logprobs"],
    }


def test_without_a_name_the_recording_goes_into_a_new_folder_that_is_named(tmp_path):
    said = [record(tmp_path, "--", "true").stderr.splitlines()[0] for _ in range(2)]
    folders = sorted((tmp_path / "recordings").iterdir())
    assert said == [f"rlaudit: recording into {folder}" for folder in folders]
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700, 0o700]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ([], "no command to record"),
        (["--", "no-such-command"], "no-such-command: there is no such command"),
        (["--", "./not-there.sh"], "./not-there.sh: there is no such command"),
        (["--", "/etc/passwd"], "/etc/passwd: this is no program"),
        (["--prompts", "16", "--", "true"], "write 1/16"),
        (["--prompts", "1/0", "--", "true"], "write 1/16"),
        (["--limit", "many", "--", "true"], "write 2GB"),
        (["--limit", "0", "--", "true"], "write 2GB"),
        (["--trainer-function", "losses.logprobs", "--", "true"], "write MODULE:NAME"),
        (["--export", "folder", "--", "true"], "runs no command"),
        (["--into", "a:b", "--", "true"], "PYTHONPATH is split"),
    ],
)
def test_a_command_line_that_cannot_be_meant_ends_with_2_and_leaves_nothing(words, hint, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["record", *words]) == 2
    assert hint in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_script_without_an_interpreter_is_named(tmp_path):
    (tmp_path / "train.sh").write_text("echo hello\n")
    (tmp_path / "train.sh").chmod(0o755)
    ended = record(tmp_path, "--", "./train.sh")
    assert ended.returncode == 2
    assert "./train.sh cannot be started" in ended.stderr


def test_a_folder_without_a_recording_is_taken(tmp_path):
    record(tmp_path, "--into", "out", "--", "true")
    (tmp_path / "out" / "log.jsonl").write_text('{"step": 1}\n')
    assert record(tmp_path, "--into", "out", "--", *python("import vllm")).returncode == 0


@pytest.mark.parametrize(
    ("place", "code", "said"),
    [
        ("file", 2, "file"),
        ("/proc/1/recording", 3, "/proc/1/recording"),
        ("held", 2, "holds a recording"),
        pytest.param("read-only", 3, "", marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may write all")),
    ],
)
def test_a_folder_that_cannot_be_written_or_is_held_is_refused_before_the_command_starts(place, code, said, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "read-only").mkdir(mode=0o500)
    if place == "held":
        record(tmp_path, "--into", "held", "--", *python("import vllm"))
    ended = record(tmp_path, "--into", place, "--", *python(LEAVE_A_MARK))
    assert ended.returncode == code
    assert said in ended.stderr
    assert not (tmp_path / "ran").exists()


def test_a_recording_in_a_recording_replaces_it(tmp_path):
    inner = record_words(tmp_path, "--into", "inner", "--", *python("import vllm"))
    ended = record(tmp_path, "--into", "outer", "--", *inner)
    assert [len(list((tmp_path / out).glob("*.jsonl"))) for out in ("inner", "outer")] == [1, 0]
    assert ended.returncode == 3


def test_secrets_on_the_command_line_of_a_process_that_is_named_are_masked(tmp_path):
    words = [sys.executable, "-I", "-c", "input()", "--api-key=planted-c0mmand-key"]
    said = record(tmp_path, "--", *words, stdin="\n").stderr
    assert "planted-c0mmand-key" not in said


def test_help_names_the_next_step(capsys):
    assert run(["record", "--help"]) == 0
    assert "rlaudit explain recording" in capsys.readouterr().out.replace("\n", " ").replace("  ", " ")


def test_nothing_is_written_outside_the_recording(tmp_path):
    place = tmp_path / "empty"
    place.mkdir()
    record(tmp_path, "--into", "out", "--", "true", TMPDIR=str(place))
    assert not list(place.iterdir())
    assert {path.name for path in Path(tmp_path / "out").iterdir()} == {"recorder"}
