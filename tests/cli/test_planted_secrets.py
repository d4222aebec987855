"""Thirty secrets in everything that rlaudit is given: none is in anything that it writes, prints or starts."""

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from laboratories import V0, V1, Laboratory

TOKENS = {
    "hugging face": "hf_PlantedAAAAbbbbCCCCdddd01",
    "openai": "sk-planted-0000111122223333",
    "github": "ghp_plantedAAAAbbbbCCCC0123456789abcd",
    "github fine": "github_pat_11PLANTED0abcdefghij_klmnop",
    "aws": "AKIAPLANTED12345678A",
    "gitlab": "glpat-planted-1234567890",
    "slack": "xoxb-1234567890-planted",
    "jwt": "eyJwbGFudGVk.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
}
IN_THE_SHELL = {
    "HF_TOKEN": "hf_PlantedShellEEEEffff02",
    "WANDB_API_KEY": "planted-wandb-0123456789",
    "AWS_SECRET_ACCESS_KEY": "planted/aws+secret/03",
    "AWS_ACCESS_KEY_ID": "ASIAPLANTED12345678B",
    "DB_PASSWORD": "planted-db-pa55word",
    "MY_SERVICE_CREDENTIALS": "planted-cr3dentials",
    "GITLAB_TOKEN": "planted-gitlab-t0ken",
    "NPM_TOKEN": "planted-npm-t0ken",
    "OPENAI_KEY": "planted-openai-k3y",
    "PGPASSWORD": "planted-pg-pa55",
    "PIP_INDEX_URL": "https://planted-user:planted-1ndex-pw@127.0.0.1:9/simple",
    "PIP_EXTRA_INDEX_URL": "https://planted-user:planted-3xtra-pw@127.0.0.1:9/simple",
    "HTTPS_PROXY": "http://planted-user:planted-pr0xy-pw@127.0.0.1:9",
}
IN_VARIABLES = {
    "SERVICE_TOKEN": "planted-recipe-t0ken",
    "SERVICE_PASSWORD": "planted recipe pa55",
    "PLAIN_NAME": TOKENS["slack"],
    "S3_SECRET_ACCESS_KEY": "planted/s3/s3cret",
    "AN_ADDRESS": "https://me:planted-addr3ss@host.example/a",
}
IN_ENGINE_ARGS = {
    "hf_token": "planted-engine-t0ken",
    "hf_overrides": {"api_key": "planted-api-k3y", "password": 73218094, "note": TOKENS["gitlab"]},
}
IN_THE_CONFIG = {
    "hf-token": "planted-c0nfig-token",
    "api-key": "planted-c0nfig-key",
    "chat-template": TOKENS["jwt"],
}


def planted() -> list[str]:
    """What must not be found: of an address its password."""
    addresses = ("planted-1ndex-pw", "planted-3xtra-pw", "planted-pr0xy-pw", "planted-addr3ss")
    values = [
        *TOKENS.values(),
        *IN_THE_SHELL.values(),
        *IN_VARIABLES.values(),
        IN_ENGINE_ARGS["hf_token"],
        "planted-api-k3y",
        "73218094",
        *IN_THE_CONFIG.values(),
    ]
    return [*(value for value in dict.fromkeys(map(str, values)) if "://" not in value), *addresses]


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in IN_THE_SHELL.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command line of every process that rlaudit starts: a guardian's holds that of the cell it starts."""
    seen: list[str] = []

    class Seen(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, words: Any, *more: Any, **options: Any) -> None:
            seen.append(words if isinstance(words, str) else "\n".join(map(os.fsdecode, words)))
            super().__init__(words, *more, **options)

    monkeypatch.setattr(subprocess, "Popen", Seen)
    return seen


def found_in(texts: dict[str, str]) -> list[str]:
    """Every secret with the text that it is in."""
    return [f"{value} in {where}" for where, text in texts.items() for value in planted() if value in text]


def files_below(folder: Path) -> dict[str, str]:
    return {str(path): path.read_bytes().decode("utf-8", "replace") for path in folder.rglob("*") if path.is_file()}


def test_there_are_thirty_of_them() -> None:
    assert len(planted()) >= 30


