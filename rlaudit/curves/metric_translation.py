"""What other frameworks call a metric, how theirs differs, and what is usual: for `list metrics` and `explain`."""

import re
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rlaudit.curves.logged_metric import Clip, Group, LoggedMetric, Weights
from rlaudit.curves.metric_names import BANDS, DEFINITIONS, KNOWN, known_metric

if TYPE_CHECKING:
    from rlaudit.statistics.measurement.metric import Metric

# Metrics of rlaudit whose quantity has another name in logs.
QUANTITIES: Mapping[str, str] = {
    "mean_ratio_minus_one": "mean_ratio",
    "ess_token": "effective_sample_size",
    "ppo_clip_fraction": "clip_fraction",
    "gspo_clip_fraction": "clip_fraction",
    "tail_fraction_2": "share_corrected",
}
# Their definitions are rlaudit's own: means over tokens.
SAME = frozenset({"k1", "k2", "k3", "mean_abs_log_ratio", "token_mult_prob_error"})
HEAD = (
    "d is trainer - rollout, the log ratio of a sampled token; r = exp(d). rlaudit takes means over all tokens, before "
    'any clipping. "As here" is such a mean, with the trainer under the rollout\'s weights. Bands are of other models '
    "than yours: two runs of one engine show what is usual with yours.",
    "[...] may be missing from a key. A name says nothing without its definition. mismatch_kl is k3 in prime-rl and k1 "
    "in slime; chi2_seq is a product in verl and geometric in ms-swift.",
)
EPSILON = re.compile(r"\{\w+?_(epsilon_\w+):g\}")
LOGGED_ONLY = (Group.LOGPROBS, Group.CORRECTION, Group.OBJECTIVE)
WEIGHTS = {
    Weights.ROLLOUT: "trainer under the rollout's weights",
    Weights.CURRENT: "current policy, so staleness and updates are in it",
    Weights.NONE: "",
}


def listed(metrics: Mapping[str, "Metric"]) -> str:
    """Return a block of text for each metric: those of rlaudit, then those that only frameworks log."""
    blocks = [textwrap.fill(line, 120) for line in HEAD]
    for name, metric in metrics.items():
        formula = EPSILON.sub(r"\1", metric.formula)
        head = f"{name}: {formula} [{metric.unit}]; {metric.clipping}"
        blocks.append("\n".join([head, *translation(name)]))
    ours = {QUANTITIES.get(name, name) for name in metrics}
    others = [name for name in logged_quantities() if name not in ours]
    blocks += ["\n".join([f"{name}: not computed by rlaudit", *translation(name)]) for name in others]
    return "\n\n".join(blocks)


def logged_quantities() -> list[str]:
    """Return the quantities of training that frameworks log and `rlaudit curves` reads."""
    return list(dict.fromkeys(metric.canonical for metric in KNOWN if metric.group in LOGGED_ONLY))


def translation(name: str) -> list[str]:
    """Return the lines of a metric: its names elsewhere with their definitions, and its reference bands."""
    quantity = QUANTITIES.get(name, name)
    lines = [
        f"    {metric.framework}: {', '.join(readable_keys(metric.pattern))}: {difference(metric)}"
        for metric in KNOWN
        if metric.canonical == quantity
    ]
    lines += [f"    band: {band.values}: {band.means} ({band.source})" for band in BANDS.get(quantity, ())]
    return lines


def difference(metric: LoggedMetric) -> str:
    """Return sign, level, clipping and policy of a logged metric; only what differs if its formula is ours."""
    is_ours = metric.canonical in SAME and metric.definition == DEFINITIONS[metric.canonical]
    if is_ours and metric.clip is Clip.BEFORE:
        return f"as here; {WEIGHTS[metric.weights]}" if metric.weights is Weights.CURRENT else "as here"
    clip = "" if metric.clip in {Clip.NONE, Clip.COUNTS} else metric.clip.value
    return "; ".join(part for part in (metric.definition, clip, WEIGHTS[metric.weights]) if part)


def about_key(key: str) -> str | None:
    """Say what a key of a training log means; None if no known framework uses it."""
    metric = known_metric(key)
    if metric is None:
        return None
    lines = [
        f"{key} is {metric.canonical} in {metric.framework}.",
        "",
        f"Definition: {metric.definition}",
        f"Clipping:   {metric.clip.value}",
        f"Trainer:    {metric.weights.value or 'not in it'}",
        f"Group:      {metric.group.value}",
        "",
        f"{metric.canonical} elsewhere:",
        *translation(metric.canonical),
    ]
    return "\n".join(lines)


def about_quantity(name: str) -> str:
    """Describe a quantity that rlaudit only reads."""
    return "\n".join([f"{name}: logged by frameworks, compared by `rlaudit curves`", "", *translation(name)])


def readable_keys(pattern: str) -> tuple[str, ...]:
    """Return the keys of a pattern as a person writes them: alternatives apart, optional parts in brackets."""
    begin = re.match(r"\(([^()?]+)\)(?!\?)", pattern)
    if begin is not None:
        alternatives = [alternative + pattern[begin.end() :] for alternative in begin[1].split("|")]
    else:
        alternatives = _split(pattern)
    return tuple(_readable(alternative) for alternative in alternatives)


def _split(pattern: str) -> list[str]:
    """Return the alternatives outside parentheses."""
    parts, depth = [""], 0
    for letter in pattern:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _readable(pattern: str) -> str:
    text = pattern.replace("[^/]+", "NAME").replace(".+", "NAME").replace(".*/", ".../").replace(r"\d?", "[N]")
    text = re.sub(r"(\w)\?", r"[\1]", text.replace("[_/]", "_"))
    return re.sub(r"\(([^()]*)\)\?", r"[\1]", text)
