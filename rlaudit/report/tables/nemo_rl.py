"""NeMo-RL: the multiplicative token probability error below 1.05, and gen_kl_error below 1e-3.

The first is docs/adding-new-models.md's threshold for equal precision on both sides; the second is what its functional
tests assert of dense models in bfloat16 (FP8 rollouts and sampling filters have wider ones there).
"""

from rlaudit.report.mismatch_table import Bar, MismatchTable

TABLE = MismatchTable(
    name="nemo-rl",
    asks="NeMo-RL asks for token_mult_prob_error below 1.05 at equal precision, and tests gen_kl_error against 0.001.",
    bars=(
        Bar("token_mult_prob_error", "token_mult_prob_error", 1.05, least=1.0),
        Bar("k3", "gen_kl_error", 1e-3),
    ),
)
