"""prime-rl: the mean KL mismatch of each of 20 steps, all below 0.015.

Asked for in docs/development.md and .cursor/BUGBOT.md of its repository for a new model, with the math environment and
a batch size of 64, and shown in pull requests that move vLLM.
"""

from rlaudit.report.mismatch_table import Bar, MismatchTable

TABLE = MismatchTable(
    name="prime-rl",
    asks="prime-rl asks for all entries below 0.015 over 20 steps on its math environment with batch_size=64.",
    bars=(Bar("k3", "mismatch KL", 0.015),),
    steps=20,
)
