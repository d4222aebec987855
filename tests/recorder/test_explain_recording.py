"""`rlaudit explain recording`: the format of a recording, from the file that writes it."""

import ast

from rlaudit.cli.app import run
from rlaudit.recording.folder import RECORDER
from rlaudit.recording.hook_points import where_recorded
from rlaudit.recording.trainer_functions import known_functions


def test_explain_prints_what_the_recorder_says_of_its_files_and_since_when_it_records_what(capsys):
    assert run(["explain", "recording"]) == 0
    documented = ast.get_docstring(ast.parse(RECORDER.read_text()))
    assert capsys.readouterr().out == f"{documented}\n\n{where_recorded()}\n\n{known_functions()}\n"


def test_every_kind_that_the_recorder_writes_is_explained(capsys):
    run(["explain", "recording"])
    explained = capsys.readouterr().out
    calls = [node for file in RECORDER.parent.glob("*.py") for node in ast.walk(ast.parse(file.read_text()))]
    names = [
        node.args[0].value
        for node in calls
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] == "put"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ]
    assert len(set(names)) > 5
    assert all(f"\n    {name} " in explained for name in names)


def test_a_slip_is_answered_with_the_name(capsys):
    assert run(["explain", "recordings"]) == 2
    assert "did you mean recording?" in capsys.readouterr().err
