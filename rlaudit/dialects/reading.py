"""From a tree of keys and a dialect to a rollout config."""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from packaging.version import Version

from rlaudit.configs.draft import MANDATORY, Draft, Settings, arriving, by_file, is_said, known, leaves
from rlaudit.configs.elsewhere import as_written, left_open
from rlaudit.configs.engine_names import canonical
from rlaudit.configs.framework_source.checkout import checkout_of
from rlaudit.configs.framework_source.own_files import take_own_files
from rlaudit.configs.framework_source.release_here import release_here
from rlaudit.configs.own_backend import VLLM, runs_vllm, with_own_backend
from rlaudit.configs.requests_made_in_code import neutral_sampling
from rlaudit.configs.rollout_config import TRAINER, Loss, RolloutConfig
from rlaudit.configs.second_engines import take_second_engines
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, Unknown, entries
from rlaudit.dialects.clause import LOSSES, Found, Said, found, node_of
from rlaudit.dialects.condition import Truth, both, compared, condition
from rlaudit.dialects.elsewhere import lose_elsewhere, with_elsewhere
from rlaudit.dialects.engine_call import take_engine_call
from rlaudit.dialects.falses import drop_falses
from rlaudit.dialects.framework_code import FrameworkCode, filled
from rlaudit.dialects.keys import unread
from rlaudit.dialects.own_trainer import with_own_trainer
from rlaudit.dialects.span import Span, carried, span_of, written_fields
from rlaudit.dialects.spec import Spec, package_of
from rlaudit.dialects.tree import Layout, Tree, node_at
from rlaudit.dialects.writing import writer_of
from rlaudit.vllm import milestones
from rlaudit.vllm.catalogue import Catalogue

