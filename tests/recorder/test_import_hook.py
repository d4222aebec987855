"""The `sitecustomize` of the recorder's folder: what Python does with another one, or without any, stays as it was."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlaudit.recording.folder import Settings, place_folder, variables, write_folder

RECORDER = "import sys\ndef register():\n    sys.watched = [*getattr(sys, 'watched', ()), hasattr(sys, 'hidden_ran')]\n"
SHOW = """
import sys, vllm
found = sys.modules.get("sitecustomize")
try:
    import sitecustomize as again
except ImportError as error:
    again = error.name
print(getattr(found, "__file__", None), getattr(again, "__file__", again), getattr(sys, "watched", None), sep="\\n")
"""
HIDDEN = "import sys\nsys.hidden_ran = True\n"


@pytest.fixture
def folder(tmp_path):
    write_folder(tmp_path / "recorder", Settings())
    (tmp_path / "recorder" / "rlaudit_recorder.py").write_text(RECORDER)
    for name in ("vllm", "trl"):
        (tmp_path / "recorder" / f"{name}.py").write_text("")
    return tmp_path / "recorder"


def hide(tmp_path, text):
    """Write a sitecustomize that the recorder's folder hides."""
    place = tmp_path / "hidden"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(text)
    return place


def python(code, *places, record="out"):
    """Run Python with these folders on its path. The system's own sitecustomize is one more that is hidden."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places)), "RLAUDIT_RECORD": record}
    words = [sys.executable, "-c", code]
    return subprocess.run(words, check=False, env=environment, capture_output=True, text=True)


def test_the_hidden_one_runs_first_and_keeps_its_name(folder, tmp_path):
    hidden = hide(tmp_path, HIDDEN)
    file, again, watched = python(SHOW, folder, hidden).stdout.splitlines()
    assert file == again == str(hidden / "sitecustomize.py")
    assert watched == "[True]"


def test_without_a_hidden_one_there_is_none(folder, tmp_path):
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing" / "vllm.py").write_text("")
    without = python(SHOW, tmp_path / "nothing")
    ended = python(SHOW, folder)
    assert ended.stdout.splitlines()[:2] == without.stdout.splitlines()[:2]
    assert ended.stdout.splitlines()[2].startswith("[False")
    assert ended.stderr == without.stderr


@pytest.mark.parametrize(
    "text",
    [
        "raise RuntimeError('of my own')",
        "import no_such_module",
        "no Python at all",
        "raise SystemExit(7)",
        "raise KeyboardInterrupt",
    ],
)
def test_an_error_of_the_hidden_one_is_what_python_makes_of_it(text, folder, tmp_path):
    hidden = hide(tmp_path, text)
    without = python("print('runs')", hidden)
    ended = python("print('runs')", folder, hidden)
    assert (ended.returncode, ended.stdout) == (without.returncode, without.stdout)
    # A traceback that ends Python shows one more file on the way.
    assert ended.stderr.splitlines()[-1:] == without.stderr.splitlines()[-1:]
    assert without.stderr or without.returncode


def test_the_recorder_is_there_in_spite_of_an_error_of_the_hidden_one_and_for_what_that_imports(
    folder: Path, tmp_path: Path
) -> None:
    hidden = hide(tmp_path, f"{HIDDEN}raise RuntimeError('of my own')")
    assert python("import sys, vllm; print(sys.watched)", folder, hidden).stdout == "[True]\n"
    hide(tmp_path, "import vllm")
    (hidden / "vllm.py").write_text("")
    assert python("import sys; print(len(sys.watched))", folder, hidden).stdout == "1\n"


@pytest.mark.parametrize(
    "change", ["sys.path.insert(0, '/added')", "sys.path = ['/added', *sys.path]", "sys.path.remove({place!r})"]
)
def test_what_the_hidden_one_does_to_the_path_stays(change, folder, tmp_path):
    hidden = hide(tmp_path, f"import sys\n{change.format(place=str(tmp_path / 'hidden'))}\n")
    show = "import sys; print(*sys.path, sep='\\n')"
    without = python(show, hidden).stdout.splitlines()
    found = python(show, folder, hidden).stdout.splitlines()
    assert str(folder) in found
    assert [place for place in found if place != str(folder)] == without


def test_the_folder_keeps_its_place_behind_others(folder, tmp_path):
    (tmp_path / "first").mkdir()
    found = python("import sys; print(*sys.path[1:3], sep='\\n')", tmp_path / "first", folder).stdout.splitlines()
    assert found == [str(tmp_path / "first"), str(folder)]


@pytest.mark.parametrize("before", [None, "", ":", ":lib", "lib:", "lib::other", "."])
@pytest.mark.parametrize(
    "line", ["true", "export PYTHONPATH=$PYTHONPATH:src", "cd ..; export PYTHONPATH=src:$PYTHONPATH"]
)
def test_what_a_script_puts_on_pythonpath_is_what_it_is_without(line, before, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "show.py").write_text("import json, sys; print(json.dumps(sys.path))")
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    plain |= {} if before is None else {"PYTHONPATH": before}
    folder = place_folder(tmp_path / "recorder", Settings(), plain)
    words = ["sh", "-c", f'{line}; "$0" "$1"', sys.executable, tmp_path / "show.py"]
    found = [
        json.loads(subprocess.run(words, check=True, cwd=tmp_path / "here", env=env, capture_output=True).stdout)
        for env in (plain, {**plain, **variables(folder, tmp_path / "out", plain)})
    ]
    assert str(folder) in found[1]
    assert [place for place in found[1] if place != str(folder)] == found[0]


@pytest.mark.parametrize("recorder", ["no Python at all", "raise RuntimeError", "def register(): 1 / 0", "x = 1"])
def test_a_recorder_that_fails_says_so_once_where_vllm_is_imported_and_is_not_noticed_elsewhere(
    recorder: str, folder: Path
) -> None:
    (folder / "rlaudit_recorder.py").write_text(recorder)
    with_vllm, without = (python(f"{first}print('runs')", folder) for first in ("import vllm, trl; ", ""))
    assert [(one.returncode, one.stdout) for one in (with_vllm, without)] == [(0, "runs\n")] * 2
    (line,) = with_vllm.stderr.splitlines()
    assert line.startswith("rlaudit recorder: this process is not recorded: ")
    assert without.stderr == ""


def test_nothing_that_python_has_not_loaded_is_imported_before_vllm(folder, tmp_path):
    show = "import sys; print(*sorted(sys.modules))"
    (tmp_path / "nothing").mkdir()
    loaded = [set(python(show, place).stdout.split()) for place in (tmp_path / "nothing", folder)]
    assert loaded[1] - loaded[0] == {"rlaudit_door", "rlaudit_watched"}


def test_without_the_variable_the_recorder_is_not_even_imported(folder):
    ended = python("import sys; print('rlaudit_recorder' in sys.modules, hasattr(sys, 'watched'))", folder, record="")
    assert ended.stdout == "False False\n"


def test_two_folders_of_the_recorder_do_not_call_each_other_for_ever(folder, tmp_path):
    other = tmp_path / "other"
    write_folder(other, Settings())
    (other / "rlaudit_recorder.py").write_text(RECORDER)
    ended = python("import sys, vllm; print(len(sys.watched))", folder, other)
    assert (ended.returncode, ended.stderr) == (0, "")
