"""Prompts of a recipe: a set that travels with rlaudit, a text file, JSON lines, or those of a recording."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rlaudit.errors import UsageError
from rlaudit.files.parse_json import parse_json
from rlaudit.laboratory.recipe import recipe_folders
from rlaudit.laboratory.recorded_requests import RecordedRequests, recorded_requests
from rlaudit.recording.recording import is_recording


@dataclass(frozen=True)
class PromptSet:
    """Prompts as they were written."""

    name: str
    # Each a text, a list of chat messages, or a list of token ids.
    prompts: tuple[Any, ...]
    # The `answer` beside each, for studies that reward it; None if missing.
    answers: tuple[Any, ...] = ()
    # The requests and completions of the recording that the prompts are from.
    recorded: RecordedRequests | None = None

    @property
    def digest(self) -> str:
        """The sha256 of the prompts and of their recorded requests."""
        content = self.prompts if self.recorded is None else (self.prompts, asdict(self.recorded))
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def load_prompts(name_or_path: str, limit: int | None = None) -> PromptSet:
    """Read prompts by name or path.

    A `.txt` file holds one prompt a line. A `.jsonl` file holds one object a line with `prompt` (text), `messages`
    (chat) or `prompt_token_ids`, and maybe `answer`. A recording holds token ids. Raises UsageError for a file that is
    missing, empty, not UTF-8, or not of that form, NotFinished for a recording without a completion.
    """
    if is_recording(Path(name_or_path)):
        requests = recorded_requests(Path(name_or_path))
        requests = requests if limit is None else requests.first(limit, requests.longest)
        ids = tuple({"prompt_token_ids": list(prompt)} for prompt in requests.prompts)
        return PromptSet(Path(name_or_path).name, ids, recorded=requests)
    path = _find(name_or_path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"prompts file {path} is not UTF-8: {error.reason} at byte {error.start}") from error
    filled = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not filled:
        raise UsageError(f"prompts file {path} is empty")
    if path.suffix == ".jsonl":
        rows = [_from_json(path, number, line) for number, line in filled[:limit]]
        return PromptSet(path.stem, tuple(prompt for prompt, _ in rows), tuple(answer for _, answer in rows))
    return PromptSet(path.stem, tuple(line for _, line in filled[:limit]))


def _find(name_or_path: str) -> Path:
    path = Path(name_or_path)
    if path.is_file():
        return path
    for folder in recipe_folders():
        named = folder / "prompts" / f"{name_or_path}.jsonl"
        if named.is_file():
            return named
    raise UsageError(f"no prompts at {path}", hint="a .txt file (one prompt a line), a .jsonl file, or: arithmetic")


def _from_json(path: Path, number: int, line: str) -> tuple[Any, Any]:
    try:
        row = parse_json(line)
    except ValueError as error:
        raise UsageError(f"{path}:{number}: not JSON: {error}") from error
    answer = row.get("answer") if isinstance(row, dict) else None
    match row:
        case {"prompt": str(text)} if text:
            return text, answer
        case {"messages": [_, *_] as messages}:
            return messages, answer
        case {"prompt_token_ids": [_, *_] as ids} if all(isinstance(token, int) for token in ids):
            return {"prompt_token_ids": ids}, answer
    raise UsageError(f"{path}:{number}: expected an object with prompt, messages or prompt_token_ids")
