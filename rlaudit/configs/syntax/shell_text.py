"""Commands of a shell script, with quotes, variables, arrays and continuations resolved where the file allows it.

Every branch is read, since the question is what a script may start; a variable that is set under a condition is
unknown after it. `${TP:-8}` counts as 8 where the file does not set TP, and the command says so in `assumed`. Nothing
is executed. Not read: command substitution, pattern removal; their words are Unknown.
Source: POSIX.1-2017, Shell Command Language; Bash manual 5.2 for arrays, `$'..'`, `<<<` and `[[`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_blocks import Blocks
from rlaudit.configs.syntax.shell_command import Command, acted_on, passed, said
from rlaudit.configs.syntax.shell_fields import Field, Piece
from rlaudit.configs.syntax.shell_handover import handed_over
from rlaudit.configs.syntax.shell_variables import Variables
from rlaudit.configs.syntax.shell_words import Lexer, Token
from rlaudit.configs.syntax.unreadable import UnreadableText

MOST_CHARACTERS = 500_000
MOST_WORDS = 20_000
DEEPEST = 3
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\[[^\]\s]*\])?(\+?)=")
_DECLARATIONS = {"export", "declare", "local", "readonly", "typeset"}
# Commands before `&&` whose failure ends the work; any other may be a test of what is there: `rocm-smi && export A=1`.
_PREPARING = _DECLARATIONS | {"cd", "pushd", "mkdir", "source", ".", "set"}
_SHELLS = {"bash", "sh", "zsh", "dash", "ash"}
# What starts a shell somewhere else, as `kubectl exec -i POD -- bash`; the variables of this one do not come along.
_CONTAINERS = {"kubectl", "oc", "docker", "podman"}
# What a script goes through on its way to a shell.
_FILTERS = {"tr", "tee", "sed", "envsubst", "cat"}
_SCRIPT = re.compile(r"\.(sh|bash|slurm|sbatch)$")


def commands(
    text: str, path: str, index: LineIndex | None = None, outside: Mapping[str, str] | None = None
) -> tuple[Command, ...]:
    """Every command of a script, those inside `bash -c '...'` and here-documents for a shell included.

    index: where the characters of `text` stand, for a script inside another file. outside: variables that are set
    elsewhere, each with the sentence that says so. Raises UnreadableText.
    """
    if len(text) > MOST_CHARACTERS:
        raise UnreadableText(f"more than {MOST_CHARACTERS} characters")
    if "\0" in text:
        raise UnreadableText("not a text file", text.count("\n", 0, text.index("\0")) + 1)
    variables = Variables({name: [Field((Piece(name, 0, why),), 0, 0, "")] for name, why in (outside or {}).items()})
    reader = _Reader(text, index or LineIndex(text, path), variables, 0)
    return tuple(reader.commands())


class _Reader:
    def __init__(self, text: str, index: LineIndex, variables: Variables, depth: int) -> None:
        self.text, self.index, self.variables, self.depth = text, index, variables, depth
        self.blocks = Blocks(variables)
        self.pending_function = False
        self.prepares = False
        self.piped: tuple[str, list[int]] | None = None

    def commands(self) -> Iterator[Command]:
        """Commands in order of appearance."""
        held: list[Token] = []
        separator = "\n"
        tokens = Lexer(self.text, limit=MOST_WORDS).run()
        for at, token in enumerate(tokens):
            if token.kind != "operator":
                held.append(token)
                continue
            if token.name == "(" and self.is_function(held, tokens, at):
                self.pending_function = True
                held = []
                continue
            if token.name == ")" and self.blocks.innermost == "case pattern":
                self.blocks.become("case")
                held = []
                continue
            yield from self.simple(held, separator)
            held = []
            separator = token.name
            self.operator(token)
        yield from self.simple(held, separator)

    def is_function(self, held: list[Token], tokens: list[Token], at: int) -> bool:
        """Whether `name (` begins a function definition."""
        follower = tokens[at + 1] if at + 1 < len(tokens) else None
        return len(held) == 1 and held[0].literal is not None and follower is not None and follower.name == ")"

    def operator(self, token: Token) -> None:
        """What an operator opens and closes."""
        if token.name == "(":
            self.open("subshell", token)
        elif token.name == ")":
            if self.blocks.innermost == "case pattern":  # the first pattern, in the line of its `case`
                self.blocks.become("case")
            elif not self.pending_function:
                self.blocks.close("subshell")
        elif token.name in {";;", ";&", ";;&"}:
            self.blocks.close("chain")
            if self.blocks.innermost == "case":
                self.variables.other_branch()
                self.blocks.become("case pattern")
        elif token.name in {"&&", "||"}:
            if self.blocks.innermost != "chain":
                self.open("chain", token, certain=token.name == "&&" and self.prepares)
            elif token.name == "||" or not self.prepares:
                self.blocks.doubt()
        elif token.name in {";", "\n", "&"}:
            self.blocks.close("chain")

    def open(self, kind: str, token: Token, certain: bool = False) -> None:
        """Begin a block at a token."""
        self.blocks.open(kind, self.index.place(token.start, token.start, "").line, certain=certain)

    def simple(self, held: list[Token], separator: str) -> Iterator[Command]:
        """One simple command, after its keywords."""
        if self.blocks.innermost == "case pattern" and not (held and held[0].literal == "esac"):
            return
        if separator not in {"|", "|&"}:
            self.piped = None
        held = self.keywords(held)
        words = [token for token in held if token.kind in {"word", "array"}]
        documents = [token for token in held if token.kind == "heredoc"]
        target = "".join(
            "".join(part.text for part in token.parts)
            for token in held
            if token.kind == "redirect" and token.name in {">", ">>", ">|", "&>"}
        )
        if not words:
            return
        self.prepares = words[0].literal in _PREPARING
        self.variables.assumed = {}
        prefixes = 0
        while prefixes < len(words) and self.is_assignment(words[prefixes]):
            prefixes += 1
        if prefixes == len(words):
            for token in words:
                self.variables.assumed = {}
                self.assign(token)
            return
        if words[prefixes].literal in _DECLARATIONS:
            self.declare(words[prefixes:])
            return
        yield from self.command(words, prefixes, documents, target)

    def command(self, words: list[Token], prefixes: int, documents: list[Token], target: str) -> Iterator[Command]:
        """The command of `words`, then the commands of a script that it is handed."""
        fields: list[Field] = []
        for token in words[prefixes:]:
            fields += self.variables.expand(token, self.text)
        if not fields:
            return
        environment = self.variables.environment(self.index)
        if prefixes:
            environment = dict(environment)
            for token in words[:prefixes]:
                match = _ASSIGNED.match(self.text, token.start, token.end)
                if match and token.kind == "word":
                    environment[match.group(1)] = self.variables.value(token, match.end()).node(self.index)
        nodes = acted_on(tuple(field.node(self.index) for field in fields))
        if not nodes:
            self.piped = (fields[-1].text, [self.index.offset(at) for at in fields[-1].origins()])
            return
        self.builtin(nodes, fields)
        heredoc = inside = None
        if documents:
            body = self.variables.document(documents[-1])
            inside = self.index.part([self.index.offset(at) for at in body.origins()])
            span = self.index.place(documents[-1].start, documents[-1].end, "")
            heredoc = Node(body.text, span, None, body.text)
            self.piped = (body.text, list(inside.origins or ()))
        if not target and nodes[0].value == "tee":
            target = next((str(node.value) for node in nodes[1:] if not str(node.value).startswith("-")), "")
        place = self.index.place(words[0].start, words[-1].end, "")
        assumed = tuple(said(name, value) for name, value in self.variables.assumed.items())
        nested = self.depth > 0 or self.index.origins is not None
        exports = self.variables.environment(self.index)
        given = {name: node for name, node in environment.items() if exports.get(name) is not node}
        read_again = list(self.evaluated(fields[1:], given)) if nodes[0].value == "eval" else []
        if read_again:
            yield from (replace(one, assumed=tuple(dict.fromkeys((*assumed, *one.assumed)))) for one in read_again)
            return
        yield Command(nodes, environment, place, heredoc, inside, target, assumed, self.index.text, nested)
        if self.depth < DEEPEST:
            yield from self.handed_over(nodes, fields, heredoc, target, {**passed(nodes), **given})

    def evaluated(self, fields: Sequence[Field], given: dict[str, Node]) -> Iterator[Command]:
        """Commands of `eval WORDS`: the words, with blanks between, read a second time where the first left off."""
        text, origins = "", []
        for field in fields:
            text += f"{field.text} "
            origins += [self.index.offset(at) for at in field.origins()]
        if self.depth < DEEPEST:
            yield from self.inner(text, origins, given, everything=True)

    def handed_over(
        self,
        nodes: Sequence[Node],
        fields: Sequence[Field],
        heredoc: Node | None,
        target: str,
        given: dict[str, Node],
    ) -> Iterator[Command]:
        """Commands of `bash -c '...'`, `ssh host '...'`, `--wrap="..."`, and of what a shell gets on its input: a
        here-document, or the text that `echo` or `cat` sends into its pipe.
        """
        name = str(nodes[0].value).rpartition("/")[2]
        for at, node in enumerate(nodes):
            # What of a script is not told is unknown where it stands in it; the rest is read.
            text = fields[at].text if at and all(piece.text for piece in fields[at].pieces) else node.value
            if at == 0 or not isinstance(text, str) or not any(blank in text for blank in " \n"):
                continue
            before = nodes[at - 1].value
            flagged = isinstance(before, str) and re.fullmatch(r"-[a-z]*c|--wrap", before) is not None
            wrap = len("--wrap=") if text.startswith("--wrap=") else 0
            if flagged or wrap or name in {"ssh", "tmux", "screen"}:
                yield from self.inner(text[wrap:], [self.index.offset(at) for at in fields[at].origins()[wrap:]], given)
        within = name in _CONTAINERS and _ends_in_a_shell(nodes)
        is_shell = name in _SHELLS | {"ssh"} or within
        takes_document = name in {"sbatch", "srun", "sudo"} or _SCRIPT.search(target) is not None
        script, kept = self.piped, self.piped if name in _FILTERS else None
        self.piped = kept
        if script is not None and (is_shell or (heredoc is not None and takes_document)):
            yield from self.inner(*script, given, alone=within)

    def inner(
        self, text: str, origins: list[int], given: dict[str, Node], everything: bool = False, alone: bool = False
    ) -> Iterator[Command]:
        """Commands of a script inside this one. everything: whether it sees variables that are not exported too. alone:
        whether it sees none but those that are given.
        """
        variables = handed_over(Variables() if alone else self.variables, self.index, given, everything)
        reader = _Reader(text, self.index.part(origins), variables, self.depth + 1)
        try:
            yield from reader.commands()
        except UnreadableText:
            return

    def keywords(self, held: list[Token]) -> list[Token]:
        """The tokens of the command that follows reserved words, after what those open and close."""
        while held:
            word = held[0].literal
            if word in {"if", "while", "until"}:
                self.open("conditional", held[0])
            elif word in {"else", "elif"}:
                self.blocks.close("chain")
                self.variables.other_branch()
            elif word in {"fi", "done"}:
                self.blocks.close("conditional")
            elif word == "esac":
                self.blocks.close("case", "case pattern")
            elif word in {"for", "select"}:
                self.open("conditional", held[0])
                self.loop(held)
                return []
            elif word == "case":
                self.open("case pattern", held[0])
                return []
            elif word == "{":
                self.open("function" if self.pending_function else "group", held[0], not self.pending_function)
                self.pending_function = False
            elif word == "}":
                self.blocks.close("function", "group")
            elif word == "function":
                self.pending_function = True
                held = held[1:]
            elif word not in {"then", "do", "!", "time", "coproc", "exec", "nohup", "command", "builtin"}:
                return held
            held = held[1:]
        return []

    def loop(self, held: list[Token]) -> None:
        """`for NAME in WORDS`."""
        names = [token.literal for token in held]
        if len(names) < 2 or not names[1]:
            return
        values = [
            field for token in held[3:] if token.kind == "word" for field in self.variables.expand(token, self.text)
        ]
        if len(values) == 1:
            self.variables.set(names[1], values)
        else:
            self.variables.set(names[1], [Field.unknown(f"{names[1]} takes several values in a loop", held[0].start)])

    def is_assignment(self, token: Token) -> bool:
        """Whether a token is `NAME=...`."""
        if token.kind == "array":
            return True
        match = _ASSIGNED.match(self.text, token.start, token.end)
        return bool(match and token.parts and not token.parts[0].quoted and not token.parts[0].expansion)

    def assign(self, token: Token, export: bool = False) -> None:
        """Carry out one assignment."""
        match = _ASSIGNED.match(self.text, token.start, token.end)
        if match is None:
            if export and token.literal:
                self.variables.export(token.literal)
            return
        name, element, append = match.groups()
        if element:
            self.variables.set(name, [Field.unknown(f"elements of {name} are set one by one", token.start)], array=True)
        elif token.kind == "array":
            fields = [field for one in token.elements for field in self.variables.expand(one, self.text)]
            self.variables.set(name, fields, array=True, append=bool(append))
        else:
            self.variables.set(name, [self.variables.value(token, match.end())], append=bool(append))
        if export:
            self.variables.export(name)

    def declare(self, words: list[Token]) -> None:
        """`export A=1 B`, `local x=2`, `declare -x Y=3`."""
        options = [word.literal or "" for word in words[1:] if (word.literal or "").startswith("-")]
        export = words[0].literal == "export" or any("x" in option for option in options)
        for token in words[1:]:
            self.variables.assumed = {}
            if not (token.literal or "").startswith("-"):
                self.assign(token, export)

    def builtin(self, nodes: Sequence[Node], fields: Sequence[Field]) -> None:
        """Builtins that change variables: set --, shift, unset, read."""
        name = nodes[0].value
        rest = [node.value for node in nodes[1:]]
        if name == "set" and rest[:1] == ["--"]:
            self.variables.set("@", list(fields[2:]), array=True)
        elif name == "shift":
            self.variables.shift()
        elif name in {"unset", "read"}:
            for word, field in zip(rest, fields[1:], strict=True):
                if isinstance(word, str) and word.isidentifier():
                    if name == "unset":
                        self.variables.unset(word)
                    else:
                        self.variables.set(word, [Field.unknown(f"{word} is read from input", field.start)])


def _ends_in_a_shell(nodes: Sequence[Node]) -> bool:
    """Whether a command's last word, options apart, is a shell that reads its standard input."""
    last = next((str(node.value) for node in reversed(nodes) if not str(node.value).startswith("-")), "")
    return last.rpartition("/")[2] in _SHELLS


__all__ = ["Command", "commands"]
