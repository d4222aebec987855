"""What the hub's cache on this machine holds of a model.

Source: the cache's layout (huggingface_hub, "Understand caching"): refs/REVISION names a commit, snapshots/COMMIT holds
its files.
"""

from collections.abc import Mapping
from pathlib import Path

from rlaudit.home import expanded


def snapshot(model: str, revision: str | None, environ: Mapping[str, str]) -> Path | None:
    """The folder of a hub id at a branch, tag or commit, `main` by default; its name is the commit. None where the
    cache has no configuration of it."""
    home = Path(environ.get("HF_HOME") or Path(environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    cache = expanded(environ.get("HF_HUB_CACHE") or home / "hub")
    repository = cache / f"models--{model.replace('/', '--')}"
    reference = repository / "refs" / (revision or "main")
    commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
    found = repository / "snapshots" / (commit or "")
    return found if commit and (found / "config.json").is_file() else None
