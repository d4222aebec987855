"""The index of names over all releases: which one first had each, and which one had it last."""

import json
from pathlib import Path

from packaging.version import Version

from rlaudit.vllm.lifetimes import FILE, KINDS


def write_lifetimes(folder: Path) -> None:
    """Make the index again from the catalogue files of a folder."""
    found: dict[str, dict[str, list[str]]] = {kind: {} for kind in KINDS}
    for version in sorted(Version(path.stem) for path in folder.glob("[0-9]*.json")):
        data = json.loads((folder / f"{version}.json").read_text(encoding="utf-8"))
        for kind, section in KINDS.items():
            for name in data[section]:
                found[kind].setdefault(name, [str(version), ""])[1] = str(version)
    lines = [
        f'"{kind}":{{\n'
        + ",\n".join(f"{json.dumps(name)}:{json.dumps(span)}" for name, span in sorted(spans.items()))
        + "\n}"
        for kind, spans in found.items()
    ]
    (folder / FILE).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