_SECTIONS = ("engine", "sampling", "environment", "trainer")
_VARIABLES = ("VLLM_", "NCCL_")
# Conditions ask for a few releases thousands of times.
_release = lru_cache(maxsize=512)(Version)
_VERSIONS: Mapping[str, Callable[[Version, Version], bool]] = {
    ">=": operator.ge, "<": operator.lt, ">": operator.gt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


class Reading:
    """One config under one dialect, as one vLLM release gets it."""

    def __init__(self, spec: Spec, tree: Tree, layout: Layout, source: Source, vllm: Version) -> None:
        self.spec, self.tree, self.layout, self.source, self.vllm = spec, tree, layout, source, vllm
        self.draft = Draft(spec.name, source.path, parts=tree.parts)
        section = layout.section(tree.root)
        assert section is not None
        self.section: Node = section
        self.code = _code_around(source, spec)
        self._nodes: dict[str, Node | None] = {}
        # Conditions on the config alone, once the release is known.
        self._held: dict[str, Truth] = {}
        self._facts: Mapping[str, Any] = {
            "layout": layout.name,
            "call": tree.call,
            "missing": bool(tree.missing or tree.limits),
            "missing_base": any("/" not in file for file in tree.missing),
            "composed": tree.is_composed,
            "command": tree.command is not None,
            "unread": tree.unread,
            "path": source.path,
        }
        self.span = Span()
        self.span = self._span()
        self._held.clear()

    def _span(self) -> Span:
        """Return the releases that this config may be of."""
        said, checkout = self.spec.said.get("release", {}), self.code.checkout
        here = release_here(self.source, self.spec.package, checkout) if self.spec.package is not None else None
        is_copy = checkout is not None
        self.framework = here
        if "package" in said:
            is_copy = False
            is_carried = here is not None and "carried" in said
            packaged = package_of(said["package"])
            here = carried(said, here, self.spec.title) if is_carried else release_here(self.source, packaged, None)
        return span_of(said, self.of, self.vllm, self.holds, self.is_written, here, is_copy)

    @property
    def of(self) -> str:
        """The framework whose releases count."""
        return str(self.spec.said.get("release", {}).get("of", self.spec.title))

    def is_written(self, reference: str) -> bool:
        """Return whether the config has a key."""
        return self.node(reference) is not None

    def node(self, path: str) -> Node | None:
        """Return the node at a path: `a.b`, `@key` below the layout's root, `a | b` for the first that is written."""
        if path not in self._nodes:
            nodes = [self._node(one.strip()) for one in path.split("|")]
            there = next((one for one in nodes if one is not None), None)
            self._nodes[path] = next((one for one in nodes if is_said(one)), there)
        return self._nodes[path]

    def _node(self, path: str) -> Node | None:
        if not path.startswith("@"):
            return node_at(self.tree.root, path.removeprefix("/"))
        key = path[1:]
        return node_at(self.section, self.layout.renames.get(key, key)) if key else self.section

    def value(self, reference: str) -> Any:
        """Return what a reference of a condition or a sum refers to (`condition.py`)."""
        if reference.startswith("$"):
            kind, _, name = reference[1:].partition(".")
            setting = getattr(self.draft, kind).get(name)
            return None if setting is None else setting.value
        own = self._of_the_reading(reference)
        if own is not None:
            return own
        if "|" in reference and reference.rpartition("|")[2].strip().isdigit():
            reference, _, default = reference.rpartition("|")
            node = self.node(reference)
            return (
                arriving(node) if is_said(node) else self.unread() if node is None and self.tree.open else int(default)
            )
        node = self.node(reference)
        return self.unread() if node is None else arriving(node)

    def unread(self) -> Unknown | None:
        """Return what a key holds that is not written, if the config may have keys that could not be read."""
        return unread(self.tree)

    def _of_the_reading(self, name: str) -> Any:
        """Return what is known of the reading itself by a word; None for any other word."""
        if name in self.spec.said.get("conditions", {}):
            return self.holds(name)
        if name.startswith("code:"):
            checkout = self.code.checkout
            return None if checkout is None else checkout.file(name.removeprefix("code:")) is not None
        return self._facts.get(name)

    def compare(self, reference: str, sign: str, other: Any) -> Truth:
        """Return how a reference compares to a value; releases compare as releases."""
        if reference == "release":
            return self.span.compared(sign, _release(str(other)), self.of)
        if reference == "framework":
            if self.framework is None:
                return Unknown(f"the release of {self.spec.title} is not known: nothing pins it")
            return _VERSIONS[sign](self.framework.version, _release(str(other)))
        if reference == "vllm":
            version = getattr(milestones, str(other), None) or _release(str(other))
            return _VERSIONS[sign](self.vllm, version)
        return compared(self.value(reference), sign, other)

    def holds(self, text: str | None) -> Truth:
        """Return whether a condition, or one of the dialect's own by its name, holds."""
        if text is None:
            return True
        if text not in self._held:
            named = self.spec.said.get("conditions", {}).get(text)
            truth = condition(named if named is not None else text)(self)
            if not self.spec.may_change(text):
                self._held[text] = truth
            return truth
        return self._held[text]

    def defaults_hold(self) -> Truth:
        """Return whether the framework's own defaults stand behind the config."""
        return self.holds(self.spec.said.get("defaults if"))

    def without_default(self, truth: Truth) -> Found | None:
        """Return what is not written if they do not: open if the dialect has a reason, else left to vLLM."""
        reason = self.spec.said.get("defaults else")
        if reason is None:
            return None
        return Found(truth if isinstance(truth, Unknown) else Unknown(reason))

    def _with_null(self, kind: str, said: Said) -> Said:
        """Return a clause of the engine with what a null means in this dialect, unless it says so itself."""
        arrives = self.spec.said.get("nulls arrive if")
        if arrives is None or kind != "engine" or "key" not in said or "null" in said:
            return said
        return {**said, "null": "keep" if self.holds(arrives) is True else "nothing"}

    def draft_of_all(self) -> Draft:
        """Fill the draft with everything that the dialect says."""
        said, draft = self.spec.said, self.draft
        self._take_span()
        for kind in [name for name in said if name in _SECTIONS]:
            losses = len(draft.lost)
            for name, entry in said[kind].items():
                if name == "*":
                    self._pass_on(kind, entry)
                elif (kind, name) == ("trainer", "replicas"):
                    self._replicas(entry)
                else:
                    self.put(kind, name, entry)
            lose_elsewhere(self, kind, losses)
            if kind == "sampling":
                self._neutral_sampling()
            elif kind == "engine":
                take_engine_call(self)
        if "environment" not in said:
            self._command_variables(wins=True)
        drop_falses(self)
        for entry in said.get("lost", ()):
            self.lose(entry)
        self._list()
        for name, entry in said.get("objective", {}).items():
            self.put("options", name, entry)
        for hook in said.get("hooks", ()):
            self.spec.hook(hook)(self)
        if self.code.checkout is not None:
            take_own_files(draft, self.code.checkout)
        return draft

    def _take_span(self) -> None:
        """Say which releases these are, and which written fields none of them has any more."""
        span, draft, said = self.span, self.draft, self.spec.said.get("release", {})
        draft.releases, draft.refused_pin, shown = span.releases, span.refused, span.shown(self.of)
        if span.is_empty:
            draft.not_seen.append(f"{shown}: what is said of the trainer is said of the later release")
        elif span.starts is not None:
            others = f"those from {span.starts} on run with this vLLM as well"
            draft.not_seen.append(f"the {self.of} release: taken is {shown}; {others}")
        for name in written_fields(said, self.holds, self.is_written):
            field, node = said["fields"][name], self.node(name)
            if node is not None and span.lacks(field):
                certain = span.lacks_for_certain(field)
                release = span.starts if certain and span.starts is not None else span.first
                who = f"{self.of} {release} or later, which this vLLM needs," if span.is_empty else shown
                reason = f"{who} has no {name} any more, and its parser stops there"
                draft.lose(field.get("name", name), node, Loss.REFUSED, reason, certain=certain)

    def _neutral_sampling(self) -> None:
        """Take SamplingParams' own values for parameters that the framework's code never sets."""
        said = self.spec.said.get("neutral sampling")
        if said is not None and self.holds(said.get("if")) is True:
            neutral_sampling(self.draft, said["because"])

    def put(self, kind: str, name: str, entry: Said | list[Said]) -> None:
        """Settle one setting from its clauses."""
        possible: list[tuple[Found, Said]] = []
        reason: Unknown | None = None
        for said in _clauses(entry):
            truth = self._applies(said)
            says = found(self._with_null(kind, said), self) if truth is not False else None
            if says is None:
                continue
            possible.append((says, said))
            if truth is True:
                break
            if reason is None and isinstance(truth, Unknown):
                reason = truth
        else:
            if reason is not None:
                possible.append((Found(None, is_nothing=True), {}))
        if not possible or (kind == "engine" and self._is_left_out(name, possible)):
            return
        first, said = possible[0]
        if reason is None or all(_same(first, other) for other, _ in possible):
            self._settle(kind, name, first, said)
        else:
            self._leave_open(kind, name, [one for one, _ in possible], reason)

    def _applies(self, said: Said) -> Truth:
        """Return whether a clause is one of this copy, or release, and its condition holds."""
        if not self.code.has(said.get("copy has")):
            return False
        truth = self.holds(said.get("if"))
        if self.code.checkout is not None and "at" in said and not {"since", "before"}.isdisjoint(said):
            return both(truth, self.code.has(said["at"]))
        for bound, sign in (("since", ">="), ("before", "<")):
            if bound in said:
                truth = both(truth, self.compare("release", sign, said[bound]))
        return truth

    def _is_left_out(self, name: str, possible: list[tuple[Found, Said]]) -> bool:
        """Return whether the framework passes an argument only to a vLLM that has it, and this one has not."""
        said = self.spec.said.get("guarded")
        if said is None or name not in said.get("arguments", (name,)) or name in Catalogue.at(self.vllm).engine:
            return False
        node = next((one.node for one, _ in possible if one.node is not None), None)
        if node is not None:
            reason = f"vLLM {self.vllm} has no argument {name}: {self.sentence(said)}"
            self.draft.lose(name, node, Loss.UNKNOWN_KEY, reason)
        return True

    def _settle(self, kind: str, name: str, says: Found, said: Said) -> None:
        if says.is_nothing:
            getattr(self.draft, kind).pop(name, None)
            return
        if says.loss is not None and says.node is not None:
            self.draft.lose(name, says.node, says.loss, self.sentence(said))
            return
        at = filled(said.get("at", said.get("copy has", {})), says.value, self.tree.call)
        gone = self.code.is_gone(at) if says.node is None or "value" in said or "map" in said else ""
        gone = "" if isinstance(says.value, Unknown) else gone
        value = Unknown(gone) if gone else says.value
        note = gone or self.note(says, said)
        settings: Settings = getattr(self.draft, kind)
        if kind == "trainer" and name not in TRAINER:
            raise KeyError(f"{name} is no trainer fact")
        if says.node is None:
            settings.by_code(name, value, note)
        else:
            settings.by_file(name, says.node, value, note)
        if self.code.checkout is not None and at:
            self.draft.decided[name] = self.code.line_of(at) or gone

    def _leave_open(self, kind: str, name: str, possible: list[Found], reason: Unknown) -> None:
        """Say what a setting may be, if conditions that are not known decide."""
        # A clause that leaves it open by itself says what it may be.
        opens = [one for one in possible if one.node is None and isinstance(one.value, Unknown)]
        values = list(dict.fromkeys(_spelt(one) for one in opens[-1:] or possible))
        sentence = f"{' or '.join(values)}: {reason.reason}"
        node = next((one.node for one in possible if one.node is not None), None)
        lost = next((one for one in possible if one.loss is not None and one.node is not None), None)
        # What may arrive as well is open, which says enough; what may stop the start is more.
        arrives = any(one.node is not None and one.loss is None for one in possible)
        if lost is not None and arrives and lost.loss is not Loss.REFUSED:
            lost = None
        if lost is not None and lost.node is not None and lost.loss is not None:
            self.draft.lose(name, lost.node, lost.loss, sentence, certain=False)
        # What vLLM takes by itself is not known here, and so not all that the setting may be.
        is_left = any(one.is_nothing or one.loss is not None for one in possible)
        among = () if is_left else tuple(one.value for one in possible)
        value = Unknown(sentence, among if _are_plain(among) else ())
        settings: Settings = getattr(self.draft, kind)
        if node is None:
            settings.by_code(name, value, sentence)
        else:
            settings.by_file(name, node, value, sentence)

    def note(self, says: Found, said: Said) -> str:
        """Return why a value arrives: the clause's own words, and the file that decides it."""
        default = f"{self.spec.title}'s default of {said['key'].lstrip('@')}" if "key" in said else self.spec.title
        because = said.get("because", "" if says.node is not None else default)
        where = self._files(said)
        return f"{because} ({where})" if because and where else because or where

    def sentence(self, said: Said) -> str:
        """Return the reason that a clause gives, with the file that decides it."""
        where = self._files(said)
        return f"{said['because']} ({where})" if where else str(said["because"])

    def _files(self, said: Said) -> str:
        files = [file.rpartition("/")[2] for file in filled(said.get("at", {}), None, self.tree.call)]
        return f"{self.spec.title} {', '.join(dict.fromkeys(files))}, {self.spec.said['read']}" if files else ""

    def lose(self, said: Said) -> None:
        """Keep something that is written and never arrives."""
        if "others of" in said:
            self._lose_others(said)
            return
        node = self.node(said["key"])
        truth = self.holds(said.get("if"))
        if node is None or truth is False or ("unless" in said and known(node, said["unless"]) == said["unless"]):
            return
        name = said.get("name", said["key"].rpartition(".")[2].lstrip("@"))
        self.draft.lose(name, node, LOSSES[said["as"]], self.sentence(said), certain=truth is True)

    def _lose_others(self, said: Said) -> None:
        """Keep the keys of a mapping that neither the dialect nor the entry names."""
        truth = self.holds(said.get("if"))
        if truth is False:
            return
        named = {*said.get("but", ()), *self.spec.keys_below(said["others of"])}
        arguments = Catalogue.at(self.vllm).engine if said.get("arguments") else None
        for key, node in entries(self.node(said["others of"])):
            if key not in named and (arguments is None or key in arguments):
                self.draft.lose(key, node, LOSSES[said["as"]], self.sentence(said), certain=truth is True)

    def _pass_on(self, kind: str, entry: Said | list[Said]) -> None:
        """Take a mapping whose keys are vLLM's own names, or the variables that a command sets."""
        said = next((one for one in _clauses(entry) if self.holds(one.get("if")) is not False), None)
        if said is None:
            return
        if kind == "environment":
            for name, node in entries(self.node(said["key"])) if "key" in said else ():
                self.draft.environment.by_file(name, node)
            self._command_variables(wins=said["command"] == "wins", prefixes=tuple(said.get("prefixes", _VARIABLES)))
            return
        catalogue, truth = Catalogue.at(self.vllm), self.holds(said.get("if"))
        settings: Settings = getattr(self.draft, kind)
        for key, node in entries(node_of(said, self)):
            if node.value is None and ("lost" in said or said.get("null") == "nothing"):
                continue
            if isinstance(truth, Unknown):
                settings.by_file(key, node, truth, truth.reason)
            elif "lost" in said:
                self.draft.lose(canonical(key), node, LOSSES[said["lost"]], self.sentence(said))
            elif "flags" in said:
                self._flag(key, node, said["flags"])
            elif self._is_overruled(settings, key, said):
                self.draft.lose(key, node, Loss.OVERRULED, said["overruled"]["because"])
            elif kind == "sampling" or key in catalogue.engine or "unknown key" not in said:
                settings.by_file(key, node, note=said.get("because", ""))
            elif "front end" in said and (key in catalogue.frontend or key in said["front end"]):
                where = said["key"].lstrip("@")
                where = self.layout.renames.get(where, where)
                self.draft.not_seen.append(f"{where}.{key}: of the HTTP endpoint, no argument of the engine")
            else:
                reason = f"vLLM {self.vllm} has no argument {key}; {said['unknown key']}"
                self.draft.lose(key, node, Loss.UNKNOWN_KEY, reason)

    def _is_overruled(self, settings: Settings, key: str, said: Said) -> bool:
        """Return whether the framework's code writes an argument of its own over a key of a mapping."""
        own = settings.get(key)
        return own is not None and own.value is not None and key in said.get("overruled", {}).get("arguments", ())

    def _flag(self, key: str, node: Node, said: Said) -> None:
        """Take a key that is spelt as a flag of vLLM's: `no_x: true` is a false, but no keyword of a call."""
        spelt = key.replace("-", "_")
        if said.get("alone") and node.value in (None, ""):
            self.draft.engine.by_file(canonical(key), node, True, "no value: the flag is passed alone")
            return
        if not spelt.startswith("no_") or node.value is not True:
            self.draft.engine.by_file(canonical(key), node)
            return
        name, truth = canonical(spelt.removeprefix("no_")), self.holds(said["if"])
        if truth is False:
            self.draft.lose(spelt, node, Loss.UNKNOWN_KEY, said["otherwise"])
        else:
            note = f"passed as --{spelt.replace('_', '-')}"
            value = Unknown(f"{note}, or {said['otherwise']}; {truth.reason}") if isinstance(truth, Unknown) else False
            self.draft.engine.by_file(name, node, value, value.reason if isinstance(value, Unknown) else note)

    def _command_variables(self, *, wins: bool, prefixes: tuple[str, ...] = _VARIABLES) -> None:
        """Take exports and prefixes in force, a submitted job's own variables, or those that a program sets."""
        if self.tree.python_call is not None:
            from rlaudit.configs.python_environment import python_environment

            for name, node in python_environment(self.source, prefixes).items():
                self.draft.environment.by_file(name, node)
        if self.tree.command is None:
            return
        from rlaudit.configs.ray_job import take_job_environment

        if take_job_environment(self.draft, self.source, self.tree.command):
            return
        for name, node in self.tree.command.variables.items():
            if name.startswith(prefixes) and (wins or name not in self.draft.environment):
                self.draft.environment.by_file(name, node)

    def _replicas(self, entry: Said | list[Said]) -> None:
        """Count the engines that run side by side: as written, or devices divided by the ranks of one engine."""
        for said in _clauses(entry):
            if "devices" not in said:
                self.put("trainer", "replicas", said)
                if "replicas" in self.draft.trainer:
                    return
            elif self.holds(said.get("if")) is True:
                devices = [self.value(one) if isinstance(one, str) else one for one in said["devices"]]
                ranks = [size for one in said["ranks"] if (size := self.value(one)) is not None]
                product = devices[0] if len(devices) == 1 else _product(devices)
                self.draft.count_replicas(product, ranks, said["because"], said["missing"])
                return

    def _list(self) -> None:
        """List the framework's own switches, further engines, and what was not seen."""
        said, draft = self.spec.said, self.draft
        patterns = [path for path in said.get("options", ()) if "*" in path]
        draft.list_options(self.tree.root, *(path for path in said.get("options", ()) if path not in patterns))
        for name, leaf in leaves(self.tree.root) if patterns else ():
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                draft.options.by_file(name, leaf)
        self._name_unknown()
        if "rest" in said:
            checkout = self.code.checkout
            section = self.node(said["rest"])
            draft.list_rest(
                section, self._spelt(said["rest"]), lambda path: checkout is not None and checkout.has(path)
            )
        if "other engines" in said and self.holds(said["other engines"].get("if")) is True:
            take_second_engines(draft, self.tree.root, *said["other engines"]["besides"])
        for entry in said.get("not seen", ()):
            if self.holds(entry["if"]) is True:
                draft.not_seen.append(entry["say"])
        draft.not_seen += [f"{part}, which this config inherits, is not beside it" for part in self.tree.missing]
        draft.not_seen += self.tree.limits
        if self.code.checkout is not None:
            draft.not_seen.append(self.code.read)
        if self.tree.command is not None:
            draft.not_seen += self._untold()
        if self.tree.open and self.tree.python_call is not None:
            draft.not_seen.append(f"further arguments of {self.tree.python_call.name}: {self.tree.open}")

    def _name_unknown(self) -> None:
        """Say which keys are named like ones that are read, and are none."""
        said = self.spec.said.get("unknown options")
        if said is None:
            return
        names = [name for name, _ in self.tree.root.items() if fnmatchcase(name, said["named"])]
        unknown = [name for name in names if name not in self.spec.words and name not in self.draft.options]
        if unknown:
            self.draft.not_seen.append(f"{', '.join(unknown)}: {said['because']}")

    def _spelt(self, path: str) -> str:
        """Return a path from the file's root."""
        return ".".join(part for part in (self.layout.root, path[1:]) if part) if path.startswith("@") else path

    def _untold(self) -> tuple[str, ...]:
        from rlaudit.configs import command_lines, hydra_dotlist

        assert self.tree.command is not None
        if self.tree.options_at:
            return command_lines.untold(self.tree.command, self.tree.options_at)
        return hydra_dotlist.untold(self.tree.command)


# Asked under each version.
@lru_cache(maxsize=64)
def _code_around(source: Source, spec: Spec) -> FrameworkCode:
    folder = spec.said.get("package", {}).get("folder")
    return FrameworkCode(checkout_of(source, folder, *spec.markers) if folder else None)


def _clauses(entry: Said | list[Said]) -> Iterable[Said]:
    return entry if isinstance(entry, list) else (entry,)


def _product(parts: list[Any]) -> Any:
    product = 1
    for one in parts:
        if not isinstance(one, int) or isinstance(one, bool):
            return None
        product *= one
    return product


def _same(left: Found, right: Found) -> bool:
    if (left.is_nothing, left.loss) != (right.is_nothing, right.loss):
        return False
    if isinstance(left.value, Unknown) or isinstance(right.value, Unknown):
        return left.value is right.value
    return bool(left.value == right.value) and isinstance(left.value, bool) == isinstance(right.value, bool)


def _spelt(one: Found) -> str:
    if one.loss is not None:
        return "without effect"
    if one.is_nothing:
        return "left to vLLM"
    return one.value.reason if isinstance(one.value, Unknown) else str(one.value)


def _are_plain(values: tuple[Any, ...]) -> bool:
    return not any(isinstance(value, Unknown | dict | list) for value in values)


def config_of(spec: Spec, tree: Tree, source: Source, vllm: Version) -> RolloutConfig | None:
    """Return the rollout that a tree sets up; None if the dialect does not know its layout, or it is not vLLM's."""
    layout = next((one for one in spec.layouts if one.section(tree.root) is not None), None)
    if layout is None:
        return None
    reading = Reading(spec, tree, layout, source, vllm)
    if "no rollouts if" in spec.said and reading.holds(spec.said["no rollouts if"]) is True:
        return None
    backend = _backend(reading)
    if backend is not None and not runs_vllm(backend) and backend != MANDATORY:
        return None
    draft, said = reading.draft_of_all(), spec.said
    own = reading.node(said["shown at"]) if "shown at" in said else layout.written(tree.own)
    own = own or tree.own
    if "place" in said:
        own = tree.own.get(said["place"]) or own
    place = tree.command.place if tree.command is not None else (own.key or own.place)
    if "device" in said and (device := reading.node(said["device"])) is not None:
        draft.device = by_file(said["device"], device)
    draft.bare = reading.holds(said.get("bare", "call == none")) is True
    config = draft.done(
        model=reading.node(said["model"]) if "model" in said else None,
        offline=reading.holds(said.get("offline", "call == none")) is True,
        place=place,
        write=writer_of(reading),
    )
    config = with_elsewhere(config, reading)
    for one in _clauses(said.get("engine", {}).get("*", [])):
        config = left_open(config, node_of(one, reading), one["key"].lstrip("@"))
    if tree.open and tree.python_call is not None:
        name = tree.python_call.name
        config = replace(config, engine=as_written(config.engine, name), sampling=as_written(config.sampling, name))
    config = with_own_trainer(config, reading)
    if backend is None or any(fnmatchcase(backend, one) for one in said["backend"].get("also", ())):
        return config
    return with_own_backend(config, spec.title, said["backend"]["key"].lstrip("@"), backend, reading.code.checkout)


def _backend(reading: Reading) -> Any:
    """Return the backend that the config chooses, vLLM if it chooses none; None if the dialect has no such key."""
    said: Mapping[str, Any] | None = reading.spec.said.get("backend")
    return known(reading.node(said["key"]), said.get("default", VLLM)) if said is not None else None


def configs_of(spec: Spec, trees: Iterable[Tree], source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return every rollout of a file."""
    configs = (config_of(spec, tree, source, vllm) for tree in trees)
    return tuple(config for config in configs if config is not None)
