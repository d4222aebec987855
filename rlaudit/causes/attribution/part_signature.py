"""The signature of a cause that shows as a part of the excess mismatch (`excess.py`)."""

import numpy as np

from rlaudit.causes.attribution.cause import LEAST_SHARE, SURELY, NotTested, Outcome, Signature
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.statistics.measurement.excess import CausePart

# In units of the floor: less than this would not have been noticed without the other causes.
LEAST_OF_FLOOR = 0.5
# Of a cause that follows the position: so does the noise of any two engines, up to 15 % of its k2 (SmolLM2, bfloat16).
LEAST_SHARE_BY_POSITION = 0.2
# p-value, not corrected for the number of causes, from which on a part that is not named is not excluded either.
LEANS_BELOW = 5e-3


# In a clause: where the share of the mismatch stands.
SHARE = "{share}"


def part_signature(evidence: TokenEvidence, name: str, because: str, least_share: float = LEAST_SHARE) -> Outcome:
    """Return the signature of the part `name`; `because` says of its share where it stands."""
    excess = evidence.excess
    if excess is None or name not in excess.parts:
        return NotTested("the quantity that this cause grows with does not vary in these data")
    return signature_of(evidence, excess.parts[name], because, least_share)


def signature_of(evidence: TokenEvidence, part: CausePart, because: str, least_share: float = LEAST_SHARE) -> Signature:
    """Return a part as a signature: large if its share is at least `least_share`, and surely above SURELY.

    because: a clause with SHARE where the share stands, or one that says of the share what follows it.
    """
    excess = evidence.excess
    assert excess is not None
    share, low, high = excess.share(part)
    share_K = np.append(share, excess.share_left(part))
    least_k2 = LEAST_OF_FLOOR * (evidence.floor_k2 or 0.0)
    # With any part of the prompts left out: a single outlier neither makes a cause nor drowns it.
    is_large_K = (share_K >= least_share) & (np.append(part.k2, part.left_K) > least_k2)
    large = bool(is_large_K.all()) and low >= SURELY
    clause = because if SHARE in because else f"{SHARE} {because}"
    leans = not large and bool((is_large_K & (np.append(part.p_value, part.p_left_K) < LEANS_BELOW)).any())
    return k2_signature(part.ends, (share, low, high), part.surely_p, large, clause, leans)


def k2_signature(
    k2: tuple[float, float, float],
    share: tuple[float, float, float],
    p_value: float,
    large: bool,
    because: str,
    leans: bool = False,
) -> Signature:
    """Return a signature whose effect is a part of k2. k2, share: value, low and high; the share is of the excess.

    because: a clause with SHARE where the share stands.
    """
    value, low, high = share
    because = because.replace(
        SHARE, f"{100 * value:.0f} % [{100 * low:.0f} %, {100 * high:.0f} %] of the mismatch (k2)"
    )
    return Signature(p_value, *k2, "k2, nats^2", large, because, *share, leans)
