"""Another device than CUDA's is one that a config certainly chooses for its engine; no other sign decides."""

import json
from pathlib import Path
from typing import Any

import pytest

from rlaudit.cli.app import run

SERVE = "vllm serve m --tensor-parallel-size 2\n"
PROBE = "DEVICE=${DEVICE:-$(python3 -c 'import torch_npu' 2>/dev/null && echo npu || echo gpu)}\n"
VERL = "python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.name=vllm trainer.device="
POD = "spec:\n  containers:\n  - image: {}\n    command: [vllm, serve, m, --tensor-parallel-size, '2']\n"


@pytest.fixture
def inspected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The JSON report of a file."""

    def inspect(name: str, text: str, *options: str) -> Any:
        monkeypatch.chdir(tmp_path)
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        run(["inspect", name, "--from", "0.8.5", "--to", "0.18.1", "--output", "json", *options])
        return json.loads(capsys.readouterr().out)

    return inspect


def engines(report: Any) -> list[str]:
    """Today's engine of each config: V0 on an NPU and an AMD GPU with 0.8.5, V1 on CUDA."""
    return [config["engine"]["from"] for config in report["configs"]]


def said(report: Any) -> list[str]:
    """What the report says of platforms."""
    return [one for one in report["not_seen"] if "an Ascend NPU" in one or "an AMD GPU" in one]


UNDECIDED = {
    "a probe of a Python package": PROBE + SERVE,
    "a probe before &&": f"python3 -c 'import torch_npu' && export VLLM_ASCEND_ENABLE_NZ=0\n{SERVE}",
    "a probe of a command": f"rocm-smi >/dev/null && export VLLM_ROCM_USE_AITER=1\n{SERVE}",
    "one case of several": f"case $DEVICE in\n npu)\n  export VLLM_ASCEND_ENABLE_NZ=0 ;;\nesac\n{SERVE}",
    "one branch of an if": f'if [ -n "$ROCM_PATH" ]; then export VLLM_ROCM_USE_AITER=1; fi\n{SERVE}',
    "a function that may be called": f"amd() {{\n export VLLM_ROCM_USE_AITER=1\n}}\n[ -d /opt/rocm ] && amd\n{SERVE}",
    "a variable beside CUDA's own": f"export CUDA_VISIBLE_DEVICES=0,1 HCCL_EXEC_TIMEOUT=9\n{SERVE}",
    "devices for two vendors": f"export CUDA_VISIBLE_DEVICES=0,1 HIP_VISIBLE_DEVICES=0,1\n{SERVE}",
    "variables of two platforms": f"export VLLM_ASCEND_ENABLE_NZ=0 VLLM_ROCM_USE_AITER=1\n{SERVE}",
    "a variable whose value is not known": f"export VLLM_ROCM_USE_AITER=$AITER\n{SERVE}",
    "an image for something else": f"docker run rocm/pytorch:latest python3 prepare.py\n{SERVE}",
}


@pytest.mark.parametrize("text", UNDECIDED.values(), ids=UNDECIDED.keys())
def test_a_sign_that_decides_nothing_leaves_settings_and_findings_as_they_are_without_it(
    inspected: Any, text: str
) -> None:
    plain, report = inspected("plain.sh", SERVE), inspected("run.sh", text)
    assert engines(report) == ["V1"]
    assert [one["message"] for one in report["findings"]] == [one["message"] for one in plain["findings"]]
    assert said(report) and all("so CUDA is assumed (--platform " in one for one in said(report))


@pytest.mark.parametrize("name", ["amd_team/run.sh", "ascend/rocm/run.sh", "run_npu_or_gpu.sh", "config_AMD.sh"])
def test_names_of_files_and_folders_decide_and_say_nothing(inspected: Any, name: str) -> None:
    report = inspected(name, SERVE)
    assert engines(report) == ["V1"] and not said(report)


@pytest.mark.parametrize("text", [f"# export VLLM_ASCEND_ENABLE_NZ=0\n{SERVE}", f"cat amd64 input: npu.json\n{SERVE}"])
def test_comments_and_other_words_say_nothing(inspected: Any, text: str) -> None:
    assert not said(inspected("run.sh", text))


