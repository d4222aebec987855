"""A named file without a config leads to the file that builds the engine, which is read in the same run."""

import json
from pathlib import Path

import pytest

from rlaudit.cli.app import run

ENGINE = 'from vllm import LLM\n\ndef build():\n    return LLM("m", logprobs_mode="raw_logprobs")\n'
PPO = "actor_rollout_ref: {model: {path: m}, rollout: {name: vllm, temperature: 1.0}}\n"
SERVE = "vllm serve m --logprobs-mode raw_logprobs\n"
COMPOSE = "services:\n  rollout:\n    # old.sh\n    command: bash {script}\n"
# By name: the file that is named, with the line that begins the way, and further files by path, the engine's last.
WAYS: dict[str, tuple[str, str, int, dict[str, str]]] = {
    "an import": ("train.py", "import torch\nimport engine\n", 2, {"engine.py": ENGINE}),
    "an import inside a function": ("train.py", "def f():\n    from engine import build\n", 2, {"engine.py": ENGINE}),
    "a package in src": ("run/train.py", "from own.rollout import engine\n", 1, {"src/own/rollout/engine.py": ENGINE}),
    "a package itself": ("train.py", "from own import build\n", 1, {"own/__init__.py": ENGINE}),
    "a relative import": ("own/train.py", "from .parts import engine\n", 1, {"own/parts/engine.py": ENGINE}),
    "a module of a module": (
        "train.py", "import rollout\n", 1, {"rollout.py": "from engine import build\n", "engine.py": ENGINE},
    ),
    "a script that starts a program": ("run.sh", "set -e\npython -m own.engine --x 1\n", 2, {"own/engine.py": ENGINE}),
    "a program that starts a script": ("train.py", 'run(["bash", "serve.sh"])\n', 1, {"serve.sh": SERVE}),
    "a script behind a variable": ("jobs/run.sh", 'exec bash "${ROOT}/serve.sh"\n', 1, {"serve.sh": SERVE}),
    "a service": ("compose.yml", COMPOSE.format(script="serve.sh"), 4, {"serve.sh": SERVE}),
    "a service, by a path in its image": (
        "compose.yml", COMPOSE.format(script="/work/app/serve.sh"), 4, {"app/serve.sh": SERVE},
    ),
    "a service over two scripts": (
        "compose.yml", COMPOSE.format(script="a.sh"), 4, {"a.sh": "bash b/serve.sh\n", "b/serve.sh": SERVE},
    ),
}  # fmt: skip


