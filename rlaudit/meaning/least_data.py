"""The least data that can show a cause. Below it the report says only how much data the cause takes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlaudit.meaning.token_evidence import TokenEvidence


@dataclass(frozen=True)
class LeastData:
    """How much data a cause takes, and why so much."""

    # Independent prompts, or sequences if prompts are fewer than FEWEST_PROMPTS.
    prompts: int
    sequences: int
    tokens: int
    because: str

    def lacking(self, evidence: "TokenEvidence") -> str | None:
        """Return what is too little, and how much it takes; None if there is enough."""
        counts = {"prompts": evidence.clusters, "sequences": len(evidence.cluster_S), "tokens": evidence.tokens}
        for unit, count in counts.items():
            least: int = getattr(self, unit)
            if count < least:
                return f"{least} {unit} are needed, and these data have {count} ({self.because})"
        return None


# Student's 99.95 % quantile, which a test among ten has to pass, is 5.4 with 7 degrees of freedom and 13 with 3.
OF_A_VARIANCE = LeastData(
    prompts=8,
    sequences=16,
    tokens=400,
    because="200 tokens on either side show a tenth of a variance, and 8 prompts give its error",
)
OF_A_MEAN = LeastData(
    prompts=8, sequences=16, tokens=320, because="with 8 prompts the error of the mean is known to about a third"
)
# Sixteen prompts as for any interval that counts as reliable (`resample.py`).
OF_A_BIAS = LeastData(
    prompts=16,
    sequences=32,
    tokens=320,
    because="a few large ratios decide a mean, so its interval is reliable only with 16 prompts and 32 sequences",
)
OF_OUTLIERS = LeastData(
    prompts=8,
    sequences=16,
    tokens=1000,
    because="outliers are counted: a hundredth of the tokens has to be more than a handful",
)
OF_AGREEMENT = LeastData(
    prompts=2,
    sequences=2,
    tokens=16,
    because="a shift is read off 8 tokens of a sequence, and no sequence decides alone",
)
OF_SCORES = LeastData(
    prompts=3,
    sequences=3,
    tokens=64,
    because="no sequence may decide alone, and the tests of the tokens are products over tokens",
)
