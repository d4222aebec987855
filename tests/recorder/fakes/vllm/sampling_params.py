"""What is asked for with one request."""

import dataclasses


@dataclasses.dataclass
class SamplingParams:
    n: int = 1
    temperature: float = 1.0
    max_tokens: int = 16
    logprobs: "int | None" = None
    stop: tuple = ()
    seed: "int | None" = None
    extra_args: "dict | None" = None
