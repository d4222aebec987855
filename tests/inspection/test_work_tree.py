"""Nothing outside of the work trees of the named paths is read for a config, by whatever way the config names it."""

import ast
import json
from pathlib import Path

import pytest
from reading import put

import rlaudit
from rlaudit.cli.app import run
from rlaudit.configs.source import Source
from rlaudit.files.work_tree import is_inside, trees_of

VERSIONS = ("--from", "0.8.5", "--to", "0.18.1")
CANARY = "current-context: CANARY\nseed: 31337\n"
ENGINE = "actor_rollout_ref.rollout.engine_kwargs.vllm"
ROLLOUT = "actor_rollout_ref: {rollout: {name: vllm}}\n"
NEMO = "policy: {generation: {backend: vllm, vllm_cfg: {tensor_parallel_size: 2}}}\n"
PIPELINE = "vllm_config: {vllm_kwargs: {dtype: auto}}\n"
INFERENCE = 'server = {port: 8000}\n[model]\nname = "a/b"\n[parallel]\ntp = 2\n'
# What a repository holds beside the `outside` folder, and how its file names what is there.
NAMED: dict[str, tuple[str, str]] = {
    "a relative path": ("c.yaml", f"defaults: [../outside/config@{ENGINE}, _self_]\n{ROLLOUT}"),
    "an absolute path": ("c.yaml", f"defaults: OUTSIDE/nemo.yaml\n{NEMO}"),
    "an optional entry": ("c.yaml", f"defaults: [optional ../outside@{ENGINE}: config, _self_]\n{ROLLOUT}"),
    "a search path": (
        "c.yaml",
        f"hydra: {{searchpath: ['file://OUTSIDE']}}\ndefaults: [config@{ENGINE}, _self_]\n{ROLLOUT}",
    ),
    "a linked file": ("c.yaml", f"defaults: [link@{ENGINE}, _self_]\n{ROLLOUT}"),
    "a linked folder": ("c.yaml", f"defaults: [folder/config@{ENGINE}, _self_]\n{ROLLOUT}"),
    "a path through a linked folder": ("c.yaml", f"defaults: [folder/../outside/config@{ENGINE}, _self_]\n{ROLLOUT}"),
    "a parent of NeMo-RL": ("c.yaml", f"defaults: ../outside/nemo.yaml\n{NEMO}"),
    "a parent of PipelineRL": ("c.yaml", f"defaults: [../outside/pipeline@_global_, _self_]\n{PIPELINE}"),
    "TRL's --config": ("c.sh", "trl grpo --config ../outside/trl.yaml --use_vllm true --vllm_mode colocate\n"),
    "ms-swift's --config": ("c.sh", "swift rlhf --config OUTSIDE/trl.yaml --rlhf_type grpo --use_vllm true\n"),
    "EasyR1's config": ("c.sh", "python3 -m verl.trainer.main config=OUTSIDE/easy.yaml worker.rollout.n=5\n"),
    "a runtime environment": (
        "c.sh",
        "ray job submit --runtime-env OUTSIDE/env.yaml -- python3 -m openrlhf.cli.train_ppo_ray "
        "--vllm_num_engines 2 --colocate_all_models\n",
    ),
}
OUTSIDE = {
    "config.yaml": CANARY,
    "nemo.yaml": "policy: {generation: {vllm_kwargs: {current-context: CANARY, seed: 31337}}}\n",
    "pipeline.yaml": "vllm_config: {vllm_kwargs: {current-context: CANARY, seed: 31337}}\n",
    "trl.yaml": "model_name_or_path: CANARY\nseed: 31337\ntemperature: 0.31337\n",
    "infer.toml": '[vllm]\ncurrent_context = "CANARY"\nseed = 31337\n',
    "easy.yaml": "worker: {rollout: {name: vllm, dtype: CANARY, seed: 31337}}\n",
    "env.yaml": "env_vars: {VLLM_CANARY: CANARY, VLLM_USE_V1: '31337'}\n",
}


def repository(tmp_path: Path, file: str, text: str, git: str = ".git/HEAD") -> Path:
    """Write a repository with links to the folder beside it, and return its config."""
    outside = put(tmp_path / "outside", OUTSIDE)
    home = put(tmp_path / "repository", {git: "", file: text.replace("OUTSIDE", str(outside))})
    (home / "link.yaml").symlink_to(outside / "config.yaml")
    (home / "folder").symlink_to(outside, target_is_directory=True)
    return home / file


