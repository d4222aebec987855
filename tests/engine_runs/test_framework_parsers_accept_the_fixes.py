"""What `--fix` writes is read back by the framework's own parser, run for real: the file before and the file after.

A script is run by bash with stand-ins for its programs, so that the words are the ones a shell makes of it. The parsers
come from the frameworks' packages, installed without what they do not parse with, below rlaudit's cache.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rlaudit.cli.app import run
from rlaudit.configs.syntax.spelling import apply
from rlaudit.engines.environments.environment import ensure
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec, trainer_spec
from rlaudit.files.cache_folder import cache_folder
from rlaudit.inspection.inspect import one_config
from rlaudit.vllm.machine import Machine

pytestmark = [pytest.mark.engine, pytest.mark.beside]

SCRIPTS = Path(__file__).with_name("parsers")
HYDRA = ("hydra-core==1.3.8", "omegaconf==2.4.0", "antlr4-python3-runtime==4.9.3", "packaging", "pyyaml")
PACKAGES: Mapping[str, Sequence[str]] = {
    "hydra-1.3.8": HYDRA,
    "verl-0.9.1": ("verl==0.9.1", *HYDRA),
    "skyrl-0.3.0": ("skyrl==0.3.0", *HYDRA[1:]),
    "openrlhf-0.11.2": ("openrlhf==0.11.2",),
    "trl-1.16.0": ("trl==1.16.0",),
    "ms-swift-4.6.0": ("ms-swift==4.6.0",),
}


@dataclass(frozen=True)
class Case:
    """One config, and what the parser must make of it after the fix. files: by name, the first is inspected. launch:
    the program of a command, which stands for a YAML file that is no script. wanted: parsed keys after the fix.
    written: arguments that are written by the dialect's own writer, where no rule has a fix for what it can spell.
    """

    parser: str
    script: str
    files: Mapping[str, str]
    versions: tuple[str, str]
    wanted: Mapping[str, Any]
    launch: Sequence[str] = field(default_factory=tuple)
    written: Mapping[str, Any] = field(default_factory=dict)


VERL = """\
export VLLM_USE_V1=1
python3 -m verl.trainer.main_ppo \\
    actor_rollout_ref.rollout.name=vllm \\
    actor_rollout_ref.rollout.mode=async \\
    actor_rollout_ref.rollout.temperature=0.7 \\
    trainer.nnodes=1
