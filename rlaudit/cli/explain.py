"""`rlaudit explain NAME`: the documentation that lives in the code."""

from typing import Annotated

import typer

from rlaudit.cli.names import TOPICS, one_of
from rlaudit.cli.pages import all_names, print_page


def explain(
    name: Annotated[
        str,
        typer.Argument(
            autocompletion=one_of(all_names),
            help="A rule, cause, test, framework, factor, metric or key of a training log; a release, as 0.26.0; a "
            f"move, as 0.8.5..0.18.1. Or a topic: {', '.join(TOPICS)}, dialects, recording, api.",
        ),
    ],
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Of a framework: how each setting is read, by release.")
    ] = False,
) -> int:
    """Print all about a rule, cause, metric, release or topic.

    NAME may also be a statistical test, framework, factor or dashboard key. Topics are, for example, `clusters` and
    `limits`.
    """
    return print_page(name, verbose)
