"""The comment of a pull request: made once, updated after, against a server that answers as GitHub does."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from repository import Repository

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".github" / "pull_request_comment.py"
MARK = "<!-- rlaudit: bump -->"


class GitHub:
    """Comments of pull request 7. refuses: the code with which everything is refused. asked: methods, in order."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.refuses: int | None = None
        self.asked: list[str] = []
        github = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                github.asked.append("GET")
                assert self.path.startswith("/repos/us/ours/issues/7/comments?per_page=100&page=")
                page = int(self.path.rpartition("=")[2])
                self.answer(github.comments[100 * (page - 1) : 100 * page])

            def do_POST(self) -> None:
                github.asked.append("POST")
                assert self.path == "/repos/us/ours/issues/7/comments"
                github.add(self.body())
                self.answer(github.comments[-1])

            def do_PATCH(self) -> None:
                github.asked.append("PATCH")
                number = int(self.path.removeprefix("/repos/us/ours/issues/comments/"))
                github.comments[number]["body"] = self.body()
                self.answer(github.comments[number])

            def body(self) -> str:
                text: str = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
                assert len(text) < 65_536
                return text

            def answer(self, data: object) -> None:
                assert self.headers["Authorization"] == "Bearer a-token"
                self.send_response(github.refuses or 200)
                self.end_headers()
                self.wfile.write(json.dumps(data).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, body: str, kind: str = "Bot") -> None:
        self.comments.append({"id": len(self.comments), "body": body, "user": {"type": kind}})


@pytest.fixture
def github() -> Iterator[GitHub]:
    made = GitHub()
    yield made
    made.server.shutdown()
    made.server.server_close()


def comment(github: GitHub, folder: Path, text: str, moves: bool = True, event: str = "pull_request") -> str:
    """What the script prints."""
    (folder / "report.md").write_text(text)
    (folder / "report.json").write_text(json.dumps({"bump": {"moves": [{}] if moves else []}}))
    (folder / "event.json").write_text(json.dumps({event: {"number": 7}}))
    environment = {
        "PATH": os.environ["PATH"],
        "GITHUB_API_URL": f"http://127.0.0.1:{github.server.server_port}",
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_REPOSITORY": "us/ours",
        "GITHUB_RUN_ID": "11",
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_TOKEN": "a-token",
    }
    words = [sys.executable, str(SCRIPT), str(folder / "report.md"), str(folder / "report.json")]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout


def test_the_first_run_creates_the_comment_and_the_next_update_it(github: GitHub, tmp_path: Path) -> None:
    github.add("a word of ours")
    comment(github, tmp_path, "# one\n")
    comment(github, tmp_path, "# two\n")
    comment(github, tmp_path, "# two\n")
    assert [one["body"] for one in github.comments] == ["a word of ours", f"{MARK}\n# two"]
    assert [method for method in github.asked if method != "GET"] == ["POST", "PATCH"]


def test_a_comment_is_found_on_a_later_page(github: GitHub, tmp_path: Path) -> None:
    for number in range(230):
        github.add(f"talk {number}")
    comment(github, tmp_path, "# one\n")
    comment(github, tmp_path, "# two\n")
    assert [one["body"] for one in github.comments[230:]] == [f"{MARK}\n# two"]


def test_where_no_pin_moves_a_comment_is_updated_and_none_is_made(github: GitHub, tmp_path: Path) -> None:
    comment(github, tmp_path, "# nothing\n", moves=False)
    assert github.comments == []
    comment(github, tmp_path, "# one\n")
    comment(github, tmp_path, "# nothing\n", moves=False)
    assert [one["body"] for one in github.comments] == [f"{MARK}\n# nothing"]


def test_a_person_who_copies_the_mark_keeps_their_comment(github: GitHub, tmp_path: Path) -> None:
    github.add(f"{MARK}\nmine", kind="User")
    comment(github, tmp_path, "# one\n")
    assert [one["body"] for one in github.comments] == [f"{MARK}\nmine", f"{MARK}\n# one"]


@pytest.mark.parametrize("code", [401, 403, 404])
def test_a_token_that_may_not_write_is_said_and_fails_nothing(github: GitHub, tmp_path: Path, code: int) -> None:
    github.refuses = code
    said = comment(github, tmp_path, "# one\n")
    assert said.startswith("::warning::")
    assert "pull-requests: write" in said


def test_what_is_no_pull_request_gets_no_comment(github: GitHub, tmp_path: Path) -> None:
    comment(github, tmp_path, "# one\n", event="push")
    assert github.asked == []


def test_a_long_report_is_cut_at_a_line_and_says_where_all_of_it_is(github: GitHub, tmp_path: Path) -> None:
    comment(github, tmp_path, "# one\n" + "a line of the report\n" * 10_000)
    (found,) = github.comments
    assert found["body"].count("a line of the report\n") > 3000
    assert "a line of the report\n\n*Cut here" in found["body"]
    assert "https://github.example/us/ours/actions/runs/11" in found["body"]


def test_nobody_is_called_by_a_config(github: GitHub, tmp_path: Path) -> None:
    comment(github, tmp_path, "model: @everyone/model\n")
    assert "@everyone" not in github.comments[0]["body"]


def test_the_action_inspects_a_merge_and_hands_its_report_on(tmp_path: Path, github: GitHub) -> None:
    made = Repository(tmp_path / "work")
    made.commit("v1", {"requirements.txt": "vllm==0.8.5\n"})
    made.commit("v2", {"requirements.txt": "vllm==0.18.1\n"})
    steps = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
    script = next(step["run"] for step in steps if step.get("id") == "inspect")
    python = tmp_path / "temp" / "rlaudit" / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    environment = {
        "PATH": os.environ["PATH"],
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "INPUT_PATHS": ".",
        "INPUT_BUMP": "HEAD^..HEAD",
        **{f"INPUT_{name}": "" for name in ("FROM", "TO", "FAIL_ON", "ARGUMENTS")},
        **{f"GITHUB_{name}": str(tmp_path / name) for name in ("OUTPUT", "STEP_SUMMARY")},
    }
    subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=made.root, env=environment, check=True)
    outputs = dict(line.split("=", 1) for line in (tmp_path / "OUTPUT").read_text().splitlines())
    assert outputs["exit-code"] == "0"
    comment(github, tmp_path, Path(outputs["markdown"]).read_text())
    assert "requirements.txt:1" in github.comments[0]["body"]


def test_the_example_asks_for_the_least() -> None:
    example = yaml.safe_load((ROOT / "examples" / "ci" / "github-bump.yml").read_text(encoding="utf-8"))
    assert example["permissions"] == {"contents": "read", "pull-requests": "write"}
    checkout, action = example["jobs"]["bump"]["steps"]
    assert checkout["with"]["fetch-depth"] == 2
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    assert set(action["with"]) <= set(inputs)
