"""rlaudit is no plug-in of vLLM: installed beside an engine it changes nothing. Only the recorder is one, elsewhere."""

import shutil
import tomllib
from importlib.metadata import distribution
from pathlib import Path

from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

ROOT = Path(__file__).parents[2]


def test_the_project_declares_one_command_and_no_plug_in() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert list(project["scripts"]) == ["rlaudit"]
    assert not {"entry-points", "gui-scripts"} & set(project)
    assert "entry-points" not in project["dynamic"]


def test_what_is_built_has_no_plug_in(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    core = ProjectMetadata(str(tmp_path), PluginManager()).core
    assert core.entry_points == {}
    assert list(core.scripts) == ["rlaudit"]


def test_an_installed_rlaudit_is_no_plug_in() -> None:
    assert {one.group for one in distribution("rlaudit").entry_points} == {"console_scripts"}
