"""A draft with what the framework's source says in place of what was assumed of its releases."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from packaging.version import Version

from rlaudit.configs.draft import Draft, by_code
from rlaudit.configs.framework_source.bindings import Bound, Handed, defaults_in, handed_over
from rlaudit.configs.framework_source.checkout import Checkout, checkout_of, shown
from rlaudit.configs.framework_source.questions import Question, ask
from rlaudit.configs.python_environment import python_environment
from rlaudit.configs.rollout_config import Origin
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown
from rlaudit.configs.usage_context import makes_bare_engine

# Arguments whose default is nobody's: every dialect names the model in a place of its own.
_EXECUTOR = "distributed_executor_backend"
_NOT_ASKED = {"model", "tokenizer", "served_model_name", "reasoning_parser"}


@dataclass(frozen=True)
class FrameworkSource:
    """Where to look in one framework's source; all paths are relative to the folder that holds its package.

    engine: the files that may build the engine, the newest layout first. defaults: files with the defaults of its own
    options, and the class that has them ("" for any). prefix: what options of the engine begin with. facts: of the
    trainer, each with its question. options: sampling parameters by the option whose default they take.
    fields: files and classes whose fields are the engine's arguments themselves. marks: files that tell the package,
    where no other is named.
    """

    package: str
    engine: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()
    prefix: str = ""
    facts: Mapping[str, Question] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    marks: tuple[str, ...] = ()

    def checkout(self, source: Source) -> Checkout | None:
        """The framework's package for a config, None where it is not there."""
        markers = (*self.marks, *self.engine, *(file for file, _ in (*self.fields, *self.defaults)))
        return checkout_of(source, self.package, *markers)


def tell(draft: Draft, looks: FrameworkSource, checkout: Checkout | None, vllm: Version) -> None:
    """Replace what the framework's code decides in a draft.

    What the file writes stays as it is. An argument that a table had the framework pass, and that no line of its engine
    file passes, is left to vLLM.
    """
    if checkout is None:
        return
    names = engine_names(vllm)
    _by_its_own_files(draft, checkout)
    defaults = _defaults(looks, checkout)
    _engine(draft, looks, checkout, names, defaults)
    for name, variable in list(draft.environment.items()):
        if variable.origin is Origin.FRAMEWORK and not checkout.says(rf"\b{name}\b"):
            del draft.environment[name]
    _variables(draft, looks, checkout)
    ask_facts(draft, looks, checkout)
    for name, option in looks.options.items():
        said, bound = draft.sampling.get(name), defaults.get(option)
        if bound is not None and (said is None or said.origin is Origin.FRAMEWORK):
            draft.sampling.by_code(name, bound.constant, f"the default of {option}, {bound.where}")
            draft.decided[name] = bound.where


def _variables(draft: Draft, looks: FrameworkSource, checkout: Checkout) -> None:
    """Variables that a table has the framework set, where its engine's file sets them otherwise or in a branch."""
    told = {name for name, one in draft.environment.items() if one.origin is Origin.FRAMEWORK}
    for file in looks.engine if told else ():
        source = checkout.file(file)
        for name, node in python_environment(source, tuple(told)).items() if source is not None else ():
            if name in told and node.value != draft.environment[name].value:
                draft.environment.by_code(name, node.value, f"{shown(node.place.path)}:{node.place.line}")


def ask_facts(draft: Draft, looks: FrameworkSource, checkout: Checkout) -> None:
    """The trainer's facts that a table says, as the source answers them."""
    for name, question in looks.facts.items():
        said = draft.trainer.get(name)
        if said is None or said.origin is not Origin.FRAMEWORK:
            continue  # Where the dialect says nothing, as of a pause without updates in flight, nothing is asked.
        answer = ask(question, checkout)
        if answer is None:
            continue
        if answer.value is None:
            del draft.trainer[name]
        else:
            draft.trains(name, answer.value, answer.where)
        draft.decided[name] = answer.where


def engine_names(vllm: Version) -> frozenset[str]:
    """The engine arguments of a release that a framework's source is asked for."""
    from rlaudit.vllm.catalogue import Catalogue

    return frozenset(Catalogue.at(vllm).engine) - _NOT_ASKED