class Desk:
    """A work tree, in which `inspect` runs."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys, self.out = folder, capsys, ""

    def file(self, path: str, text: str) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def inspect(self, *words: str) -> int:
        code = run(["inspect", "--from", "0.18.1", "--to", "0.18.1", *words])
        self.out = " ".join(self._capsys.readouterr().out.split())
        return code


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return Desk(tmp_path, capsys)


def planted(desk: Desk, files: dict[str, str]) -> None:
    for path, text in files.items():
        desk.file(path, text)


@pytest.mark.parametrize("way", WAYS)
def test_the_file_that_builds_the_engine_is_read_in_the_same_run(way: str, desk: Desk) -> None:
    path, text, line, further = WAYS[way]
    planted(desk, {path: text, **further})
    assert desk.inspect(path, "--fail-on", "never") == 0
    assert f"{path}:{line} hands over to {list(further)[-1]}, which is read" in desk.out
    assert desk.out.startswith(f"{path} -> {list(further)[-1]}: ")
    assert "1 rollout config found" in desk.out


@pytest.mark.parametrize(
    "text",
    ['"""Start serve.sh first."""\n', "# serve.sh\n", "import os\n"],
    ids=["a docstring", "a comment", "a module of Python"],
)
def test_words_for_people_lead_nowhere(text: str, desk: Desk) -> None:
    planted(desk, {"train.py": text, "serve.sh": "vllm serve m\n"})
    assert desk.inspect("train.py") == 3
    assert "train.py names no file that sets up rollouts; serve.sh does: inspect that file" in desk.out


def test_a_file_that_is_named_and_builds_no_engine_is_not_said_to_do_so(desk: Desk) -> None:
    planted(desk, {"run.sh": "swift x --external_plugins plugin.py\n", "plugin.py": "def reward(): ...\n"})
    assert desk.inspect("run.sh") == 3
    assert "plugin.py" not in desk.out


@pytest.mark.parametrize("text", [
    'BASE="${HERE}/base.sh"\nexport TOP_P=0.9\nexec bash "${BASE}"\n',
    "bash scripts/base.sh --fast\n",
    "sh ./base.sh --config_file gone.py\n",
])  # fmt: skip
def test_a_script_that_is_not_here_is_named(text: str, desk: Desk) -> None:
    desk.file("run.sh", text)
    assert desk.inspect("run.sh") == 3
    assert "base.sh, which is not found here: inspect that one" in desk.out


def test_without_any_file_that_builds_an_engine_the_way_out_is_said(desk: Desk) -> None:
    desk.file("train.py", "print(1)\n")
    assert desk.inspect("train.py") == 3
    assert "name the one that does, or record a run: rlaudit record -- COMMAND" in desk.out


def test_a_program_that_reads_the_named_config_comes_first(desk: Desk) -> None:
    planted(desk, {"jobs/a.yaml": "lr: 1\n", "jobs/run.py": ENGINE, "a/engine.py": ENGINE, "z.py": ENGINE})
    assert desk.inspect("jobs/a.yaml") == 3
    assert "jobs/run.py, a/engine.py, z.py do: inspect the right one" in desk.out


def test_no_file_outside_of_the_work_tree_is_read(desk: Desk) -> None:
    planted(desk, {"in/train.py": "import engine\nimport sub.engine\n"})
    (desk.folder / ".git").rmdir()
    (desk.folder / "in/.git").mkdir()
    desk.file("engine.py", ENGINE)
    assert desk.inspect("in/train.py") == 3
    assert "engine.py" not in desk.out


def test_an_excluded_file_is_not_read(desk: Desk) -> None:
    settings = 'exclude = ["engine.py"]\n'
    planted(desk, {"train.py": "import engine\n", "engine.py": ENGINE, "rlaudit.toml": settings})
    assert desk.inspect("train.py") == 3
    assert "engine.py" not in desk.out


def test_the_engine_of_a_framework_is_no_config_of_a_launcher_that_is_not_read(desk: Desk) -> None:
    engine = "molt/trainer/vllm/vllm_engine.py"
    start = 'bash -lc "python3 -m molt.cli.train_rl_ray$ARGUMENTS"\n'
    planted(
        desk,
        {"slurm.sh": start, "molt/cli/train_rl_ray.py": f"import {engine[:-3].replace('/', '.')}\n", engine: ENGINE},
    )
    assert desk.inspect("slurm.sh") == 3
    assert "slurm.sh:1: mentions molt.cli.train_rl, and no rollout config is read there" in desk.out
    assert engine not in desk.out


@pytest.mark.parametrize("defaults", ["../base.yaml", "[../base.yaml]"])
def test_a_config_is_not_the_one_that_it_inherits_and_overrides(defaults: str, desk: Desk) -> None:
    base = (
        "policy: {generation: {backend: vllm, vllm_cfg: {tensor_parallel_size: 4}}}\ngrpo: {num_prompts_per_step: 8}\n"
    )
    other = f"defaults: {defaults}\npolicy: {{generation: {{backend: dynamo}}}}\n"
    planted(desk, {"base.yaml": base, "recipes/other.yaml": other})
    assert desk.inspect("base.yaml") == 0
    assert desk.inspect("recipes/other.yaml") == 3
    assert "hands over" not in desk.out


def test_a_circle_of_imports_ends(desk: Desk) -> None:
    planted(desk, {"a.py": "import b\n", "b.py": "import a\n"})
    assert desk.inspect("a.py") == 3


def test_a_fix_is_made_in_the_file_that_is_read(desk: Desk) -> None:
    planted(desk, {"train.py": "import engine\n", "engine.py": ENGINE})
    desk.inspect("train.py", "--fix=unsafe", "--from", "0.8.5")
    assert "processed_logprobs" in (desk.folder / "engine.py").read_text()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("train.py", "import os\nos.environ['VLLM_USE_V1'] = '0'\nimport engine\n"),
        ("run.sh", "export VLLM_USE_V1=0\npython engine.py\n"),
        ("compose.yml", "services:\n  a:\n    environment: {VLLM_USE_V1: '0'}\n    command: python engine.py\n"),
    ],
)
def test_a_variable_that_the_way_may_set_is_open_in_the_file_that_is_read(path: str, text: str, desk: Desk) -> None:
    planted(desk, {path: text, "engine.py": ENGINE})
    desk.inspect(path, "--from", "0.8.5", "--output", f"json:{desk.folder}/out.json")
    (config,) = json.loads((desk.folder / "out.json").read_text())["configs"]
    assert config["path"] == "engine.py" and config["engine"]["from"] is None


def test_a_module_that_builds_an_engine_only_when_started_is_no_engine_of_what_imports_it(desk: Desk) -> None:
    started = "from vllm import LLM\ndef score(): ...\nif __name__ == '__main__':\n    LLM('m')\n"
    planted(desk, {"train.py": "import engine, baseline\n", "baseline.py": started, "engine.py": ENGINE})
    desk.inspect("train.py")
    assert "baseline.py" not in desk.out and "1 rollout config found" in desk.out


def test_the_config_that_a_program_of_hydra_starts_from_is_read(desk: Desk) -> None:
    program = "import hydra\n@hydra.main(config_path='conf', config_name='own')\ndef main(config): ...\n"
    planted(desk, {"train.py": program, "conf/own.yaml": PPO, "eval/run.py": ENGINE})
    desk.inspect("train.py")
    assert "train.py:2 hands over to conf/own.yaml" in desk.out and "eval" not in desk.out


def test_every_kind_of_file_that_sets_up_rollouts_is_named_and_evaluations_last(desk: Desk) -> None:
    planted(desk, {"train.py": "x = 1\n", "eval/run.py": ENGINE, "z/grpo.yaml": PPO, "serve.sh": SERVE})
    assert desk.inspect("train.py") == 3
    assert "; serve.sh, z/grpo.yaml, eval/run.py do: inspect the right one" in desk.out


@pytest.mark.parametrize(
    ("opening", "what"),
    [
        ("cat > run.py <<'PY'", "run.py, which the script writes itself"),
        ("sudo tee -a run.py <<PY > /dev/null", "run.py, which the script writes itself"),
        ("python - --x 1 <<PY", "the program that the script holds itself"),
        ("srun python3 <<-'PY'", "the program that the script holds itself"),
    ],
)
def test_what_a_script_holds_itself_is_named_with_its_line(opening: str, what: str, desk: Desk) -> None:
    desk.file("run.sh", f"#!/bin/bash\n{opening}\nfrom vllm import LLM\nLLM('m')\nPY\npython run.py\n")
    assert desk.inspect("run.sh") == 3
    assert f"run.sh:2: {what}" in desk.out and "inspect that one" not in desk.out


SAMPLED = """\
from vllm import SamplingParams
from engine import {imported}
params = SamplingParams(n=8, temperature=0.7, top_p=0.9, logprobs=0)
llm = {made}
for step in range(9):
    llm.generate(prompts, params)
    update(llm)
