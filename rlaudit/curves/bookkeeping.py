"""Keys that logs hold beside metrics and that are never a sign of learning."""

import re

BOOKKEEPING = re.compile(
    r"(^|[/_. (-])(time|timing|timestamp|runtime|secs?|seconds|elapsed|remaining|lr|learning_rate|epoch|steps?|samples|"
    r"memory|gib|mem|throughput|speed|gpu|cpu|percentage|version|flos|per_second|mfu|progress|tokens)($|[/_. ()-])",
    re.IGNORECASE,
)
