"""The sentences about limits of detection (`limits.py`): what would have been shown, and how much more shows more."""

import math
from collections.abc import Sequence

from rlaudit.meaning.limits import LARGEST_MASS, LARGEST_MEAN_RATIO, LARGEST_SHIFTED, LARGEST_STEP, Limits
from rlaudit.statistics.resample import FEWEST_CLUSTERS

# So many in the first half of the sentence.
FIRST = 3
HALF = 0.5
GROUPS_OR_ENTROPY = "log trainer_entropy, or the token ids of at least four samples per prompt"


def would_have_shown(limits: Limits) -> str:
    """Say what these data would have shown; what every log has comes first."""
    step = limits.inverse_temperature
    parts = [
        f"a mean ratio off by {percent(limits.mean_ratio)}" if limits.mean_ratio is not None else "",
        # A sampler so much hotter has its 1/T lower by this step. Twice the temperature and more is no limit.
        f"a temperature off by {percent(step / (1.0 - step))}" if step is not None and step < HALF else "",
        f"logprobs shifted by a token in {percent(limits.shifted)} of sequences" if limits.shifted is not None else "",
        f"a top-p that cuts {percent(limits.mass)} of the probability"
        if limits.mass is not None and limits.mass < 1
        else "",
        f"a likeliest token that is drawn {100 * limits.first_choices:.2g} percentage points too often"
        if limits.first_choices is not None
        else "",
    ]
    shown = [part for part in parts if part]
    first, others = shown[:FIRST], shown[FIRST:]
    if not first:
        return ""
    further = f". So would {_listed(others)}" if others else ""
    ruled_out = _ruled_out(limits)
    return f"Faults from this size on would show here: {_listed(first)}{further}{f'. {ruled_out}' if ruled_out else ''}"


def _ruled_out(limits: Limits) -> str:
    """Say which filters were not in force, since tokens were drawn that they would have cut off."""
    parts = [
        f"a top-p below {_below_one(limits.top_p)}" if limits.top_p is not None else "",
        f"a min-p above {limits.min_p:.2g}" if limits.min_p is not None else "",
        f"a top-k below {limits.top_k}" if limits.top_k is not None else "",
    ]
    listed = _listed([part for part in parts if part])
    return f"The drawn tokens rule out {listed}" if listed else ""


def _listed(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} or {parts[-1]}" if len(parts) > 1 else "".join(parts)


def sentences(parts: Sequence[str]) -> str:
    """Join clauses to sentences. The first goes on after "next:"."""
    return ". ".join(part if place == 0 else f"{part[0].upper()}{part[1:]}" for place, part in enumerate(parts))


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


def in_all(needed: int, prompts: int) -> str:
    """Say how many prompts are needed, beside how many there are."""
    return f"about {needed} prompts in place of these {prompts}"


def too_little(limits: Limits, prompts: int, sequences: int) -> Sequence[str]:
    """Return what is too little for a verdict, each with how much more settles it."""
    lines = []
    if limits.mean_ratio is None or limits.mean_ratio > LARGEST_MEAN_RATIO:
        shown = "" if limits.mean_ratio is None else f" (now only {percent(limits.mean_ratio)} or more shows)"
        needed = max(prompts_to_show(prompts, limits.mean_ratio, LARGEST_MEAN_RATIO), FEWEST_CLUSTERS)
        lines.append(
            f"take {in_all(needed, prompts)}: a mean ratio off by {percent(LARGEST_MEAN_RATIO)} would then show{shown}"
        )
    step = limits.inverse_temperature
    if step is not None and step > LARGEST_STEP:
        needed = prompts_to_show(prompts, step, LARGEST_STEP)
        lines.append(f"take {in_all(needed, prompts)}: a temperature off by {percent(LARGEST_STEP)} would then show")
    if limits.mass is not None and limits.mass > LARGEST_MASS:
        now = f" (now a filter that cuts {percent(limits.mass)} may stay hidden)" if limits.mass < 1 else ""
        lines.append(f"take more samples of each prompt to show a filter{now}")
    if limits.shifted is not None and limits.shifted > LARGEST_SHIFTED:
        needed = math.ceil(sequences * limits.shifted / LARGEST_SHIFTED)
        lines.append(
            f"take about {needed} sequences: logprobs shifted in {percent(LARGEST_SHIFTED)} of them would then show"
        )
    return lines
