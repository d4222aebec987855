"""What training logs call their metrics, and what each name means there.

One name is not one definition: `mismatch_kl` is k3 in prime-rl and k1 in slime, `chi2_seq` is a product in verl and
geometric in ms-swift, a mean importance ratio may be logged before or after truncation, and a trainer's logprobs may
be those of the rollout's weights or of the current ones. Two curves are compared under different names only where
all of this agrees.
"""

import re
from functools import cache

from rlaudit.curves import mismatch_names, training_names
from rlaudit.curves.logged_metric import LoggedMetric

KNOWN: tuple[LoggedMetric, ...] = (*mismatch_names.NAMES, *training_names.NAMES)


@cache
def known_metric(key: str) -> LoggedMetric | None:
    """Return what a key of a log means, None if no framework known here uses it. The first that fits counts."""
    return next((metric for metric in KNOWN if re.fullmatch(metric.pattern, key)), None)
