"""What every Python of a training runs lies where only the user and root may write, and data goes where it was sent."""

import json
import os
from pathlib import Path

import pytest
from recorded_commands import python, record

SHOW = "import json, os, sys; print(json.dumps([sys.path, os.environ['RLAUDIT_RECORD']])); import vllm"
AN_OTHER = 4321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def recorded(tmp_path: Path, *options: str) -> tuple[int, list[Path], str]:
    """Return the exit code, the recorder's folders on the command's path, and what rlaudit says."""
    ended = record(tmp_path, *options, "--", *python(SHOW), XDG_CACHE_HOME=str(tmp_path / "cache"))
    path = json.loads(ended.stdout)[0] if ended.stdout else []
    return ended.returncode, [Path(one) for one in path if (Path(one) / "rlaudit_door.py").exists()], ended.stderr


def folder(path: Path, mode: int, owner: int = -1, group: int = -1) -> Path:
    path.mkdir(parents=True)
    if (owner, group) != (-1, -1):
        os.chown(path, owner, group)
    path.chmod(mode)
    return path


def test_a_folder_of_the_users_holds_the_code_beside_the_data(tmp_path: Path, cache: Path) -> None:
    assert recorded(tmp_path, "--into", "out")[:2] == (0, [tmp_path / "out" / "recorder"])
    assert not cache.exists()


@pytest.mark.parametrize("into", ["open", "open/new", "open/there", "open/there/new"])
def test_below_a_folder_in_which_every_user_may_write_nothing_is_recorded(into: str, tmp_path: Path) -> None:
    folder(tmp_path / "open" / "there", 0o755)
    (tmp_path / "open").chmod(0o777)
    code, found, said = recorded(tmp_path, "--into", into)
    assert (code, found) == (2, [])
    assert f"every user may write in {tmp_path / 'open'}" in said
    assert {path.name for path in (tmp_path / "open").rglob("*")} == {"there"}


def test_the_default_folder_is_not_made_there_either(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert recorded(tmp_path)[0] == 2
    assert not (tmp_path / "recordings").exists()


def test_with_the_sticky_bit_a_new_folder_is_the_users(tmp_path: Path) -> None:
    folder(tmp_path / "open", 0o1777)
    assert recorded(tmp_path, "--into", "open/new")[1] == [tmp_path / "open" / "new" / "recorder"]


@pytest.mark.parametrize("into", ["shared", "shared/new"])
@pytest.mark.parametrize(
    ("mode", "owner"), [(0o2775, -1), pytest.param(0o755, AN_OTHER, marks=needs_root)], ids=["group", "mount"]
)
def test_where_others_may_write_there_is_data_alone(
    mode: int, owner: int, into: str, tmp_path: Path, cache: Path
) -> None:
    folder(tmp_path / "above", mode, owner)
    folder(tmp_path / "above" / "shared", mode, owner)
    code, (found,), said = recorded(tmp_path, "--into", f"above/{into}")
    assert code == 0
    assert found.parent == cache / "rlaudit" / "recorder"
    assert found.stat().st_mode & 0o777 == 0o700
    assert str(found) in said and "on other hosts" in said
    assert {path.suffix for path in (tmp_path / "above" / into).iterdir()} == {".jsonl"}


def test_a_link_in_the_place_of_the_code_is_refused_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "sitecustomize.py").write_text("mine = 1\n")
    link = tmp_path / "out" / "recorder"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "target")
    code, found, said = recorded(tmp_path, "--into", "out")
    assert (code, found) == (2, [])
    assert f"{link} is a link" in said
    assert (tmp_path / "target" / "sitecustomize.py").read_text() == "mine = 1\n"
    assert len(list((tmp_path / "target").iterdir())) == 1


@needs_root
@pytest.mark.parametrize("options", ["--into shared/link", "--into shared/link/new", "--export shared/link"])
def test_a_link_of_another_users_is_refused(options: str, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (folder(tmp_path / "shared", 0o1777) / "link").symlink_to(tmp_path / "target")
    os.lchown(tmp_path / "shared" / "link", AN_OTHER, -1)
    ended = record(tmp_path, *options.split(), *(["--", "true"] if options.startswith("--into") else []))
    assert ended.returncode == 2
    assert "is a link of another user's" in ended.stderr
    assert not list((tmp_path / "target").iterdir())


def test_a_link_of_the_users_own_is_followed_unless_others_can_replace_it(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "mine").mkdir()
    for name, mode in (("private", 0o755), ("group", 0o775)):
        (folder(tmp_path / name, mode) / "link").symlink_to(tmp_path / "mine")
    assert recorded(tmp_path, "--into", "private/link/a")[1] == [tmp_path / "private" / "link" / "a" / "recorder"]
    assert recorded(tmp_path, "--into", "group/link/b")[1][0].is_relative_to(cache)


def test_recordings_that_are_alike_share_the_code_and_damaged_code_is_not_used(tmp_path: Path, cache: Path) -> None:
    folder(tmp_path / "shared", 0o775)
    runs = (["a"], ["b"], ["c", "--logprobs"])
    found = [recorded(tmp_path, "--into", f"shared/{name}", *more)[1] for name, *more in runs]
    assert found[0] == found[1] != found[2]
    (found[0][0] / "rlaudit_door.py").write_text("damaged")
    (again,) = recorded(tmp_path, "--into", "shared/d")[1]
    assert again != found[0][0]
    assert (again / "rlaudit_door.py").read_text() != "damaged"


def test_a_cache_in_which_others_may_write_is_passed_over(tmp_path: Path, cache: Path) -> None:
    folder(tmp_path / "shared", 0o775)
    folder(cache, 0o777)
    temporary = folder(tmp_path / "temporary", 0o1777)
    for mode, code in ((0o1777, 0), (0o777, 2)):
        temporary.chmod(mode)
        words = ["--into", f"shared/{mode}", "--", *python(SHOW)]
        ended = record(tmp_path, *words, XDG_CACHE_HOME=str(cache), TMPDIR=str(temporary))
        assert ended.returncode == code, ended.stderr
    assert "others may write there" in ended.stderr


def test_an_export_is_refused_or_named_in_the_same_way(tmp_path: Path) -> None:
    folder(tmp_path / "open", 0o777)
    folder(tmp_path / "group", 0o775)
    ended = {name: record(tmp_path, "--export", f"{name}/code") for name in ("open", "group")}
    assert [one.returncode for one in ended.values()] == [2, 0]
    assert "change what each Python of the training runs" in ended["group"].stderr


def test_with_a_umask_of_0_the_folder_of_recordings_is_not_every_users(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert [recorded(tmp_path)[0] for _ in range(2)] == [0, 0]
    finally:
        os.umask(before)
