"""The folder in front of PYTHONPATH: what can be imported from it, what vLLM finds in it, and who may read it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rlaudit
from rlaudit import secrets
from rlaudit.cli.app import run
from rlaudit.errors import UsageError
from rlaudit.recording.folder import RECORDER, Settings, variables, write_folder

OWN = ["carried", "completions", "door", "frameworks", "recorder", "secrets", "trainer"]
OWN += ["v0", "watched", "weights"]
OWN_MODULES = [f"rlaudit_{name}" for name in OWN]
ENTRY_POINTS = """
import sys; from importlib.metadata import entry_points
found = entry_points(group="vllm.general_plugins")
print([(one.name, one.value, one.dist.version) for one in found if one.name == "rlaudit_recorder"])
"""


@pytest.fixture
def folder(tmp_path):
    write_folder(tmp_path / "recorder", Settings())
    return tmp_path / "recorder"


def python(folder, code):
    words = [sys.executable, "-B", "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    environment.pop("RLAUDIT_RECORD", None)
    return subprocess.run(words, check=True, env=environment, capture_output=True, text=True).stdout


def test_the_recorders_own_modules_can_be_imported_from_it_and_nothing_of_rlaudit(folder):
    code = f"import pkgutil; print(*sorted(module.name for module in pkgutil.iter_modules([{str(folder)!r}])))"
    assert python(folder, code).split() == [*OWN_MODULES, "sitecustomize"]


def test_vllm_finds_the_recorder_as_a_plug_in(folder):
    assert python(folder, ENTRY_POINTS).strip() == str(
        [("rlaudit_recorder", "rlaudit_recorder:register", rlaudit.__version__)]
    )


def test_it_holds_the_shipped_files_and_the_settings_and_is_its_owners_alone(folder):
    assert (folder / "rlaudit_secrets.py").read_bytes() == Path(secrets.__file__).read_bytes()
    assert (folder / "rlaudit_recorder.py").read_bytes() == RECORDER.read_bytes()
    settings = {"prompts": 16, "limit": 2_000_000_000, "logprobs": False, "trainer_functions": []}
    assert json.loads((folder / "settings.json").read_text()) == settings
    modes = {path.relative_to(folder).as_posix(): path.stat().st_mode & 0o777 for path in [folder, *folder.rglob("*")]}
    about = f"rlaudit_recorder-{rlaudit.__version__}.dist-info"
    files = [*(f"{name}.py" for name in OWN_MODULES), "sitecustomize.py", "settings.json"]
    files += [f"{about}/METADATA", f"{about}/entry_points.txt"]
    assert modes == {**dict.fromkeys((".", about), 0o700), **dict.fromkeys(files, 0o600)}


def test_another_release_is_replaced(folder):
    old = folder / "rlaudit_recorder-0.0.dist-info"
    old.mkdir()
    (old / "entry_points.txt").write_text("[vllm.general_plugins]\nrlaudit_recorder = gone:register\n")
    write_folder(folder, Settings(prompts=1))
    assert not old.exists()
    assert json.loads((folder / "settings.json").read_text())["prompts"] == 1


def test_a_path_that_pythonpath_splits_is_refused(tmp_path):
    with pytest.raises(UsageError, match="split"):
        write_folder(tmp_path / "10:30", Settings())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "{folder}"),
        ("", "{folder}"),
        ("/a:/b", "{folder}:/a:/b"),
        ("{folder}:/a", "{new}:/a"),
        (":src", "{folder}::src"),
        ("src:", "{folder}:src:"),
        ("a::b", "{folder}:a::b"),
        (":", "{folder}::"),
        ("./a:../b:~:a", "{folder}:./a:../b:~:a"),
        ("{folder}", "{new}"),
        ("{folder}::src", "{new}::src"),
    ],
)
def test_the_folder_comes_first_and_others_stay(before, after, folder, tmp_path):
    new = tmp_path / "new" if before and "{folder}" in before else folder
    environment = {} if before is None else {"PYTHONPATH": before.format(folder=folder)}
    found = variables(new, tmp_path / "out", environment)
    assert found == {"PYTHONPATH": after.format(folder=folder, new=new), "RLAUDIT_RECORD": str(tmp_path / "out")}


def test_export_writes_the_folder_and_prints_what_switches_it_on_in_a_shell_and_for_ray(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["record", "--export", "a folder", "--into", "shared", "--prompts", "all"]) == 0
    printed = capsys.readouterr()
    assert json.loads((tmp_path / "a folder" / "settings.json").read_text())["prompts"] == 1
    words = ["sh", "-c", f'{printed.out}\nprintf \'%s|\' "$PYTHONPATH" "$RLAUDIT_RECORD"']
    for before, behind in (({}, ""), ({"PYTHONPATH": "/other"}, ":/other")):
        ended = subprocess.run(words, check=True, env=before, capture_output=True, text=True)
        assert ended.stdout == f"{tmp_path / 'a folder'}{behind}|{tmp_path / 'shared'}|"
    (line,) = [line for line in printed.err.splitlines() if "runtime_env=" in line]
    python_path = f"{tmp_path / 'a folder'}:${{PYTHONPATH}}"
    variables = {"PYTHONPATH": python_path, "RLAUDIT_RECORD": str(tmp_path / "shared")}
    assert json.loads(line.partition("runtime_env=")[2].removesuffix(")")) == {"env_vars": variables}
    assert not (tmp_path / "shared").exists()


def test_export_takes_its_own_folder_again_and_no_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert [run(["record", "--export", "own"]) for _ in range(2)] == [0, 0]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "json.py").write_text("")
    assert run(["record", "--export", "other"]) == 2
    assert "something else" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["json.py"]