def test_a_run_leaves_prints_and_passes_on_no_secret_and_the_engine_has_those_it_is_given(
    laboratory: Laboratory, shell: None, started: list[str]
) -> None:
    got = laboratory.folder / "got"
    block = {
        "name": "one",
        "candidate": {"version": V1, "engine_args": IN_ENGINE_ARGS},
        "repeats": 0,
        "environment_variables": {**IN_VARIABLES, "FAKE_VLLM_TELL": str(got)},
    }
    described = f"with {TOKENS['openai']}, {TOKENS['github']}, {TOKENS['github fine']}, {TOKENS['aws']} in it"
    recipe = laboratory.recipe(block, description=f"{described} and {TOKENS['hugging face']}")
    outputs = laboratory.folder / "outputs"
    formats = ("json", "markdown", "html", "junit")
    ran = laboratory.ablate(recipe, *(f"--output={name}:{outputs / name}" for name in formats))
    assert ran.exit_code in {0, 1}, ran.stderr
    told = json.loads(got.read_text())
    got.unlink()
    assert told["engine_args"]["hf_token"] == IN_ENGINE_ARGS["hf_token"]
    assert told["engine_args"]["hf_overrides"] == IN_ENGINE_ARGS["hf_overrides"]
    assert IN_VARIABLES.items() <= told["variables"].items()
    assert told["variables"]["HF_TOKEN"] == IN_THE_SHELL["HF_TOKEN"]
    assert "WANDB_API_KEY" not in told["variables"]
    assert any("worker.py" in words for words in started)
    texts = {
        **files_below(laboratory.run_dir),
        **files_below(outputs),
        **files_below(laboratory.cache / "rlaudit" / "running"),
        "stdout": ran.stdout,
        "stderr": ran.stderr,
        **{f"arguments {number}": words for number, words in enumerate(started)},
    }
    assert found_in(texts) == []
    assert any("non-default args: " in text and "'hf_token': '***'" in text for text in texts.values())
    provenance = json.loads((laboratory.run_dir / "plan.json").read_text())["provenance"]
    assert "HF_TOKEN" in provenance["variables_not_shown"]["passed"]
    assert {"WANDB_API_KEY", "DB_PASSWORD"} <= set(provenance["variables_not_shown"]["withheld"])


@pytest.fixture
def config(laboratory: Laboratory) -> Path:
    path = laboratory.folder / "serve.yaml"
    path.write_text(yaml.safe_dump({"model": str(laboratory.model), "dtype": "float32", **IN_THE_CONFIG}))
    return path


@pytest.mark.parametrize("output", ["json", "text", "sarif", "markdown", "html", "github"])
def test_an_inspection_says_no_secret_of_the_config(
    laboratory: Laboratory, shell: None, config: Path, output: str
) -> None:
    ran = laboratory.command("inspect", str(config), "--from", V0, "--to", V1, "--output", output)
    assert ran.exit_code in {0, 1}, ran.stderr
    assert found_in({"stdout": ran.stdout, "stderr": ran.stderr}) == []
    if output == "json":
        settings = {row["name"]: row for row in json.loads(ran.stdout)["settings"]}
        assert settings["hf_token"]["written"] == "***"


def test_a_recipe_made_of_a_config_holds_no_secret_and_says_so(
    laboratory: Laboratory, shell: None, config: Path
) -> None:
    recipe = laboratory.folder / "written.yaml"
    words = ("ablate", str(config), "--cpu", "--from", V0, "--to", V1)
    ran = laboratory.command(*words, "--write-recipe", str(recipe))
    dry = laboratory.command(*words, "--dry-run")
    assert (ran.exit_code, dry.exit_code) == (0, 0), ran.stderr + dry.stderr
    texts = {"recipe": recipe.read_text(), "stderr": ran.stderr, "dry": dry.stdout + dry.stderr}
    assert found_in(texts) == []
    if "***" in yaml.safe_dump(yaml.safe_load(recipe.read_text())):
        again = laboratory.ablate(recipe)
        assert again.exit_code == 2
        assert "was written without its secret" in again.stderr


def test_the_file_that_hands_secrets_over_is_for_this_user_only_and_gone_afterwards(tmp_path: Path) -> None:
    from rlaudit.engines.cells.handed_over import SECRETS, forget, hand_over

    hand_over(tmp_path, "job.json", {"engine_args": IN_ENGINE_ARGS})
    hand_over(tmp_path, "environment.json", {"variables": IN_VARIABLES})
    assert stat.S_IMODE((tmp_path / SECRETS).stat().st_mode) == 0o600
    assert found_in({name: (tmp_path / name).read_text() for name in ("job.json", "environment.json")}) == []
    forget(tmp_path)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["environment.json", "job.json"]
