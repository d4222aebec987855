"""A file for another device than CUDA's is not judged by CUDA's defaults."""

from pathlib import Path

import pytest

from rlaudit.cli.app import run
from rlaudit.inspection.device import device_of


@pytest.mark.parametrize(
    ("text", "platform"),
    [
        ("export VLLM_ASCEND_ENABLE_NZ=0\n", "npu"),
        ("python t.py trainer.device=npu\n", "npu"),
        ("image: quay.io/ascend/vllm-ascend:v0.18\n", "npu"),
        ("HIP_VISIBLE_DEVICES=0 vllm serve m\n", "rocm"),
        ("image: rocm/vllm:latest\n", "rocm"),
        ("docker run rocm/verl:latest\n", "rocm"),
        ("#!/bin/bash\n#SBATCH -n 1\nsrun --gres=gpu:mi300x:8 x\n", "rocm"),
        ("import torch_npu\n", "npu"),
        ("ray start --resources='{\"NPU\": 8}'\n", "npu"),
    ],
)
def test_variables_images_and_options_tell_the_device(text: str, platform: str) -> None:
    found = device_of(text)
    assert found is not None and found.machine.platform == platform


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# export VLLM_ASCEND_ENABLE_NZ=0\n",
        "CUDA_VISIBLE_DEVICES=0\n",
        "input: npu\n",
        "pip install x # see vllm-ascend/issues/1\n",
        'os.environ.pop("HIP_VISIBLE_DEVICES", None)\n',
        'if x:\n    del os.environ["HIP_VISIBLE_DEVICES"]\n',
        "unset HIP_VISIBLE_DEVICES\n",
        "if is_vllm_ascend_available():\n    from vllm_ascend import x\n",
    ],
)
def test_other_words_and_comments_tell_none(text: str) -> None:
    assert device_of(text) is None


@pytest.mark.parametrize(
    ("path", "platform"),
    [
        ("run_grpo_npu.sh", "npu"),
        ("examples/ascend/grpo/run.sh", "npu"),
        ("config_AMD.yaml", "rocm"),
        ("Dockerfile.rocm7", "rocm"),
    ],
)
def test_the_path_tells_the_device_where_the_text_does_not(path: str, platform: str) -> None:
    found = device_of("vllm serve m\n", path)
    assert found is not None and found.machine.platform == platform
    assert "in its name or folder is of" in found.said(path)


@pytest.mark.parametrize("path", ["run.sh", "input.yaml", "amdahl.sh", "/home/amd/project/configs/x/run.sh", "-"])
def test_other_names_tell_none(path: str) -> None:
    assert device_of("vllm serve m\n", path) is None


def test_what_the_device_decides_is_unknown_and_the_rest_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.sh").write_text("export VLLM_ASCEND_ENABLE_NZ=0\nvllm serve m -tp 2 --swap-space 4\n")
    command = ["inspect", "run.sh", "--from", "0.8.5", "--to", "0.18.1"]
    assert run([*command, "--output", "concise"]) == 1
    out = capsys.readouterr().out
    assert "fuse-allreduce-rms" not in out and "removed-flag" in out
    run(command)
    assert "VLLM_ASCEND_ENABLE_NZ is of an Ascend NPU" in capsys.readouterr().out
    run([*command, "--platform", "a100", "--output", "concise"])
    assert "decides it, which is not read here" not in capsys.readouterr().out
