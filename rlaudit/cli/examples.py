"""One or two command lines for the help of every command; a test runs them all."""

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "demo": ("rlaudit demo",),
    "record": (
        "rlaudit record -- python train.py",
        "rlaudit record --into recordings/new --prompts all -- bash run.sh --lr 1e-6",
    ),
    "inspect": (
        "rlaudit inspect base.yaml --from 0.8.5 --to 0.18.1",
        "rlaudit inspect base.yaml --from 0.8.5 --to 0.18.1 --diff",
    ),
    "ablate": (
        "rlaudit ablate quick",
        "rlaudit ablate base.yaml --from 0.8.5 --to 0.18.1 --dry-run",
        "rlaudit ablate quick --bisect mean_ratio_minus_one",
    ),
    "compare": (
        "rlaudit compare rollouts.jsonl --temperature 0.7",
        "rlaudit compare rollouts.jsonl --temperature 0.7 --output json:compare.json",
        "rlaudit compare new.jsonl --before rollouts.jsonl --temperature 0.7",
    ),
    "probe": (
        "rlaudit probe http://localhost:8000",
        "rlaudit probe http://today:8000 http://new:8000 --config base.yaml",
    ),
    "curves": (
        "rlaudit curves before.csv after.csv",
        "rlaudit curves after.csv --gate 'k3<0.015'",
        "rlaudit curves after.csv --gates-from history --gate-file gates.yaml",
    ),
    "diagnose": ("rlaudit diagnose runs/v0-to-v1 compare.json",),
    "report": ("rlaudit report runs/v0-to-v1 --output html:report.html",),
    "engines": ("rlaudit engines list",),
    "explain": ("rlaudit explain raw-logprobs",),
    "list": ("rlaudit list metrics",),
}


FIRST_STEPS = """First steps:
  rlaudit demo
  rlaudit inspect base.yaml --from 0.8.5 --to 0.18.1
  rlaudit ablate quick
  rlaudit explain raw-logprobs
  rlaudit --install-completion"""


def unwrapped(text: str) -> str:
    """Mark a text for typer, which joins other lines: a command line in two pieces cannot be pasted."""
    return f"\b\n{text}"


def epilog(command: str) -> str:
    """Return the end of a command's help."""
    return "\n".join(("For example:", *(f"  {line}" for line in EXAMPLES[command])))
