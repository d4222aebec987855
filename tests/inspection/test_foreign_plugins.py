"""`inspect --python ENVIRONMENT` names the plug-ins of vLLM that the environment has: nothing else tells of them."""

import json
from pathlib import Path

import pytest

from rlaudit.cli.app import run

CONFIG = "model: m\nenable-prefix-caching: true\ntensor-parallel-size: 1\n"
PACKAGES = {
    "acme_npu-1.2.0.dist-info": "[vllm.platform_plugins]\nnpu = acme_npu:register\n\n[console_scripts]\nx = x:main\n",
    "vllm-0.18.1.dist-info": "[vllm.general_plugins]\nlora = vllm.plugins.lora:register\n",
    "rlaudit_recorder-1.dist-info": "[vllm.general_plugins]\nrlaudit_recorder = rlaudit_recorder:register\n",
    "other-1.0.dist-info": "[console_scripts]\nother = other:main\n",
    "broken-1.0.dist-info": "\x00 no [ini\n",
}


def test_plug_ins_of_an_environment_are_named_but_for_those_of_vllm_and_rlaudit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package, points in PACKAGES.items():
        folder = tmp_path / "venv" / "lib" / "python3.11" / "site-packages" / package
        folder.mkdir(parents=True)
        (folder / "entry_points.txt").write_text(points)
    (tmp_path / "serve.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    run(["inspect", "serve.yaml", "--from", "0.18.0", "--to", "0.18.1", "--python", "venv", "--output", "json"])
    not_seen = json.loads(capsys.readouterr().out)["not_seen"]
    assert [line for line in not_seen if "plug-ins" in line] == [
        "what acme_npu 1.2.0 changes in vLLM: it has plug-ins that vLLM runs, npu (vllm.platform_plugins)"
    ]
