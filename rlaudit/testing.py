"""An assertion for the tests of frameworks: a function, and no plug-in of pytest."""

from typing import TYPE_CHECKING, Literal, Unpack, get_args

from rlaudit.api.compare import Options, Table, compare
from rlaudit.errors import UsageError
from rlaudit.layers import Judgement, Verdict
from rlaudit.report.figures import TELLING, TITLES, interval
from rlaudit.secrets import mask_text
from rlaudit.text.counted import counted
from rlaudit.text.printable import printable

if TYPE_CHECKING:
    from rlaudit.report.parts.comparison import Compared
    from rlaudit.report.report import Report

Require = Literal["no mismatch", "match"]


def assert_logprobs_agree(
    table: "Table", trainer: "Table | None" = None, *, require: Require = "no mismatch", **options: Unpack[Options]
) -> "Report":
    """Raise AssertionError if rollout logprobs are not what the trainer assumes; its message is the answer in words.

    Takes the place of `assert_close(rollout_logprobs, trainer_logprobs, atol=1e-2)` in a framework's test, and names
    the cause where the tokens show one.

    table, trainer and options: as of `rlaudit.compare`, among them `temperature`. Logprobs are in nats.
    require: "no mismatch" fails if a layer mismatches; too few tokens to show anything pass. "match" fails unless every
    layer matches, which takes trainer_entropy, or token_id of several samples of each prompt, and thousands of tokens.
    Either fails if a part of the data cannot be used, unless `allow_partial` is true.

    How small a test may be: at a temperature of 0.7, 32 prompts with 4 samples of 8 tokens each name raw logprobs, in a
    second; `examples/api` has other sizes. At 1 and without filters or penalties raw logprobs are the processed ones.
    Returns the report of the comparison. Raises rlaudit.errors.UsageError and NotFinished as `rlaudit.compare` does.
    Source: TRL tests the same by hand on 2 prompts of 8 tokens (test_logprobs_match_with_non_default_sampling, which is
    marked xfail); `rlaudit explain raw-logprobs` has the published case.
    """
    if require not in get_args(Require):
        raise UsageError(f"require is {require!r}", f"there are: {', '.join(map(repr, get_args(Require)))}")
    report = compare(table, trainer, **options)
    answer = _mismatch(report)
    if answer is None and not options.get("allow_partial", False):
        answer = _fault(report)
    if answer is None and require == "match":
        answer = _no_match(report)
    if answer is not None:
        raise AssertionError(mask_text(str(printable(answer))))
    return report


def _mismatch(report: "Report") -> str | None:
    """Return the first layer that mismatches, which stands no matter what was left out; None if none does."""
    layer = next((layer for layer in report["layers"] if layer.verdict is Verdict.MISMATCH), None)
    if layer is None:
        return None
    cause = layer.cause or "no cause is shown by these columns"
    first = f"The engine's logprobs are not what the trainer assumes: {cause} ({layer.layer} layer)."
    return _in_words(first, layer, report)


def _fault(report: "Report") -> str | None:
    """Return what could not be used; None if nothing."""
    table = next((table for table in report["comparisons"] if table.faults.count), None)
    if table is None:
        return None
    first = table.faults.shown[0]
    place = ": ".join(part for part in (first.path, first.sequence) if part)
    return (
        f"{counted(table.faults.count, 'fault')} in {table.name}: a part of it cannot be used.\n"
        f"  {place}: {first.message}\n"
        "  To do: repair the table, or set allow_partial=True to leave that out."
    )


def _no_match(report: "Report") -> str | None:
    layer = next((layer for layer in report["layers"] if layer.verdict is not Verdict.MATCH), None)
    if layer is None:
        return None
    return _in_words(f"No match is shown in the {layer.layer} layer ({layer.verdict}).", layer, report)


def _in_words(first: str, layer: Judgement, report: "Report") -> str:
    because = f"{layer.because[0].upper()}{layer.because[1:]}" if layer.because else ""
    judged = [table for table in report["comparisons"] if not table.is_before]
    measured = _measured(judged[0]) if len(judged) == 1 else ""
    to_do = f"To do: {layer.next}" if layer.next else ""
    return "\n  ".join(line for line in (first, because, measured, to_do) if line)


def _measured(table: "Compared") -> str:
    """Return how far apart both sides are; "" if no trainer has scored the rollouts."""
    figures = [f"{TITLES[name]} {interval(table.measurements[name])}" for name in TELLING if name in table.measurements]
    return f"{'; '.join(figures)}, of {counted(table.compared_tokens, 'token')}" if figures else ""
