"""Which vLLM a project runs, from the files around a config."""

from pathlib import Path

import pytest

from rlaudit.errors import UsageError
from rlaudit.inspection.versions import choose, hints_for, version_named
from rlaudit.vllm.pins.files import pin_files_in, pinned_around

UV = '[[package]]\nname = "vllm"\nversion = "0.18.1"\nsource = { registry = "x" }\n'


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def hinted(folder: Path, text: str = "") -> list[str]:
    return [f"{hint.version} {hint.where}" for hint in hints_for(str(folder / "conf" / "x.yaml"), text).hints]


@pytest.mark.parametrize(
    ("name", "content", "hint"),
    [
        ("uv.lock", UV, "0.18.1 uv.lock:3"),
        ("requirements.txt", "torch\nvllm==0.8.5.post1  # pinned\n", "0.8.5.post1 requirements.txt:2"),
    ],
)
def test_an_exact_version_above_the_config_is_found_with_its_line(
    tmp_path: Path, name: str, content: str, hint: str
) -> None:
    (tmp_path / name).write_text(content)
    assert hinted(tmp_path) == [hint]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("image: vllm/vllm-openai:v0.18.1\n", "0.18.1"),
        ("RUN pip install vllm==0.9.2\n", "0.9.2"),
        ("INFO Initializing a V1 LLM engine (v0.10.2) with config: x", "0.10.2"),
    ],
)
def test_the_configs_own_words_come_first(tmp_path: Path, text: str, version: str) -> None:
    (tmp_path / "uv.lock").write_text(UV.replace("0.18.1", "0.30.0"))
    assert hinted(tmp_path, text)[0].split()[0] == version


def test_a_lock_file_comes_before_a_pin_and_the_nearest_folder_before_both(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('dependencies = ["vllm==0.8.5"]')
    (tmp_path / "uv.lock").write_text(UV)
    assert [hint.split()[0] for hint in hinted(tmp_path)] == ["0.18.1", "0.8.5"]
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "requirements.txt").write_text("vllm==0.9.0\n")
    pinned_around.cache_clear()
    pin_files_in.cache_clear()
    assert hinted(tmp_path)[0] == "0.9.0 conf/requirements.txt:1"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            'dependencies = ["vllm>=0.9,<1"]',
            "pyproject.toml allows a range of versions (vllm>=0.9,<1), so rlaudit takes no vLLM version from it",
        ),
        (
            'a = ["vllm==0.9.0"]\nb = ["vllm==0.18.1"]',
            "names several vLLM versions (0.9.0, 0.18.1), so rlaudit takes none of them",
        ),
    ],
)
def test_what_is_not_one_version_is_said_and_not_guessed_at(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "pyproject.toml").write_text(content)
    hints = hints_for(str(tmp_path / "x.yaml"), "")
    assert hints.hints == ()
    assert says in hints.remarks[0]


def test_nothing_above_the_repository_is_read(tmp_path: Path) -> None:
    inner = tmp_path / "vendored"
    (inner / ".git").mkdir(parents=True)
    (tmp_path / "uv.lock").write_text(UV)
    assert hinted(inner) == []


def sides(tmp_path: Path, before: str | None, after: str | None) -> tuple[str, str, str]:
    named = [version_named(side) if side else None for side in (before, after)]
    chosen = choose(named[0], named[1], str(tmp_path / "x.yaml"), "")
    return str(chosen.before), str(chosen.after), " ".join(chosen.sentences)


def test_the_project_fills_in_the_side_that_the_command_line_leaves_open(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(UV)
    assert sides(tmp_path, None, "0.30.0") == ("0.18.1", "0.30.0", "--from 0.18.1, read from uv.lock:3")
    assert sides(tmp_path, "0.8.5", None) == ("0.8.5", "0.18.1", "--to 0.18.1, read from uv.lock:3")
    assert sides(tmp_path, None, None) == ("0.18.1", "0.18.1", "--from and --to 0.18.1, read from uv.lock:3")


def test_one_version_alone_means_no_migration_and_none_means_the_newest_known(tmp_path: Path) -> None:
    assert sides(tmp_path, None, "0.9.2")[:2] == ("0.9.2", "0.9.2")
    before, after, said = sides(tmp_path, None, None)
    assert before == after
    assert "nothing says which vLLM runs" in said
    assert "give --from and --to" in said


def test_a_pin_older_than_the_catalogue_is_said_and_not_used(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("vllm==0.6.3\n")
    assert "requirements.txt:1 says vLLM 0.6.3. This is older than the catalogue" in sides(tmp_path, None, "0.18.1")[2]


@pytest.mark.parametrize("word", ["newest", "", "0.7.0"])
def test_what_is_no_known_version_is_refused(word: str) -> None:
    with pytest.raises(UsageError):
        version_named(word)


def test_a_project_that_pins_another_release_than_is_asked_about_is_told(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch\nvllm==0.11.0\n")
    said = sides(tmp_path, "0.8.5", "0.18.1")[2]
    assert "requirements.txt:2 says vLLM 0.11.0, but the command line gives 0.8.5 -> 0.18.1" in said
    assert "says vLLM" not in sides(tmp_path, "0.11.0", "0.18.1")[2]
