"""Resolvers that projects register for sums in their configs: `${mul:2,3}`, `${int_div:8,2}`, `${not:true}`.

OmegaConf has none of its own. Those whose name can mean only one thing are worked out.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from rlaudit.configs.syntax.node import Unknown

_OF_NUMBERS: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    **dict.fromkeys(("mul", "multiply"), math.prod),
    **dict.fromkeys(("add", "sum"), sum),
    **dict.fromkeys(("sub", "subtract"), lambda numbers: reduce(operator.sub, numbers)),
    **dict.fromkeys(("int_div", "floordiv", "floor_div"), lambda numbers: reduce(operator.floordiv, numbers)),
    "max": max,
    "min": min,
}
NAMES = frozenset({*_OF_NUMBERS, "not"})


def worked_out(name: str, arguments: Sequence[Any]) -> Any:
    """Return the value of a resolver of NAMES; Unknown if it does not take one of the arguments."""
    unknown = next((one for one in arguments if isinstance(one, Unknown)), None)
    if unknown is not None:
        return unknown
    if name == "not":
        told = len(arguments) == 1 and (arguments[0] is None or isinstance(arguments[0], bool | int))
        return not arguments[0] if told else Unknown("${not:...} of what is no switch")
    numbers = [one for one in arguments if isinstance(one, int | float) and not isinstance(one, bool)]
    if len(numbers) != len(arguments) or not numbers:
        return Unknown(f"${{{name}:...}} of what is no number")
    try:
        return _OF_NUMBERS[name](numbers)
    except (ZeroDivisionError, OverflowError):
        return Unknown(f"${{{name}:...}} of these numbers is none")