def test_a_program_that_tries_a_device_leaves_it_undecided(inspected: Any) -> None:
    tried = "try:\n    import torch_npu\n    os.environ['VLLM_ASCEND_ENABLE_NZ'] = '0'\nexcept ImportError:\n    pass\n"
    report = inspected("run.py", f"import os\n{tried}from vllm import LLM\nllm = LLM('m')\n")
    assert engines(report) == ["V1"] and "run.py:3: what runs on an Ascend NPU (torch_npu)" in said(report)[0]


DECIDED = {
    "an export under no condition": ("run.sh", f"export VLLM_ASCEND_ENABLE_NZ=0\n{SERVE}"),
    "a variable before the command": ("run.sh", f"VLLM_ROCM_USE_AITER=1 {SERVE}"),
    "an export after a folder is entered": ("run.sh", f"cd x && export VLLM_ROCM_USE_AITER=1\n{SERVE}"),
    "the image of docker run": ("run.sh", f"docker run -v a/b:/c rocm/vllm:latest {SERVE}"),
    "the image that gets the flags": ("run.sh", "docker run vllm/vllm-openai-rocm:v0.18 --model m\n"),
    "a container's image": ("pod.yaml", POD.format("rocm/vllm:latest")),
    "the engine's own option": ("run.sh", f"{SERVE.strip()} --device npu\n"),
    "verl's option": ("run.sh", f"{VERL}npu\n"),
}


@pytest.mark.parametrize(("name", "text"), DECIDED.values(), ids=DECIDED.keys())
def test_what_certainly_chooses_the_device_decides_and_is_said(inspected: Any, name: str, text: str) -> None:
    report = inspected(name, text)
    assert engines(report) == ["V0"]
    assert "what vLLM's platform for it decides is not read here" in said(report)[0]


def test_each_engine_of_a_file_has_the_device_of_its_own_branch_or_image(inspected: Any) -> None:
    branches = f"if [ $D = npu ]; then\n export VLLM_ASCEND_ENABLE_NZ=0\n {SERVE}else\n {SERVE}fi\n"
    assert engines(inspected("run.sh", branches)) == ["V0", "V1"]
    pods = f"{POD.format('rocm/vllm')}---\n{POD.format('vllm/vllm-openai:v0.8.5')}"
    assert engines(inspected("pods.yaml", pods)) == ["V0", "V1"]


@pytest.mark.parametrize(
    "text", [f"{PROBE}{VERL}$DEVICE\n", f"[ $D = npu ] && MORE=trainer.device=npu\n{VERL.rpartition(' ')[0]} $MORE\n"]
)
def test_an_option_of_verl_that_a_probe_or_a_branch_fills_decides_nothing(inspected: Any, text: str) -> None:
    report = inspected("run.sh", text)
    assert engines(report) == engines(inspected("cuda.sh", f"{VERL}cuda\n")) and "run.sh:1: " in said(report)[0]


@pytest.mark.parametrize("platform", ["cuda", "h100"])
def test_the_platform_of_the_command_line_wins_over_what_the_file_chooses(inspected: Any, platform: str) -> None:
    for _name, text in DECIDED.values():
        if text.endswith(SERVE):
            report = inspected("run.sh", text, "--platform", platform)
            assert engines(report) == ["V1"] and not said(report)
            assert "fuse-allreduce-rms" in {one["rule"] for one in report["findings"]}


def test_the_settings_file_of_a_project_is_the_users_word_too(inspected: Any, tmp_path: Path) -> None:
    (tmp_path / "rlaudit.toml").write_text('platform = "cuda"\n')
    assert engines(inspected("run.sh", DECIDED["an export under no condition"][1])) == ["V1"]


@pytest.mark.parametrize("platform", ["npu", "rocm"])
def test_the_command_line_can_choose_a_platform_that_is_not_read(inspected: Any, platform: str) -> None:
    report = inspected("run.sh", SERVE, "--platform", platform)
    assert engines(report) == ["V0"] and report["inspection"]["platform"] == platform
    assert "fuse-allreduce-rms" not in {one["rule"] for one in report["findings"]}


def test_what_the_device_decides_is_unknown_and_the_rest_is_judged(inspected: Any) -> None:
    text = "export VLLM_ASCEND_ENABLE_NZ=0\nvllm serve m -tp 2 --swap-space 4\n"
    rules = {one["rule"] for one in inspected("run.sh", text)["findings"]}
    assert "fuse-allreduce-rms" not in rules and "removed-flag" in rules
