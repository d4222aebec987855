"""Whether the same tokens go in: what stands before the three layers, and is silent if it holds.

The layers suppose that trainer and engines speak of the same tokens. A release of vLLM brings a transformers of its
own, and with it another tokenizer and another way to render a conversation: a ratio of other tokens means nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlaudit.laboratory.rendered_inputs import Rendered, RenderedInputs
from rlaudit.layers import Verdict
from rlaudit.severity import FailFor
from rlaudit.text.counted import counted

# Characters on either side of the place where two renderings part.
AROUND = 20
IDS_SHOWN = 3


@dataclass(frozen=True)
class DifferentInput:
    """An input that an engine's environment turns into other tokens than the trainer's.

    first: the number of tokens that are equal before. trainer, engine: the text around that place, or the error.
    """

    name: str
    side: str
    first: int
    trainer_ids: Sequence[int]
    engine_ids: Sequence[int]
    trainer: str
    engine: str


@dataclass(frozen=True)
class Inputs:
    """The same inputs on all sides. moved: whether engines of this run differ from each other.

    versions: of transformers and tokenizers, by side. compared: the number of inputs.
    """

    verdict: Verdict
    because: str
    compared: int
    versions: Mapping[str, Mapping[str, str]]
    different: Sequence[DifferentInput]
    moved: bool


def judge_inputs(sides: Sequence[RenderedInputs]) -> tuple[Inputs, list[str]]:
    """Compare each engine's renderings with the trainer's, which come first. Also return what was not compared."""
    trainer, *engines = sides
    not_seen = [
        f"prompts as the transformers of {side.side} render them were not seen: {side.failure}"
        for side in engines
        if side.failure
    ]
    engines = [side for side in engines if not side.failure]
    versions = {side.side: side.versions for side in (trainer, *engines)}
    if not trainer.prompts or not engines:
        why = "the prompts are token ids: nothing is rendered" if not trainer.prompts else "no engine rendered them"
        return Inputs(Verdict.NOT_TESTED, why, 0, versions, (), False), not_seen
    different = [differs for engine in engines for differs in _different(trainer, engine)]
    compared = len(trainer.prompts) + len(trainer.shapes)
    moved = len({tuple(map(_ids_of, engine.all.values())) for engine in engines}) > 1
    if not different:
        because = f"the same tokens on all sides for {_inputs(trainer, [*trainer.all])}"
        return Inputs(Verdict.MATCH, because, compared, versions, (), False), not_seen
    alike: dict[tuple[str, ...], list[RenderedInputs]] = {}
    for engine in engines:
        alike.setdefault(tuple(differs.name for differs in different if differs.side == engine.side), []).append(engine)
    because = "; ".join(
        f"{' and '.join(map(_versions, apart))} {'makes' if len(apart) == 1 else 'make'} other tokens of "
        f"{_inputs(trainer, names)} than {_versions(trainer)}"
        for names, apart in alike.items()
        if names
    )
    return Inputs(Verdict.MISMATCH, because, compared, versions, different, moved), not_seen


def verdicts_on(inputs: Inputs, fail_for: FailFor) -> list[Verdict]:
    """Return what an exit code is made of before the layers: a mismatch, if the move brings it or the state counts."""
    counts = inputs.verdict is Verdict.MISMATCH and (inputs.moved or fail_for is FailFor.STATE)
    return [Verdict.MISMATCH] if counts else []


def _ids_of(rendered: Rendered) -> Sequence[int] | None:
    """Return None for what a template refused: releases word their errors differently."""
    return None if rendered.error else rendered.token_ids


def _different(trainer: RenderedInputs, engine: RenderedInputs) -> list[DifferentInput]:
    theirs = engine.all
    return [
        _parted(name, engine.side, ours, theirs[name])
        for name, ours in trainer.all.items()
        if name in theirs and _ids_of(ours) != _ids_of(theirs[name])
    ]


def _parted(name: str, side: str, ours: Rendered, theirs: Rendered) -> DifferentInput:
    first = _equal_before(ours.token_ids, theirs.token_ids)
    place = _equal_before(ours.text, theirs.text)
    shown_ids = slice(first, first + IDS_SHOWN)
    return DifferentInput(
        name,
        side,
        first,
        ours.token_ids[shown_ids],
        theirs.token_ids[shown_ids],
        ours.error or _around(ours.text, place),
        theirs.error or _around(theirs.text, place),
    )


def _equal_before(ours: Sequence[object], theirs: Sequence[object]) -> int:
    pairs = zip(ours, theirs, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(ours), len(theirs)))


def _around(text: str, place: int) -> str:
    return repr(text[max(0, place - AROUND) : place + AROUND])


def _inputs(trainer: RenderedInputs, names: Sequence[str]) -> str:
    prompts = sum(name in trainer.prompts for name in names)
    parts = [
        counted(number, what)
        for number, what in ((prompts, "prompt"), (len(names) - prompts, "conversation"))
        if number
    ]
    return " and ".join(parts)


def _versions(side: RenderedInputs) -> str:
    named = ", ".join(f"{package} {version}" for package, version in side.versions.items())
    return f"{side.side} ({named})" if named else side.side
