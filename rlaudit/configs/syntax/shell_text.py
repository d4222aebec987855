"""Commands of a shell script, with quotes, variables, arrays and continuations resolved where the file allows it.

Every branch is read, since the question is what a script may start. A variable that is set under a condition is
unknown after it, with its value after each branch as the reason. `${TP:-8}` counts as 8 if the file does not set TP,
and is listed in the command's `assumed`. Nothing is executed, and no other script is followed: neither a file nor
what a here-document or a pipe gives to a shell.
Source: POSIX.1-2017, Shell Command Language; the grammar is tree-sitter-bash.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_command import Command, acted_on, passed, taken_at_default
from rlaudit.configs.syntax.shell_expansion import Expander
from rlaudit.configs.syntax.shell_parts import Field, Word, joined, left_out
from rlaudit.configs.syntax.shell_tree import begun, damage, parsed
from rlaudit.configs.syntax.shell_variables import Variables
from rlaudit.configs.syntax.unreadable import UnreadableText

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

MOST_WORDS = 20_000
DEEPEST_SCRIPT = 2
DEEPEST_BLOCK = 80
# Commands before `&&` whose failure ends the work; any other may be a test: `rocm-smi && export A=1`.
_PREPARING = {"export", "declare", "local", "readonly", "typeset", "cd", "pushd", "mkdir", "source", ".", "set"}
_BEFORE_A_COMMAND = {"exec", "nohup", "command", "builtin", "time", "coproc"}
_SHELLS = {"bash", "sh", "zsh", "dash", "ash", "ssh"}
_TAKE_A_SCRIPT = {"sbatch", "srun", "sudo"}
# Nodes of a command, or of the redirection of a here-document, that are none of the command's words.
_NO_WORDS = {
    "herestring_redirect", "ERROR", "comment", "<<", "<<-", "heredoc_start", "heredoc_body", "heredoc_end", "\n",
    "file_descriptor", "pipeline", "list", "command", "&&", "||",
}  # fmt: skip
_CHANGED_BY_ARITHMETIC = re.compile(r"([A-Za-z_]\w*)\s*(?:\+\+|--|[-+*/%]?=(?!=))")


def commands(
    text: str,
    path: str,
    index: LineIndex | None = None,
    damaged: Callable[[UnreadableText], None] | None = None,
) -> tuple[Command, ...]:
    """Return every command of a script, those inside `bash -c '...'` included.

    index: the places of the characters of `text`, for a script inside another file. damaged: called with the reason
    for each part that is not read; without it a script with such a part raises UnreadableText.
    """
    index = index or LineIndex(text, path)
    walk = _Walk(text, index, Variables(), 0)
    broken = walk.read()
    for unread in [*([broken] if broken is not None else []), *walk.passed_over]:
        if damaged is None:
            raise unread
        damaged(unread)
    return tuple(walk.commands)


@dataclass
class _Walk:
    text: str
    index: LineIndex
    variables: Variables
    level: int
    commands: list[Command] = field(default_factory=list)
    count: int = 0
    prepares: bool = False
    redirects: dict[int, list["Tree"]] = field(default_factory=dict)
    # Scripts that the walk does not follow.
    passed_over: list[UnreadableText] = field(default_factory=list)

    def read(self) -> UnreadableText | None:
        """Walk the script; return why a part of it could not be read."""
        root = parsed(self.text)
        self.expander = Expander(self.text, self.index, self.variables)
        broken = damage(root)
        self.cut = broken.start_byte if broken is not None else -1
        self.statements(root.children, 0)
        if broken is None:
            return None
        return UnreadableText("the shell script is damaged", self.text.count("\n", 0, begun(broken)) + 1)

    def line(self, tree: "Tree") -> int:
        """Return the line of the file in which a node begins."""
        return self.index.place(tree.start_byte, tree.start_byte, "").line

    def written(self, tree: "Tree") -> str:
        """Return a node as it is written."""
        return self.text[tree.start_byte : tree.end_byte]

    def statements(self, trees: Sequence["Tree"], depth: int) -> None:
        """Carry out statements in their order; other nodes among them are skipped."""
        if depth > DEEPEST_BLOCK:
            raise UnreadableText(f"nested deeper than {DEEPEST_BLOCK} levels", self.line(trees[0]) if trees else 0)
        for tree in trees:
            self.statement(tree, depth + 1)

    def statement(self, tree: "Tree", depth: int) -> None:  # noqa: PLR0912 - one for each kind of statement
        """Carry out one statement: a command, an assignment, or a block of statements."""
        match tree.type:
            case "command":
                self.command(tree, self.redirects.pop(tree.id, []))
            case "declaration_command":
                self.declare(tree)
            case "variable_assignment":
                self.assign(Word((tree,), tree.start_byte, tree.end_byte))
            case "unset_command":
                for child in tree.named_children:
                    self.variables.unset(self.written(child))
            case "redirected_statement":
                self.redirected(tree, depth)
            case "list":
                self.chain(tree, depth)
            case "pipeline":
                self.notice_script(tree)
                self.statements(tree.children, depth)
            case "negated_command" | "variable_assignments" | "do_group":
                self.statements(tree.children, depth)
            case "elif_clause" | "else_clause":
                self.variables.other_branch()
                self.statements(tree.children, depth)
            case "case_item":
                closed = next((at for at, child in enumerate(tree.children) if child.type == ")"), 0)
                self.statements(tree.children[closed + 1 :], depth)
                self.variables.other_branch()
            case "compound_statement" if tree.children[0].type == "((":
                self.arithmetic(tree)
            case "compound_statement":
                self.statements(tree.children, depth)
            case "if_statement" | "while_statement" | "case_statement" | "ERROR":
                self.block(tree, depth)
            case "for_statement" | "c_style_for_statement":
                self.variables.enter()
                self.loop(tree)
                bodies = (child for child in tree.children if child.type in {"do_group", "compound_statement"})
                self.statements([*bodies], depth)
                self.variables.leave(self.line(tree))
            case "function_definition":
                self.block(tree.children[-1], depth)
            case "subshell":
                self.variables.enter()
                self.statements(tree.children, depth)
                self.variables.forget()

    def block(self, tree: "Tree", depth: int) -> None:
        """Carry out statements that may or may not run."""
        self.variables.enter()
        self.statements(tree.children, depth)
        self.variables.leave(self.line(tree))

    def chain(self, tree: "Tree", depth: int) -> None:
        """Carry out `a && b || c`: what follows the first may not run."""
        links: list[Tree] = []
        while tree.type == "list":
            links = [*tree.children[1:], *links]
            tree = tree.children[0]
        self.statement(tree, depth)
        certain = True
        self.variables.enter()
        for link in links:
            certain = certain and not (link.type == "||" or (link.type == "&&" and not self.prepares))
            self.statements([link], depth)
        self.variables.leave(None if certain else self.line(links[0]))

    def loop(self, tree: "Tree") -> None:
        """Set the variable of `for NAME in WORDS`."""
        if tree.type == "c_style_for_statement":
            self.arithmetic(tree)
            return
        name, *words = [child for child in tree.named_children if child.type not in {"do_group", "comment"}]
        values = [value for word in joined(words) for value in self.expander.words(word)]
        if len(values) != 1:
            why = f"{self.written(name)} takes several values in a loop"
            values = [Field.unknown(why, self.index.offset(tree.start_byte))]
        self.variables.set(self.written(name), values)

    def arithmetic(self, tree: "Tree") -> None:
        """Make the variables of `((x += 1))`, and of the head of a loop over numbers, unknown."""
        for match in _CHANGED_BY_ARITHMETIC.finditer(self.written(tree).partition("))")[0]):
            self.variables.set(match[1], [Field.unknown("it is arithmetic", self.index.offset(tree.start_byte))])

    def redirected(self, tree: "Tree", depth: int) -> None:
        """Carry out a statement with redirections, which belong to its last command."""
        body, *redirects = [child for child in tree.children if child.is_named]
        self.redirects[_last_command(body).id] = [*redirects, *self.redirects.pop(tree.id, [])]
        self.statement(body, depth)
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                self.notice_document(body, redirect)
            self.block(redirect, depth)

    def assign(self, word: Word, export: bool = False) -> None:
        """Carry out one assignment."""
        self.counted(1)
        target, sign, *value = word.trees[0].children
        self.variables.assumed = {}
        name, append = self.written(target), sign.type == "+="
        if any(damage(tree) is not None for tree in word.trees):
            self.variables.set(name, [Field.unknown("the script is damaged there", self.index.offset(word.start))])
        elif target.type == "subscript":
            name = name.partition("[")[0]
            why = f"elements of {name} are set one by one"
            self.variables.set(name, [Field.unknown(why, self.index.offset(word.start))], array=True)
        elif value and value[0].type == "array":
            self.variables.set(name, self.elements(value[0]), array=True, append=append)
        else:
            self.variables.set(name, [self.value(word)], append=append)
        if export:
            self.variables.export(name)

    def value(self, assignment: Word) -> Field:
        """Return the value of an assignment."""
        _, sign, *value = assignment.trees[0].children
        return self.expander.value(Word((*value, *assignment.trees[1:]), sign.end_byte, assignment.end))

    def elements(self, array: "Tree") -> list[Field]:
        """Return the words of an array."""
        trees = [child for child in array.children if child.type not in {"(", ")", "comment", "ERROR"}]
        words = joined(trees, left_out(self.text, array.children))
        self.counted(len(words))
        return [element for word in words for element in self.expander.words(word)]

    def declare(self, tree: "Tree") -> None:
        """Carry out `export A=1 B`, `local x=2`, `declare -x Y=3`."""
        words = joined(tree.named_children)
        options = [self.text[word.start : word.end] for word in words if self.text.startswith("-", word.start)]
        export = tree.children[0].type == "export" or any("x" in option for option in options)
        self.prepares = True
        for word in words:
            if _is_assignment(word):
                self.assign(word, export)
            elif export and word.trees[0].type == "variable_name":
                self.variables.export(self.text[word.start : word.end])

    def command(self, tree: "Tree", redirects: Sequence["Tree"]) -> None:
        """Add a simple command, and those of a script that is one of its words."""
        parts = [*tree.children, *redirects]
        words = joined(self.words_among(parts), left_out(self.text, parts))
        prefixes = list(takewhile(_is_assignment, words))
        words = words[len(prefixes) :]
        if not words:
            for prefix in prefixes:
                self.assign(prefix)
            return
        while words and self.text[words[0].start : words[0].end] in _BEFORE_A_COMMAND:
            words = words[1:]
        self.counted(len(words))
        self.prepares = bool(words) and self.text[words[0].start : words[0].end] in _PREPARING
        self.variables.assumed = {}
        fields = [expanded for word in words for expanded in self.expander.words(word)]
        if not fields:
            return
        exports = self.variables.environment(self.index)
        prefixed = {
            self.written(prefix.trees[0].children[0]): self.value(prefix).node(self.index) for prefix in prefixes
        }
        nodes = acted_on(tuple(expanded.node(self.index) for expanded in fields))
        if not nodes:
            return
        if nodes[0].value == "read":
            self.read_from_input(fields[1:])
        if damage(tree) is not None or self.cut in range(tree.start_byte, words[-1].end + 2):
            return  # The missing part may be any of its options.
        place = self.index.place((*prefixes, *words)[0].start, words[-1].end, "")
        assumed = tuple(taken_at_default(name, value) for name, value in self.variables.assumed.items())
        nested = self.level > 0 or self.index.origins is not None
        variables = {**exports, **prefixed} if prefixed else exports
        command = Command(nodes, variables, place, assumed, self.index.text, nested)
        if nodes[0].value == "eval":
            self.evaluated(command, fields[1:], prefixed)
            return
        self.commands.append(command)
        self.handed_over(command, fields, {**passed(nodes), **prefixed})

    def words_among(self, trees: Sequence["Tree"]) -> list["Tree"]:
        """Return the parts of a command's words. Words may follow a redirection."""
        words: list[Tree] = []
        for tree in trees:
            if tree.type == "heredoc_redirect":
                words += self.words_among(tree.children)
            elif tree.type == "file_redirect":
                files = joined(child for child in tree.named_children if child.type != "file_descriptor")
                words += [part for word in files[1:] for part in word.trees]
            elif tree.type not in _NO_WORDS:  # a lone dash has no name in the grammar
                words.append(tree)
        return words

    def counted(self, words: int) -> None:
        """Raise UnreadableText for the word too many."""
        self.count += words
        if self.count > MOST_WORDS:
            raise UnreadableText(f"longer than a script: more than {MOST_WORDS} words")

    def evaluated(self, command: Command, fields: Sequence[Field], given: dict[str, Node]) -> None:
        """Read the words of `eval WORDS`, with blanks between, as a script with the current variables."""
        text, origins = "", list[int]()
        for expanded in fields:
            text += f"{expanded.text} "
            origins += expanded.origins()
        self.commands += [
            replace(inner, assumed=tuple(dict.fromkeys((*command.assumed, *inner.assumed))))
            for inner in self.inner(text, origins, given, everything=True)
        ] or [command]

    def handed_over(self, command: Command, fields: Sequence[Field], given: dict[str, Node]) -> None:
        """Read the commands of `bash -c '...'`, `ssh host '...'` and `--wrap="..."`. An unknown part of such a script
        stays unknown in its place.
        """
        nodes = command.words
        name = str(nodes[0].value).rpartition("/")[2]
        for (before, _), (node, expanded) in pairwise(zip(nodes, fields, strict=False)):
            text = expanded.text if all(piece.text for piece in expanded.pieces) else node.value
            if not isinstance(text, str) or not re.search(r"[ \n]", text):
                continue
            flagged = isinstance(before.value, str) and re.fullmatch(r"-[a-z]*c|--wrap", before.value) is not None
            wrap = len("--wrap=") if text.startswith("--wrap=") else 0
            if flagged or wrap or name in {"ssh", "tmux", "screen"}:
                self.commands += self.inner(text[wrap:], expanded.origins()[wrap:], given)

    def inner(
        self, text: str, origins: list[int], given: dict[str, Node], everything: bool = False
    ) -> tuple[Command, ...]:
        """Return the commands of a script inside this one; none if it cannot be read."""
        if self.level >= DEEPEST_SCRIPT:
            return ()
        variables = self.variables.handed_over(given, everything)
        walk = _Walk(text, self.index.part(origins), variables, self.level + 1)
        try:
            broken = walk.read()
        except UnreadableText:
            return ()
        self.passed_over += walk.passed_over
        return () if broken is not None else tuple(walk.commands)

    def notice_document(self, body: "Tree", redirect: "Tree") -> None:
        """Note a script in a here-document that a shell gets, which is not read."""
        pipeline = next((child for child in redirect.children if child.type == "pipeline"), body)
        words = (word for word in self.written(_last_command(pipeline)).split() if "=" not in word)
        if next(words, "").rpartition("/")[2] in _SHELLS | _TAKE_A_SCRIPT:
            self.passed_over.append(UnreadableText("a script in a here-document is not read", self.line(redirect)))

    def notice_script(self, pipeline: "Tree") -> None:
        """Note a script that a pipeline writes for a shell (`echo "$JOB" | bash`), which is not read."""
        first, last = (self.written(end).split() for end in (pipeline.named_children[0], pipeline.named_children[-1]))
        prints = first[:1] in (["echo"], ["printf"], ["cat"])
        if prints and last and last[0].rpartition("/")[2] in _SHELLS and {"-", "-s"}.issuperset(last[1:]):
            self.passed_over.append(UnreadableText("text that is piped into a shell is not read", self.line(pipeline)))

    def read_from_input(self, fields: Sequence[Field]) -> None:
        """Make the variables of `read NAME` unknown."""
        for expanded in fields:
            name = expanded.text
            if name.isidentifier() and not expanded.why:
                self.variables.set(name, [Field.unknown(f"{name} is read from input", expanded.start)])


def _is_assignment(word: Word) -> bool:
    return bool(word.trees) and word.trees[0].type == "variable_assignment"


def _last_command(tree: "Tree") -> "Tree":
    while tree.type in {"list", "pipeline", "negated_command", "redirected_statement"}:
        tree = tree.named_children[0 if tree.type == "redirected_statement" else -1]
    return tree


__all__ = ["Command", "commands"]
