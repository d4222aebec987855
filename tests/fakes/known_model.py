"""A language model in closed form: the logits of the next token are a fixed table, looked up by the token before it.

The stand-ins of engine and trainer both read it, so a test knows what every logprob ought to be. Standard library only.
"""

import math
import random
import struct

VOCABULARY = 48
# As high as real models' are: bfloat16 logits below 2 cannot be told from others.
_HEIGHT, _SPREAD = 12.0, 2.0
_table_source = random.Random(20240)
TABLE = tuple(tuple(_table_source.gauss(_HEIGHT, _SPREAD) for _ in range(VOCABULARY)) for _ in range(VOCABULARY))


def token_of(word):
    """A token id for a word, the same in every process."""
    return sum(place * ord(letter) for place, letter in enumerate(word, start=1)) % VOCABULARY


def as_bfloat16(value):
    """The nearest bfloat16: the upper half of a float32, rounded to even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits += 0x7FFF + ((bits >> 16) & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


def as_float32(value):
    """What is left of a number that an engine returns as float32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def logits_after(token, dtype="float32"):
    """Logits of the token after `token`, rounded to the dtype of the head."""
    row = TABLE[token]
    return [as_bfloat16(logit) for logit in row] if dtype == "bfloat16" else list(row)


def log_softmax(logits):
    """Normalised logprobs of one row; a logit of -inf stays out."""
    highest = max(logits)
    log_total = highest + math.log(sum(math.exp(logit - highest) for logit in logits))
    return [logit - log_total for logit in logits]