"""
SERVE = "vllm serve org/model \\\n    --max-model-len 4096 {more}\\\n    --seed 1\n"
CASES: Mapping[str, Case] = {
    "verl: a flag's negation among engine_kwargs": Case(
        "verl-0.9.1", "verl_hydra", {"run.sh": VERL}, ("0.12.0", "0.18.1"),
        {"engine_kwargs.vllm.no_async_scheduling": True},
    ),
    "verl: a config of one's own, in YAML": Case(
        "verl-0.9.1", "verl_hydra",
        {"grpo.yaml": "defaults:\n  - ppo_trainer\n  - _self_\n\nactor_rollout_ref:\n  rollout:\n    name: vllm\n"
                      "    mode: async\n    temperature: 0.7\n    engine_kwargs:\n      vllm:\n        seed: 1\n"},
        ("0.12.0", "0.18.1"), {"engine_kwargs.vllm.no_async_scheduling": True},
        ("python3", "--config-path=.", "--config-name=grpo"),
    ),
    "SkyRL: an engine argument beside its fields": Case(
        "skyrl-0.3.0", "skyrl_cli",
        {"run.sh": "python -m skyrl.train.entrypoints.main_base generator.inference_engine.num_engines=2 \\\n"
                   "  generator.inference_engine.backend=vllm \\\n  generator.sampling_params.temperature=0.7\n"},
        ("0.12.0", "0.18.1"),
        {"engine_init_kwargs.logprobs_mode": "processed_logprobs"},
    ),
    "OpenRLHF: a switch and a value": Case(
        "openrlhf-0.11.2", "openrlhf_cli",
        {"run.sh": "python3 -m openrlhf.cli.train_ppo_ray --vllm.num_engines 2 --vllm.tensor_parallel_size 1 \\\n"
                   "  --vllm.enable_prefix_caching --train.partial_rollout_enable --train.async_enable \\\n"
                   "  --actor.model_name_or_path org/model\n"},
        ("0.16.0", "0.18.1"),
        {"vllm.enforce_eager": True, "vllm.gpu_memory_utilization": 0.5}, (),
        {"enforce_eager": True, "gpu_memory_utilization": 0.5},
    ),
    "TRL: a field of the colocated engine": Case(
        "trl-1.16.0", "trl_cli",
        {"grpo.yaml": "use_vllm: true\nvllm_mode: colocate\nnum_generations: 8\nvllm_tensor_parallel_size: 2\n"
                      "vllm_enable_sleep_mode: true\nlearning_rate: 1.0e-6\n"},
        ("0.18.1", "0.25.1"),
        {"vllm_gpu_memory_utilization": 0.5, "vllm_enable_sleep_mode": False},
        ("trl", "grpo", "--config", "grpo.yaml"),
        {"gpu_memory_utilization": 0.5, "enable_sleep_mode": False},
    ),
    "ms-swift: arguments of the colocated engine": Case(
        "ms-swift-4.6.0", "ms_swift_cli",
        {"run.sh": "swift rlhf --rlhf_type grpo --model org/model --use_vllm true --vllm_mode colocate \\\n"
                   "  --vllm_enforce_eager false --temperature 0.9 --output_dir none\n"},
        ("0.16.0", "0.18.1"),
        {"vllm_enforce_eager": True, "vllm_gpu_memory_utilization": 0.5, "vllm_enable_prefix_caching": False}, (),
        {"enforce_eager": True, "gpu_memory_utilization": 0.5, "enable_prefix_caching": False},
    ),
    "ms-swift: arguments of its server": Case(
        "ms-swift-4.6.0", "ms_swift_cli",
        {"run.sh": "swift rollout --model org/model --vllm_tensor_parallel_size 2\n"}, ("0.16.0", "0.18.1"),
        {"vllm_max_num_seqs": 512, "vllm_disable_cascade_attn": True}, (),
        {"max_num_seqs": 512, "disable_cascade_attn": True},
    ),
    "Hydra: a config of PipelineRL": Case(
        "hydra-1.3.8", "hydra_compose",
        {"grpo.yaml": "seed: 1\nworld: {}\nvllm_config:\n  use_v1: false\n  vllm_kwargs:\n    dtype: bfloat16\n"
                      "    gpu-memory-utilization: 0.9\nllm:\n  parameters:\n    temperature: 0.7\n"
                      "finetune:\n  rl: {}\n"},
        ("0.8.5", "0.18.1"),
        {"vllm_config.vllm_kwargs.logprobs-mode": "processed_logprobs",
         "vllm_config.vllm_kwargs.no-enable-prefix-caching": ""},
        ("python3", "--config-name=grpo"),
    ),
    "vLLM 0.18.1: flags of a server": Case(
        "vllm-0.18.1", "vllm_cli", {"run.sh": "VLLM_USE_V1=0 " + SERVE.format(more="--swap-space 4 ")},
        ("0.8.5", "0.18.1"),
        {"logprobs_mode": "processed_logprobs", "enable_prefix_caching": False, "async_scheduling": False},
    ),
    "vLLM 0.18.1: a flag and its value replaced": Case(
        "vllm-0.18.1", "vllm_cli", {"run.sh": SERVE.format(more="--guided-decoding-backend xgrammar ")},
        ("0.8.5", "0.18.1"), {"async_scheduling": False},
    ),
    "vLLM 0.18.1: a list of words in YAML": Case(
        "vllm-0.18.1", "vllm_cli",
        {"compose.yaml": 'services:\n  v:\n    image: vllm/vllm-openai:v0.12.0\n'
                         '    entrypoint: ["vllm", "serve"]\n    command: ["org/model", "--seed", "1"]\n'},
        ("0.12.0", "0.18.1"), {"async_scheduling": False}, ("words",),
    ),
    "vLLM 0.32.0: flags of a server": Case(
        "vllm-0.32.0", "vllm_cli", {"run.sh": SERVE.format(more="")}, ("0.18.1", "0.32.0"),
        {"logprobs_mode": "processed_logprobs"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_fix_is_accepted_and_arrives(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    monkeypatch.chdir(tmp_path)
    for file, text in case.files.items():
        Path(file).write_text(text)
    first = next(iter(case.files))
    before = parsed(case, tmp_path) if _starts_before(case) else {}
    made = _written(case, first) if case.written else _fixed(case, first)
    after = parsed(case, tmp_path)
    with capsys.disabled():
        print(f"\n{case.parser}: {name}: {made} fixes accepted")
    for key, value in case.wanted.items():
        assert _at(after, key) == value, (key, after)
        assert _at(before, key) != value
    assert made


def _fixed(case: Case, first: str) -> int:
    """Fix a file; the number of fixes."""
    versions = ["--from", case.versions[0], "--to", case.versions[1]]
    run(["inspect", first, *versions, "--fix=unsafe", "--output", "json:r.json"])
    fixes: dict[str, Any] = json.loads(Path("r.json").read_text())["inspection"]["fixes"]
    assert not fixes["refused"]
    return int(fixes["made"])


def _written(case: Case, first: str) -> int:
    """Write arguments into a file; the number of them."""
    for name, value in case.written.items():
        config = one_config(Path(first), Machine(), *case.versions).audit.config
        edits = config.write(name, value)
        assert edits is not None, name
        Path(first).write_text(apply(Path(first).read_text(), edits))
    return len(case.written)


def _starts_before(case: Case) -> bool:
    """Whether the release that is moved to takes the file as it is: a removed flag stops it, which the fix mends."""
    return "--swap-space" not in str(case.files) and "--guided" not in str(case.files)


def parsed(case: Case, folder: Path) -> dict[str, Any]:
    """What the framework's parser makes of the words."""
    words = _words(case, folder)
    packages = _packages(case.parser)
    interpreter, variables = _interpreter(case.parser)
    if case.script == "hydra_compose":
        words = [str(folder), "grpo"]
    command = [*interpreter, str(SCRIPTS / f"{case.script}.py"), json.dumps(words)]
    paths = [str(SCRIPTS), *([str(packages), str(packages / "skyrl-gym")] if packages is not None else [])]
    environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(paths)}
    if packages is not None and case.parser.startswith("verl"):
        (folder / "verl_home.py").write_text(f"HOME = {str(packages)!r}\n")
        environment["PYTHONPATH"] += f"{os.pathsep}{folder}"
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    found = [line.removeprefix("PARSED") for line in done.stdout.splitlines() if line.startswith("PARSED")]
    assert done.returncode == 0 and found, done.stdout[-1500:] + done.stderr[-2500:]
    read: dict[str, Any] = json.loads(found[-1])
    return read


