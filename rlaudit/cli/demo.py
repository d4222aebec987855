"""`rlaudit demo`: one real case from question to diagnosis, offline, with the commands that a user would type.

Nothing printed is canned: the files of rlaudit/demo are inspected and compared now.
"""

import json
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import chdir
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from rlaudit import demo as files
from rlaudit.cli.terminal import columns
from rlaudit.errors import UsageError
from rlaudit.files.standard_output import to_stdout
from rlaudit.layers import Verdict

# A checkout has the two recordings as an example; a wheel has them beside the other files of the demo.
MIGRATION = Path("examples", "recorded", "trl-0.8.5-to-0.10.2")
RECORDINGS = ("v0", "v1")
DIAGNOSE = ("diagnose", *RECORDINGS)
INSPECT = ("inspect", "base.yaml", "--from", "0.8.5", "--to", "0.18.1")
PROCESSED = ("compare", "vllm-0.18.1-processed.parquet", "--temperature", "0.7")
QUESTION = """\
TRL 0.23.1 trained the same program on vLLM 0.8.5 and on 0.10.2 (SmolLM2-135M, temperature 0.7, float32, on a CPU).
`rlaudit record` wrote down what the training requested and what vLLM returned. What follows is computed now.
"""
YOURS = """\
Yours:
  rlaudit record -- python train.py                       a few steps of the run you have, in any framework
  rlaudit inspect CONFIG --from 0.8.5 --to 0.18.1         any framework's file, or a whole checkout
  rlaudit compare ROLLOUTS --temperature 0.7              what your run logged: ids and logprobs are enough
  rlaudit ablate quick                                    three real engines here, a few minutes
"""


def demo_command(
    folder: Annotated[
        Path | None, typer.Argument(help="Leave the files here, to type the commands yourself: rlaudit demo try-it.")
    ] = None,
) -> int:
    """Show one real case, offline, in a few seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        if folder is not None:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise UsageError(f"{folder} is there and not empty", "give a new folder")
            folder.mkdir(parents=True, exist_ok=True)
            place = folder
        for file in resources.files(files).iterdir():
            if file.name.endswith((".yaml", ".parquet")):
                (place / file.name).write_bytes(file.read_bytes())
        for name in RECORDINGS:
            shutil.copytree(_folder_of_recordings() / name, place / name)
        with chdir(place):
            for part in _parts():
                to_stdout(part)
    to_stdout(f"The files are in {folder}.\n" if folder is not None else "")
    return 0


def _folder_of_recordings() -> Path:
    package = Path(files.__file__).parent
    return package if (package / RECORDINGS[0]).is_dir() else package.parents[1] / MIGRATION


def _parts() -> Iterator[str]:
    yield f"{QUESTION}\n"
    yield _heading("Is it still the same training?", DIAGNOSE)
    yield from _layers(DIAGNOSE)
    yield _heading(
        "Can rlaudit find this mismatch in a config, before anything runs? A config of PipelineRL, written for 0.8.5:",
        INSPECT,
    )
    for finding in _report(INSPECT)["findings"]:
        if finding["severity"] == "error":
            yield _entry(f"ERROR {finding['rule']}", finding["message"])
    yield _heading(
        "Does processed_logprobs remove this mismatch? Tokens that vLLM 0.18.1 sampled and the trainer scored:",
        PROCESSED,
    )
    yield from _layers(PROCESSED)
    yield f"\n{YOURS}"


def _layers(words: tuple[str, ...]) -> Iterator[str]:
    for layer in _report(words)["layers"]:
        cause = f" {layer['cause']}" if layer["cause"] else ""
        yield _entry(f"{layer['layer']}: {layer['verdict'].upper()}{cause}", layer["because"])
        if layer["verdict"] == Verdict.MISMATCH and layer["next"]:
            yield _entry("next", layer["next"])


def _report(words: tuple[str, ...]) -> dict[str, Any]:
    """Run a command line and return its report."""
    from rlaudit.cli.app import run

    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "report.json"
        quiet = ["--quiet"] if words[0] == "compare" else []
        code = run([*words, *quiet, "--output", f"json:{path}"])
        if not path.is_file():
            raise RuntimeError(f"rlaudit {' '.join(words)} ended with {code} and left no report")
        return dict(json.loads(path.read_text()))


def _heading(question: str, words: tuple[str, ...]) -> str:
    return f"\n{_bold(question)}\n$ rlaudit {' '.join(words)}\n"


def _entry(name: str, sentence: str) -> str:
    width = columns() or 10**6
    return textwrap.fill(f"{name}: {sentence}", max(width, 40), initial_indent="  ", subsequent_indent="    ") + "\n"


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else text