def _by_its_own_files(draft: Draft, checkout: Checkout) -> None:
    """What stands in the package's own config files is the framework's word, not the user's."""
    if checkout.has(draft.path):
        return
    draft.lost = [lost for lost in draft.lost if not checkout.has(lost.place.path)]
    for settings in (draft.engine, draft.sampling, draft.environment, draft.trainer, draft.options):
        for name, setting in settings.items():
            if setting.place is not None and checkout.has(setting.place.path):
                where = f"{shown(setting.place.path)}:{setting.place.line}"
                note = f"{setting.note}; {where}" if setting.note else where
                settings[name] = by_code(name, setting.value, note)
                draft.decided[name] = where


def _engine(
    draft: Draft, looks: FrameworkSource, checkout: Checkout, names: frozenset[str], defaults: Mapping[str, Bound]
) -> None:
    found = _handed(looks, checkout, names)
    if found is None:
        return
    path, handed = found
    engine = checkout.file(path.removeprefix(f"{checkout.root}/"))
    draft.bare = draft.bare if engine is None else makes_bare_engine(engine.text)
    draft.parts = tuple(dict.fromkeys((*draft.parts, shown(path))))
    for name, setting in list(draft.engine.items()):
        if setting.origin is Origin.FRAMEWORK and name in names and name not in handed.arguments:
            del draft.engine[name]
    for name in names:
        if name not in handed.arguments and name not in draft.engine:
            draft.decided[name] = f"{handed.blocks[0]}, which does not pass it"
    for name, bound in handed.arguments.items():
        said = draft.engine.get(name)
        if said is not None and said.origin is not Origin.FRAMEWORK:
            draft.decided[name] = f"{bound[0].where}, which hands it on"
            continue
        if name in draft.decided:
            continue
        _passed(draft, looks, name, bound, defaults)


def _handed(looks: FrameworkSource, checkout: Checkout, names: frozenset[str]) -> tuple[str, Handed] | None:
    """The first file that builds an engine, and what it hands over."""
    for file in looks.engine:
        source = checkout.file(file)
        handed = handed_over(source, names) if source is not None else None
        if source is not None and handed is not None and handed.blocks:
            return source.path, handed
    for file, owner in looks.fields:
        source = checkout.file(file)
        if source is not None and (own := defaults_in(source, owner)):
            # A field that is null says nothing.
            said = {name: (bound,) for name, bound in own.items() if name in names and bound.constant is not None}
            stored = {name: bound for name, bound in handed_over(source, names).arguments.items() if name not in own}
            return source.path, Handed({**stored, **said}, (next(iter(own.values())).where,))
    return None


def _passed(
    draft: Draft, looks: FrameworkSource, name: str, bound: tuple[Bound, ...], defaults: Mapping[str, Bound]
) -> None:
    """One argument that the framework's engine file binds, and the config does not write."""
    values = [one.constant for one in bound]
    where = bound[0].where
    own = {_own_class(one.value) for one in bound} if name == _EXECUTOR else set()
    if len(own) == 1 and "" not in own:
        draft.engine[name] = by_code(name, own.pop(), f"a class of its own, {where}")
        draft.decided[name] = where
        return
    if bound[0].sure and not isinstance(values[0], Unknown) and all(value == values[0] for value in values):
        draft.engine[name] = by_code(name, values[0], where)
        draft.decided[name] = where
        return
    if bound[0].sure and not isinstance(fallback := bound[0].otherwise, Unknown):
        draft.engine[name] = by_code(name, fallback, f"what {where} takes where nothing is written")
        draft.decided[name] = where
        return
    option = next((one for one in (bound[0].option, f"{looks.prefix}{bound[0].option}") if one in defaults), "")
    if option and not isinstance(value := defaults[option].constant, Unknown):
        draft.engine[name] = by_code(name, value, f"the default of {option}, {defaults[option].where}")
        draft.decided[name] = f"{where} and {defaults[option].where}"
    elif (
        name in draft.engine and isinstance(draft.engine[name].value, Unknown) and not bound[0].sure and bound[0].option
    ):
        # Handed on where the config says it, and it does not.
        del draft.engine[name]
        draft.decided[name] = f"{where}, which hands it on where it is written"
    elif name in draft.engine:
        draft.decided[name] = where


def _own_class(node: ast.expr) -> str:
    """The name of a class that is handed over itself, "" for anything else."""
    name = node.id if isinstance(node, ast.Name) else ""
    return name if name[:1].isupper() and not name.isupper() else ""


def _defaults(looks: FrameworkSource, checkout: Checkout) -> dict[str, Bound]:
    found: dict[str, Bound] = {}
    for file, owner in looks.defaults:
        source = checkout.file(file)
        if source is not None:
            found = {**defaults_in(source, owner), **found}
    return found
