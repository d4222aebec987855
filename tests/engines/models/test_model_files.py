"""What a model's files say: a folder, the hub's cache, the hub."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlaudit.engines.models.model import DEFAULT_MODEL
from rlaudit.engines.models.model_files import INDEX, ModelFiles, read_model_files
from rlaudit.errors import UsageError

LLAMA = {"model_type": "llama", "dtype": "bfloat16"}


def checkpoint(folder: Path, configuration: dict[str, Any], *sizes: int) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(configuration))
    for place, size in enumerate(sizes):
        (folder / f"model-{place}.safetensors").write_bytes(b"\0" * size)
    return folder


def test_a_folder_s_weights_are_its_files_or_what_its_index_says(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m", LLAMA, 600, 400)
    assert read_model_files(str(folder)) == ModelFiles(str(folder), LLAMA, 1000)
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 5000}, "weight_map": {}}))
    assert read_model_files(str(folder)).stored_bytes == 5000


def test_the_default_model_is_known_before_it_is_made() -> None:
    files = read_model_files(DEFAULT_MODEL)
    assert files.configuration["model_type"] == "llama"
    assert files.weight_bytes("float32") == 2 * (files.stored_bytes or 0)


@pytest.mark.parametrize(
    ("configuration", "dtype", "expected"),
    [
        ({"dtype": "bfloat16"}, "float32", 200),
        ({"torch_dtype": "float32"}, "bfloat16", 50),
        ({"text_config": {"torch_dtype": "float16"}}, "float32", 200),
        ({}, "bfloat16", 50),
        ({"dtype": "bfloat16", "quantization_config": {"bits": 4}}, "float32", 100),
        ({"dtype": "bfloat16"}, "auto", 100),
    ],
)
def test_weights_in_another_dtype_are_never_estimated_too_large(
    configuration: dict[str, Any], dtype: str, expected: int
) -> None:
    assert ModelFiles("m", configuration, 100).weight_bytes(dtype) == expected


def test_weights_of_unknown_size_stay_unknown() -> None:
    assert ModelFiles("m", LLAMA).weight_bytes("bfloat16") is None


@pytest.mark.parametrize("revision", [None, "v1", "abc123"])
def test_a_hub_model_is_read_in_the_cache_of_this_machine(tmp_path: Path, revision: str | None) -> None:
    repository = tmp_path / "hub" / "models--org--model"
    checkpoint(repository / "snapshots" / "abc123", LLAMA, 10)
    (repository / "refs").mkdir()
    for name in ("main", "v1"):
        (repository / "refs" / name).write_text("abc123")
    offline = {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    assert read_model_files("org/model", revision, offline) == ModelFiles("org/model", LLAMA, 10, commit="abc123")
    assert "HF_HUB_OFFLINE" in read_model_files("org/other", revision, offline).unknown


@pytest.mark.parametrize("name", ["just-a-word", "./gone", "/gone/model", "a/b/c"])
def test_what_can_be_no_hub_id_is_asked_of_no_hub(name: str) -> None:
    with pytest.raises(UsageError, match="there is no model"):
        read_model_files(name, environ={"HF_ENDPOINT": "http://127.0.0.1:1"})


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """A hub on this machine that holds org/model, and who asked it with which secret."""
    pages = {
        "/org/model/resolve/main/config.json": json.dumps(LLAMA),
        f"/org/model/resolve/main/{INDEX}": json.dumps({"metadata": {"total_size": 77}}),
        "/org/single/resolve/v2/config.json": json.dumps(LLAMA),
        "/org/odd/resolve/main/config.json": "[]",
    }
    secrets: list[str] = []

    class Hub(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            secrets.append(self.headers.get("Authorization", ""))
            self.send_response(200 if self.path in pages else 404)
            self.send_header("X-Repo-Commit", "def456")
            self.end_headers()
            self.wfile.write(pages.get(self.path, "").encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", secrets
        server.shutdown()
        thread.join()


def test_a_hub_model_that_is_not_here_is_asked_of_the_hub(tmp_path: Path, hub: tuple[str, list[str]]) -> None:
    environ = {"HF_ENDPOINT": hub[0], "HF_HOME": str(tmp_path), "HF_TOKEN": "secret"}
    assert read_model_files("org/model", environ=environ) == ModelFiles("org/model", LLAMA, 77, commit="def456")
    assert read_model_files("org/single", "v2", environ) == ModelFiles("org/single", LLAMA, commit="def456")
    assert set(hub[1]) == {"Bearer secret"}
    for missing in ("org/gone", "org/odd"):
        files = read_model_files(missing, environ=environ)
        assert files.unknown.startswith("its config.json could not be read on the hub: ")
        assert not files.configuration
