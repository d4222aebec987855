"""The sentences about limits of detection (`limits.py`): what would have been shown, and how much more shows more."""

import math
from collections.abc import Sequence

from rlaudit.meaning.limits import LARGEST_MEAN_RATIO, LARGEST_SHIFTED, LARGEST_STEP, Limits

GROUPS_OR_ENTROPY = "log trainer_entropy, or token ids of four samples and more of each prompt"


def would_have_shown(limits: Limits) -> str:
    """Return the sentence on what these data would have shown."""
    said = [
        f"a mean ratio off by more than {percent(limits.mean_ratio)}" if limits.mean_ratio is not None else "",
        f"a temperature off by more than {limits.temperature:.2g}" if limits.temperature is not None else "",
        f"a share of first choices {percent(limits.first_choices)} over what is reported"
        if limits.first_choices is not None
        else "",
        f"a top-p below {_below_one(limits.top_p)}" if limits.top_p is not None else "",
        f"a min-p above {limits.min_p:.2g}" if limits.min_p is not None else "",
        f"a top-k below {limits.top_k}" if limits.top_k is not None else "",
        f"a shift in more than {percent(limits.shifted)} of sequences" if limits.shifted is not None else "",
    ]
    said = [part for part in said if part]
    listed = f"{', '.join(said[:-1])} or {said[-1]}" if len(said) > 1 else "".join(said)
    return f"{listed[:1].upper()}{listed[1:]} would have shown" if listed else "No limit of detection is known"


def percent(share: float) -> str:
    """Write a share with two digits."""
    return f"{100 * share:.2g} %" if share < 1 else "100 %"


def _below_one(share: float) -> str:
    """Write a share below 1 so that it is not rounded up to 1."""
    return f"{math.floor(share * 1000) / 1000:g}"


def prompts_to_show(prompts: int, limit: float | None, least: float) -> int:
    """Return how many prompts like these bring a limit down to `least`: errors fall as the root of their number."""
    times = 2.0 if limit is None else (limit / least) ** 2
    return math.ceil(prompts * max(times, 1.1))


def too_little(limits: Limits, prompts: int, sequences: int) -> Sequence[str]:
    """Return what is too little for a verdict, each with how much more settles it."""
    lines = []
    if limits.mean_ratio is None or limits.mean_ratio > LARGEST_MEAN_RATIO:
        shown = "" if limits.mean_ratio is None else f" (now {percent(limits.mean_ratio)})"
        needed = prompts_to_show(prompts, limits.mean_ratio, LARGEST_MEAN_RATIO)
        lines.append(f"about {needed} prompts like these show a mean ratio off by {percent(LARGEST_MEAN_RATIO)}{shown}")
    step = limits.inverse_temperature
    if step is not None and step > LARGEST_STEP:
        needed = prompts_to_show(prompts, step, LARGEST_STEP)
        lines.append(f"about {needed} prompts like these show a temperature off by {percent(LARGEST_STEP)}")
    if limits.shifted is not None and limits.shifted > LARGEST_SHIFTED:
        needed = math.ceil(sequences * limits.shifted / LARGEST_SHIFTED)
        lines.append(f"about {needed} sequences show a shift in {percent(LARGEST_SHIFTED)} of them")
    return lines
