"""Sentences name their subject: who does something is a user, a caller, a program or a release."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
VAGUE = re.compile(r"\b(nobody|somebody|anybody|whoever|whatever)\b", re.IGNORECASE)


def test_no_sentence_has_a_vague_subject() -> None:
    files = [ROOT / "README.md", *ROOT.glob("recipes/*.yaml")]
    files += [file for ending in ("py", "yaml", "md") for file in (ROOT / "rlaudit").rglob(f"*.{ending}")]
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if VAGUE.search(line)
    ]
    assert len(files) > 500 and found == []
