"""What a model without weights samples: tokens and logprobs by prompt, index and seed alone."""

import random


def tokens_of(prompt, index, parameters):
    """Return (token, logprob) pairs to the end of a sequence."""
    source = random.Random(f"{list(prompt)} {index} {parameters.seed}")
    length = source.randint(1, parameters.max_tokens)
    return [(source.randrange(100, 1000), -source.expovariate(1.0)) for _ in range(length)]


def in_steps(prompt, index, pairs):
    """Return the tokens of each step: mostly one, sometimes two or three, as speculative decoding brings them."""
    source, steps, rest = random.Random(f"{list(prompt)} {index}"), [], list(pairs)
    while rest:
        count = source.choice((1, 1, 1, 2, 3))
        steps.append(rest[:count])
        rest = rest[count:]
    return steps


def stops(token, parameters):
    """Return whether a token's text ends the sequence."""
    return any(stop in f"w{token}" for stop in parameters.stop)
