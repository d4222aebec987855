"""Top-k and top-p of eight or more requests read logits at wrong places where the vocabulary was padded.

The Triton kernel takes a row to be as long as the vocabulary. A vocabulary that is no multiple of 64 is padded in the
head and cut off again, so that rows lie further apart; sampling in float32 does not copy them where the head is float32
already. Every row but the first is filtered by logits of another place. 0.22.0 uses the distance of rows.
"""

from rlaudit.configs.syntax.node import Unknown
from rlaudit.inspection.advisory import Advisory, Condition, Seen, Window
from rlaudit.inspection.audit import Side
from rlaudit.inspection.conditions import FILTERED, FLOAT32_HEAD
from rlaudit.inspection.finding import Severity
from rlaudit.layers import Layer
from rlaudit.vllm.architecture import Architecture, architecture

_PADDED_TO = 64  # DEFAULT_VOCAB_PADDING_SIZE


def _padded(side: Side) -> bool | Unknown:
    def holds(found: Architecture) -> bool | Unknown:
        size = found.config.get("vocab_size")
        return size % _PADDED_TO != 0 if isinstance(size, int) else Unknown("the size of the vocabulary is not told")

    found = architecture(side.resolution)
    return found if isinstance(found, Unknown) else holds(found)


ADVISORY = Advisory(
    name="filters-read-the-wrong-rows",
    layer=Layer.SEMANTIC,
    severity=Severity.WARNING,
    window=Window(
        before=Seen("0.16.0", "vllm/v1/sample/ops/topk_topp_triton.py", "there is no Triton kernel for filters"),
        first=Seen("0.17.0", "vllm/v1/sample/ops/topk_topp_triton.py:90", "a row begins at row_id * VOCAB_SIZE"),
        last=Seen("0.21.0", "vllm/v1/sample/ops/topk_topp_triton.py:113", "a row begins at row_id * VOCAB_SIZE"),
        fixed=Seen("0.22.0", "vllm/v1/sample/ops/topk_topp_triton.py:114", "a row begins at row_id * LOGITS_STRIDE_0"),
    ),
    conditions=(FILTERED, FLOAT32_HEAD, Condition("the vocabulary is no multiple of 64", _padded)),
    setting="top_p",
    way_out="Move to 0.22.0, or sample without top-k and top-p.",
    confirm="rlaudit ablate, factor batch-size: alone in the engine a request is filtered by PyTorch.",
    threads=("vllm#42684", "vllm#42779"),
)