@pytest.mark.parametrize("way", NAMED)
@pytest.mark.parametrize("output", ["text", "json", "html", "markdown"])
def test_what_a_config_names_outside_of_its_repository_is_named_and_not_read(
    way: str, output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = repository(tmp_path, *NAMED[way])
    assert run(["inspect", *VERSIONS, "-v", "--output", output, str(config)]) in {0, 1, 3}
    printed = "".join(capsys.readouterr())
    assert "CANARY" not in printed and "31337" not in printed
    assert "in its work tree" in printed or "is not found from here" in printed


@pytest.mark.parametrize("way", NAMED)
def test_the_same_file_is_read_once_its_folder_is_named_as_well(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = repository(tmp_path, *NAMED[way])
    run(["inspect", *VERSIONS, "--output", "json", str(config), str(tmp_path / "outside")])
    printed = capsys.readouterr().out
    assert "CANARY" in printed or "31337" in printed


@pytest.mark.parametrize("way", NAMED)
def test_the_same_file_is_read_inside_one_repository(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = repository(tmp_path, *NAMED[way])
    (config.parent / ".git/HEAD").unlink()
    (config.parent / ".git").rename(tmp_path / ".git")
    run(["inspect", *VERSIONS, "--output", "json", str(config)])
    printed = capsys.readouterr().out
    assert "CANARY" in printed or "31337" in printed


def test_what_an_unread_file_may_set_is_unknown(tmp_path: Path) -> None:
    from packaging.version import Version

    from rlaudit.inspection.read_configs import known_dialects, recognise
    from rlaudit.unknown import Unknown

    for way in ("TRL's --config", "a parent of PipelineRL"):
        path = repository(tmp_path / way, *NAMED[way])
        source = Source(str(path), path.read_text())
        (dialect, *_), _ = recognise(source, known_dialects())
        (config,) = dialect.read(source, Version("0.18.1"))
        assert isinstance(config.sampling["temperature"].value, Unknown), way


def test_a_link_in_a_walked_folder_is_not_followed_out_of_its_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = put(tmp_path / "outside", {"run.yaml": f"{ROLLOUT}CANARY: 1\n", "shebang": "#!/bin/sh\nCANARY\n"})
    home = put(tmp_path / "repository", {".git/HEAD": "", "own.yaml": ROLLOUT})
    (home / "linked.yaml").symlink_to(outside / "run.yaml")
    (home / "linked").symlink_to(outside / "shebang")
    (home / "twice.yaml").symlink_to(home / "own.yaml")
    run(["inspect", *VERSIONS, "-v", str(home), "--output", "json"])
    report = json.loads(capsys.readouterr().out)
    unread = {entry["path"]: entry["reason"] for entry in report["inspection"]["unread"]}
    assert unread == {str(home / "linked.yaml"): "a link that leaves the work tree, not followed"}
    assert "CANARY" not in json.dumps(report)


def test_no_module_outside_of_the_work_tree_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = {"in/train.py": "import engine\nimport sub.engine\n", "in/.git/HEAD": ""}
    monkeypatch.chdir(put(tmp_path, {**program, "engine.py": "from vllm import LLM\nllm = LLM('m')\n"}))
    assert run(["inspect", *VERSIONS, "in/train.py"]) == 3
    assert "engine.py" not in capsys.readouterr().out


def test_a_link_that_the_user_names_opens_its_own_tree_and_that_of_its_target(tmp_path: Path) -> None:
    put(tmp_path, {"a/.git/HEAD": "", "a/near.yaml": "", "b/.git": "gitdir: x", "b/deep/x.yaml": "", "b/far.yaml": ""})
    (tmp_path / "a/x.yaml").symlink_to(tmp_path / "b/deep/x.yaml")
    assert trees_of(str(tmp_path / "a/x.yaml")) == (str(tmp_path / "a"), str(tmp_path / "b"))


@pytest.mark.parametrize(
    ("files", "named", "tree"),
    [
        pytest.param({".git/HEAD": "", "a/x.yaml": ""}, "a/x.yaml", ".", id="a clone"),
        pytest.param({".git": "gitdir: /elsewhere", "a/x.yaml": ""}, "a/x.yaml", ".", id="a linked work tree"),
        pytest.param({".git/HEAD": "", "sub/.git": "gitdir: ..", "sub/x": ""}, "sub/x", "sub", id="a submodule"),
        pytest.param({"a/b/x.yaml": ""}, "a/b/x.yaml", "a/b", id="a file without git"),
        pytest.param({"a/b/x.yaml": ""}, "a", "a", id="a folder without git"),
        pytest.param({"a/.git/HEAD": "", "b/x.yaml": ""}, "a/../b/x.yaml", "b", id="a path by way of another clone"),
    ],
)  # fmt: skip
def test_a_path_opens_its_work_tree_and_without_git_its_folder(
    files: dict[str, str], named: str, tree: str, tmp_path: Path
) -> None:
    assert str((put(tmp_path, files) / tree).resolve()) in trees_of(f"{tmp_path}/{named}")
    assert not is_inside(tmp_path.parent, trees_of(f"{tmp_path}/{named}"))


def test_a_search_in_the_folders_above_ends_where_the_tree_ends(tmp_path: Path) -> None:
    put(tmp_path, {"env.yaml": CANARY, "a/b/run.sh": "", "a/inner.yaml": "seed: 1"})
    source = Source(str(tmp_path / "a/b/run.sh"), "", trees=(str(tmp_path / "a"),))
    assert source.above("env.yaml") is None
    found = source.above("inner.yaml")
    assert found is not None and found.text == "seed: 1"


def test_a_model_outside_of_the_work_tree_is_read_only_if_its_folder_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = put(tmp_path / "models/m", {"config.json": '{"torch_dtype": "float32"}'})
    config = put(tmp_path / "repository", {".git/HEAD": "", "c.sh": f"vllm serve {model} --max-logprobs 5\n"}) / "c.sh"
    run(["inspect", *VERSIONS, "-v", str(config)])
    printed = capsys.readouterr().out
    assert f"{model}: the model's files were not read: they lie outside of the work tree" in " ".join(printed.split())
    assert "vLLM 0.8.5 runs in float16" not in printed
    run(["inspect", *VERSIONS, "-v", str(config), str(model)])
    printed = capsys.readouterr().out
    assert "outside of the work tree" not in printed and "vLLM 0.8.5 runs in float16" in printed


@pytest.mark.parametrize("name", ["requirements.txt", "uv.lock"])
def test_a_linked_file_of_pins_that_leaves_the_work_tree_pins_nothing(name: str, tmp_path: Path) -> None:
    from rlaudit.vllm.pins.files import pinned_around
    from rlaudit.vllm.pins.pin import VLLM

    text = 'vllm==0.9.1\n[[package]]\nname = "vllm"\nversion = "0.9.1"\n'
    put(tmp_path, {f"outside/{name}": text, f"inside/{name}": text, "repository/.git/HEAD": ""})
    for folder, pins in (("outside", False), ("repository/inside", True)):
        link = tmp_path / "repository" / name
        link.unlink(missing_ok=True)
        put(tmp_path, {f"{folder}/{name}": text})
        link.symlink_to(tmp_path / folder / name)
        pinned_around.cache_clear()
        assert any(found.pins for found in pinned_around(tmp_path / "repository", VLLM)) is pins


def test_settings_are_not_read_through_a_link_that_leaves_the_work_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, {"outside/rlaudit.toml": "CANARY = 1\n", "repository/.git/HEAD": "", "repository/x.yaml": ROLLOUT})
    (tmp_path / "repository/rlaudit.toml").symlink_to(tmp_path / "outside/rlaudit.toml")
    monkeypatch.chdir(tmp_path / "repository")
    assert run(["inspect", "x.yaml"]) == 2
    assert "CANARY" not in "".join(capsys.readouterr())


# Each may open what it names, and nothing that a config names.
OPENERS = {
    "configs/source.py": "the one way to a file that another one names",
    "configs/not_read.py": "its own table",
    "configs/framework_source/checkout.py": "direct_url.json of the environment of --python",
    "configs/dialects/schema.py": "a dialect, of rlaudit or of --dialect",
    "configs/dialects/spec.py": "a dialect, of rlaudit or of --dialect",
    "inspection/files.py": "the paths of the command line",
    "inspection/foreign_plugins.py": "entry points of the environment of --python",
    "inspection/fix_files.py": "a file that was read, before it is written",
    "inspection/settings.py": "rlaudit.toml and pyproject.toml",
    "vllm/pins/files.py": "files of pins in the folders around a config",
    "vllm/checkpoint.py": "the model's JSON, behind `may_read`",
}
READS = {"open", "read_text", "read_bytes", "read_regular", "open_regular", "fdopen"}


def reads_files(text: str) -> bool:
    """Return whether a module calls anything by which Python reads a file."""
    called = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return any((call.id if isinstance(call, ast.Name) else getattr(call, "attr", "")) in READS for call in called)


def test_a_reader_of_configs_opens_files_through_the_source_alone() -> None:
    home = Path(rlaudit.__file__).parent
    folders = ("configs", "inspection", "settings", "vllm/pins", "rules/audit")
    files = [path for folder in folders for path in (home / folder).rglob("*.py")] + [home / "vllm/checkpoint.py"]
    openers = {path.relative_to(home).as_posix() for path in files if reads_files(path.read_text())}
    assert openers == set(OPENERS)
