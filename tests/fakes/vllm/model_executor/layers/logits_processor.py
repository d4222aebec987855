"""Where later releases apply the head themselves, which is how a float32 head is recognised."""

from vllm._release import HEAD_CAN_BE_FLOAT32


class LogitsProcessor:
    """A name to look at; the stand-in computes its logits elsewhere."""

    if HEAD_CAN_BE_FLOAT32:

        def _apply_head(self):
            """Apply the head in its own dtype."""