"""
MAKES = "from vllm import LLM\n\ndef make(name, gpu):\n    return LLM(name, gpu_memory_utilization=gpu)\n"
MAKER = (
    "from vllm import LLM\n\nclass Make:\n    def __init__(self, name, gpu=0.5):\n"
    "        self.llm = LLM(name, gpu_memory_utilization=gpu)\n"
)


def settings_of(desk: Desk, path: str) -> dict[str, object]:
    """Each written setting of the report of a file, by name."""
    desk.inspect(path, "--output", f"json:{desk.folder}/out.json", "--output", "text")
    report = json.loads((desk.folder / "out.json").read_text())
    values = {row["name"]: row["effective_to"] for row in report["settings"] if row["written"] is not None}
    return {name: "open" if isinstance(value, dict) else value for name, value in values.items()}


@pytest.mark.parametrize(("engine", "made"), [(MAKES, "make('m', 0.2)"), (MAKER, "Make('m', gpu=0.2)")])
def test_what_a_program_samples_and_passes_is_the_engines_that_it_imports(engine: str, made: str, desk: Desk) -> None:
    planted(desk, {"train.py": SAMPLED.format(imported=made[:4], made=made), "engine.py": engine})
    wanted = {"n": 8, "temperature": 0.7, "top_p": 0.9, "logprobs": 0, "gpu_memory_utilization": 0.2, "model": "m"}
    assert settings_of(desk, "train.py") == wanted


@pytest.mark.parametrize(
    ("more", "engine"),
    [
        ("other = make('n', 0.9)\n", MAKES),
        ("", MAKES.replace("    return", "    gpu = round(gpu, 1)\n    return")),
        ("", MAKES + "\ndef again():\n    return make('n', 0.9)\n"),
    ],
    ids=["two calls", "bound again", "a call beside it"],
)
def test_what_another_call_or_line_may_change_stays_open(more: str, engine: str, desk: Desk) -> None:
    planted(desk, {"train.py": SAMPLED.format(imported="make", made="make('m', 0.2)") + more, "engine.py": engine})
    assert settings_of(desk, "train.py")["gpu_memory_utilization"] == "open"


def test_sampling_is_not_joined_to_one_of_several_engines(desk: Desk) -> None:
    two = MAKES + "\ndef judge():\n    return LLM('j')\n"
    program = SAMPLED.format(imported="make", made="make('m', 0.2)")
    planted(desk, {"train.py": program, "engine.py": two})
    assert "temperature" not in settings_of(desk, "train.py")
    planted(desk, {"train.py": f"{program}import judge\n", "engine.py": MAKES, "judge.py": MAKES})
    assert "temperature" not in settings_of(desk, "train.py")


def test_a_cache_that_the_importing_program_resets_is_not_said_to_be_kept(desk: Desk) -> None:
    engine = MAKES + "\ndef update(llm):\n    llm.collective_rpc('load_weights')\n"
    planted(desk, {"train.py": SAMPLED.format(imported="make, update", made="make('m', 0.2)"), "engine.py": engine})
    desk.inspect("train.py")
    assert "prefix-cache-across-updates" in desk.out
    desk.file("train.py", (desk.folder / "train.py").read_text() + "    llm.reset_prefix_cache()\n")
    desk.inspect("train.py")
    assert "prefix-cache-across-updates" not in desk.out


HYDRA = "import hydra\n{imported}\n@hydra.main(config_path='.', config_name='own')\ndef main(cfg):\n    {made}\n"


def test_the_values_of_a_hydra_config_are_those_of_the_program_that_starts_from_it(desk: Desk) -> None:
    made = "LLM(cfg.model.path, dtype=cfg.dtype)"
    planted(desk, {"a.py": HYDRA.format(imported="from vllm import LLM", made=made)})
    desk.file("own.yaml", "model: {path: m}\ndtype: float16\n")
    assert settings_of(desk, "a.py") == {"model": "m", "dtype": "float16"}


def test_a_config_that_a_program_hands_on_is_open_with_its_place(desk: Desk) -> None:
    engine = "from vllm import LLM\ndef build(args):\n    return LLM('m', dtype=args.dtype)\n"
    planted(desk, {"a.py": HYDRA.format(imported="import engine", made="engine.build(cfg)"), "engine.py": engine})
    desk.file("own.yaml", "dtype: float16\n")
    assert settings_of(desk, "a.py")["dtype"] == "open"
    assert "args.dtype is known only when it runs: own.yaml:1 may decide it" in desk.out
