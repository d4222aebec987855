import enum
from dataclasses import dataclass


class RequestOutputKind(enum.Enum):
    DELTA = 1
    FINAL_ONLY = 2


@dataclass
class SamplingParams:
    output_kind: RequestOutputKind
    detokenize: bool
    temperature: float
    ignore_eos: bool
    max_tokens: int
    seed: int
    logprobs: int
