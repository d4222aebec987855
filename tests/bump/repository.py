"""A repository of git to bump vLLM in, and the command at hand."""

import os
import subprocess
from pathlib import Path

NEITHER_NAME_NOR_SETTINGS = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


class Repository:
    """Files are written and committed; every commit has a number as its tag."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str) -> str:
        environment = {**os.environ, **NEITHER_NAME_NOR_SETTINGS}
        finished = subprocess.run(
            ["git", "-C", str(self.root), *words], env=environment, capture_output=True, text=True, check=True
        )
        return finished.stdout

    def commit(self, tag: str, files: dict[str, str | None]) -> None:
        """None takes a file away."""
        for name, text in files.items():
            path = self.root / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--allow-empty", "-m", tag)
        self.git("tag", tag)
