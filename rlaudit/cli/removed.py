"""Commands and options that earlier releases had, each with its replacement.

A script that still uses one gets exit code 2 and the replacement.
"""

from collections.abc import Sequence

from rlaudit.errors import UsageError

_ONE_PASS = "all files are read in one pass, and --executor ray has the nodes of a cluster read them"
# By command, or by command and option.
REPLACEMENTS: dict[tuple[str, ...], str] = {
    ("selftest",): "it is a test of the repository: cd tests && python -m selftest, in a checkout",
    ("compare", "--state"): f"leave it out: {_ONE_PASS}",
    ("compare", "--shard"): f"leave it out: {_ONE_PASS}",
    ("compare", "--merge"): f"give the log itself: {_ONE_PASS}",
    ("compare", "--sql"): (
        """duckdb -c "COPY (QUERY) TO 'tokens.parquet'" makes the table, rlaudit compare tokens.parquet reads it"""
    ),
    ("watch",): (
        "rlaudit curves LOG --follow --gate 'k3<0.015' || COMMAND (instead of --on-alarm); without --follow it looks "
        "once; rlaudit compare measures rollout dumps"
    ),
    ("engines", "--drivers"): (
        "rlaudit engines build VERSION names the driver that a release needs, if this machine has none or an older one"
    ),
    ("curves", "--tensorboard"): "write the metrics with tensorboardX, or log both runs to one TensorBoard directory",
}
END_OF_OPTIONS = "--"


def check_removed(arguments: Sequence[str]) -> None:
    """Raise UsageError for a command line that uses a removed command or option."""
    command, *words = arguments or ("",)
    if END_OF_OPTIONS in words:
        words = words[: words.index(END_OF_OPTIONS)]
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    for usage in ((command,), *((command, option) for option in options)):
        if usage in REPLACEMENTS:
            raise UsageError(f"rlaudit {' '.join(usage)} was removed", REPLACEMENTS[usage])
