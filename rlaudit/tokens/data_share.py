"""How much of the given data the figures rest on, and whether that is enough to say that both sides match."""

from dataclasses import dataclass

# Sums over the whole log (ratios, distances, alignment) show what is wrong in a part of it; what they do not show is
# searched for in a sample, and may be wrong in this share unseen.
MOST_MISSABLE = 0.1
# What is left out is no random part: broken engines and broken logs hit some sequences (long ones, one worker's) and
# spare the rest. A difference that 95 % intervals of the rest exclude may live in 5 % that were not looked at.
MOST_LEFT_OUT = 0.05


@dataclass(frozen=True)
class DataShare:
    """How much of what was given is in the figures. Tokens that the loss does not count are in neither."""

    sequences: int
    # Given, and in no figure.
    sequences_left_out: int
    tokens: int
    # Given, and in no figure, as far as they could be read.
    tokens_left_out: int
    # The rest of a file is unknown, however much it was.
    unread: bool = False
    # How many sequences these were taken from, if they are a sample.
    sample_of: int | None = None
    # The share of those that may be wrong although none of these is, in 5 of 100 samples.
    missable: float = 0.0

    @property
    def left_out(self) -> float:
        """The larger share, of sequences or of tokens."""
        parts = ((self.sequences_left_out, self.sequences), (self.tokens_left_out, self.tokens))
        return max(missing / max(1, missing + used) for missing, used in parts)

    @property
    def suffices(self) -> bool:
        """Whether enough was seen for a match of it to be a match of all that was given."""
        return not self.unread and self.left_out <= MOST_LEFT_OUT and self.missable <= MOST_MISSABLE

    @property
    def whole(self) -> bool:
        """Whether nothing was left out."""
        return not (self.unread or self.sequences_left_out or self.tokens_left_out or self.missable)

    def __str__(self) -> str:
        sequences, tokens = self.sequences + self.sequences_left_out, self.tokens + self.tokens_left_out
        used = f"{self.sequences} of {sequences} sequences and {self.tokens} of {tokens} tokens"
        if not self.left_out:
            used = f"all {sequences} sequences and {tokens} tokens"
        unread = "; the rest of a file could not be read" if self.unread else ""
        sample = ""
        if self.sample_of is not None:
            missable = f"it may miss a fault in fewer than {100 * self.missable:.1f} % of them"
            sample = f", a sample of {self.sample_of} sequences: {missable}"
        others = f" ({100 * (1 - self.left_out):.1f} %); the rest could not be compared" if self.left_out else ""
        return f"{used}{others}{unread}{sample}"