def _words(case: Case, folder: Path) -> list[str]:
    """The words that the program of the file gets."""
    first = next(iter(case.files))
    if case.launch == ("words",):
        import yaml

        service = yaml.safe_load((folder / first).read_text())["services"]["v"]
        return [*service["entrypoint"], *service["command"]]
    if case.launch:
        return [word.replace("--config-path=.", f"--config-path={folder}") for word in case.launch]
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("python", "python3", "vllm", "trl", "swift"):
        program = programs / name
        prints = f'print("WORDS" + json.dumps(["{name}", *sys.argv[1:]]))'
        program.write_text(f"#!{sys.executable}\nimport json, sys\n{prints}\n")
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", first], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    words: list[str] = json.loads(done.stdout.rpartition("WORDS")[2])
    return words


def _packages(name: str) -> Path | None:
    """The framework's packages, installed once."""
    if name not in PACKAGES:
        return None
    folder = cache_folder() / "parsers" / name
    if not (folder / ".done").exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), *PACKAGES[name]]
        subprocess.run(command, check=True)
        (folder / ".done").touch()
    return folder


def _interpreter(name: str) -> tuple[Sequence[str], Mapping[str, str]]:
    """This one, where the parser needs no torch; else the trainer's or the engine's own."""
    if not name.startswith(("trl", "ms-swift", "vllm")):
        return (sys.executable, "-S"), {}  # Of this environment nothing: what a parser needs is installed for it.
    if not name.startswith("vllm"):
        spec: Environment = ensure(trainer_spec("cpu"), report=print)
    else:
        spec = ensure(EnvironmentSpec("vllm", name.removeprefix("vllm-"), "cpu"), report=print)
    return spec.command, spec.variables


def _at(tree: Any, path: str) -> Any:
    for key in [path] if path in tree else path.split("."):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree
