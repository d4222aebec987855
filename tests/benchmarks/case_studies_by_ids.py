"""The case studies from ids and one logprob a token alone: what `compare` says of the semantic layer, before and after.

    python tests/benchmarks/case_studies_by_ids.py

Before: each `compare` of examples/case-studies as it stands there. After: the same command with the trainer's entropies
and the top logprobs of both sides taken out of the data. Printed is a line of JSON for each command, and for which the
verdict was turned into the opposite; ends with 1 where there is one.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "examples" / "case-studies"
# As token tables and exports of frameworks call them.
TAKEN_OUT = {
    "entropy",
    "trainer_entropy",
    "rollout_top_ids",
    "rollout_top_logprobs",
    "trainer_top_ids",
    "trainer_top_logprobs",
}


def main() -> int:
    """Print; 1 where a match became a mismatch, or a mismatch a match."""
    turned = 0
    for commands in sorted(STUDIES.glob("*/command.txt")):
        for line in commands.read_text(encoding="utf-8").splitlines():
            words = [word for word in shlex.split(line)[1:] if not word.startswith(("json:", "text"))]
            if words[0] != "compare":
                continue
            words = [word for word in words if word != "--output"]
            before, after = (_semantic(commands.parent, words, taken_out) for taken_out in (False, True))
            opposite = {before[0], after[0]} == {"match", "mismatch"}
            turned += opposite
            row = {"case": commands.parent.name, "table": words[1], "before": before, "after": after}
            print(json.dumps(row | ({"turned": True} if opposite else {})), flush=True)
    return int(turned > 0)


def _semantic(case: Path, words: list[str], taken_out: bool) -> tuple[str, str]:
    """Verdict and cause of the first layer."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(case, Path(folder) / case.name))
        if taken_out:
            for path in copy.rglob("*"):
                _take_out(path)
        done = subprocess.run(
            [sys.executable, "-m", "rlaudit", *words, "--output", "json:said.json"],
            cwd=copy,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )
        said = copy / "said.json"
        if not said.exists():
            return "error", (done.stderr.splitlines() or [""])[0]
        layer = json.loads(said.read_text(encoding="utf-8"))["layers"][0]
        return layer["verdict"], layer["cause"] or ""


def _take_out(path: Path) -> None:
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        pq.write_table(table.drop_columns([name for name in table.column_names if name in TAKEN_OUT]), path)
    elif path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        path.write_text("".join(json.dumps(_without(row)) + "\n" for row in rows), encoding="utf-8")


def _without(row: object) -> object:
    """A record without them; some exports have a list of records in a line."""
    if isinstance(row, list):
        return [_without(one) for one in row]
    return {name: value for name, value in row.items() if name not in TAKEN_OUT} if isinstance(row, dict) else row


if __name__ == "__main__":
    sys.exit(main())
