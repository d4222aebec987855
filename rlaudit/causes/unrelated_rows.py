"""In some sequences the two sides have nothing in common from the first token on; the other sequences agree.

Covered: rows of another shard, file or step beside a sequence, and text of which every token is another. Swapped rows
would fit another row of this log. Text that was tokenised again agrees at its beginning. With other weights both sides
still find the same tokens hard, in all sequences alike.
Not covered: logs in which no sequence meets its counterpart; that is a mismatch without a name.
"""

from functools import partial

from rlaudit.causes.attribution.alignment_signature import alignment_signature
from rlaudit.causes.attribution.cause import Cause, Stage
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_AGREEMENT
from rlaudit.tokens.alignment import Misalignment

CAUSE = Cause(
    name=Misalignment.UNRELATED.value,
    title="Rows of other sequences, or other tokens from the first one on",
    layer=Layer.SEMANTIC,
    stage=Stage.ALIGNMENT,
    least=OF_AGREEMENT,
    signature=partial(alignment_signature, kind=Misalignment.UNRELATED),
    falsifier="the token ids are the same on both sides, and each row has the right id",
    next="compare the token ids of both sides. If they are equal, join both sides by id: rows were swapped with rows "
    "that are not in this log. If not, text was tokenised again: pass token ids (return_token_ids)",
)
