"""Commands of a shell script, with quotes, variables, arrays and continuations resolved where the file allows it.

Every branch is read, since the question is what a script may start; a variable that is set under a condition is
unknown after it, and says what each branch makes of it. `${TP:-8}` counts as 8 where the file does not set TP, and the
command says so in `assumed`. Nothing is executed, and no other script is followed.
Source: POSIX.1-2017, Shell Command Language; the grammar is tree-sitter-bash.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_command import Command, acted_on, passed, said
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
# Commands before `&&` whose failure ends the work; any other may be a test of what is there: `rocm-smi && export A=1`.
_PREPARING = {"export", "declare", "local", "readonly", "typeset", "cd", "pushd", "mkdir", "source", ".", "set"}
_BEFORE_A_COMMAND = {"exec", "nohup", "command", "builtin", "time", "coproc"}
_SHELLS = {"bash", "sh", "zsh", "dash", "ash", "ssh"}
_TAKE_A_SCRIPT = {"sbatch", "srun", "sudo"}
_SCRIPT = re.compile(r"\.(sh|bash|slurm|sbatch)$")
_OUTPUTS = {">", ">>", ">|", "&>"}
# What stands in a command, or in the redirection of a here-document, beside the command's words.
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
    """Return every command of a script, those inside `bash -c '...'` and here-documents for a shell included.

    index: where the characters of `text` stand, for a script inside another file. damaged: is called with
    the reason for each part that is not read; without it a broken script raises UnreadableText.
    """
    index = index or LineIndex(text, path)
    walk = _Walk(text, index, Variables(), 0)
    broken = walk.read()
    if broken is not None and damaged is None:
        raise broken
    for unread in [*([broken] if broken is not None else []), *walk.passed_over]:
        if damaged is not None:
            damaged(unread)
    return tuple(walk.found)


@dataclass
class _Walk:
    text: str
    index: LineIndex
    variables: Variables
    level: int
    found: list[Command] = field(default_factory=list)
    count: int = 0
    prepares: bool = False
    redirects: dict[int, list["Tree"]] = field(default_factory=dict)
    documents: dict[int, "Tree"] = field(default_factory=dict)
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
        """Statements in order of appearance; anything else among them is passed over."""
        if depth > DEEPEST_BLOCK:
            raise UnreadableText(f"nested deeper than {DEEPEST_BLOCK} levels", self.line(trees[0]) if trees else 0)
        for tree in trees:
            self.statement(tree, depth + 1)

    def statement(self, tree: "Tree", depth: int) -> None:  # noqa: PLR0912 - one for each kind of statement
        """One statement: a command, an assignment, or a block of more."""
        match tree.type:
            case "command":
                self.command(tree, self.redirects.pop(tree.id, []))
            case "declaration_command":
                self.declare(tree)
            case "variable_assignment":
                self.assign(Word((tree,), tree.start_byte, tree.end_byte))
            case "unset_command":
                for one in tree.named_children:
                    self.variables.unset(self.written(one))
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
                closed = next((at for at, one in enumerate(tree.children) if one.type == ")"), 0)
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
                self.statements([one for one in tree.children if one.type in {"do_group", "compound_statement"}], depth)
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
        """`a && b || c`: what follows the first may not run."""
        links: list[Tree] = []
        while tree.type == "list":
            links = [*tree.children[1:], *links]
            tree = tree.children[0]
        self.statement(tree, depth)
        certain = True
        self.variables.enter()
        for one in links:
            certain = certain and not (one.type == "||" or (one.type == "&&" and not self.prepares))
            self.statements([one], depth)
        self.variables.leave(None if certain else self.line(links[0]))

    def loop(self, tree: "Tree") -> None:
        """`for NAME in WORDS`."""
        if tree.type == "c_style_for_statement":
            self.arithmetic(tree)
            return
        name, *words = [one for one in tree.named_children if one.type not in {"do_group", "comment"}]
        values = [each for one in joined(words) for each in self.expander.words(one)]
        if len(values) != 1:
            why = f"{self.written(name)} takes several values in a loop"
            values = [Field.unknown(why, self.index.offset(tree.start_byte))]
        self.variables.set(self.written(name), values)

    def arithmetic(self, tree: "Tree") -> None:
        """`((x += 1))`, and the head of a loop over numbers."""
        for match in _CHANGED_BY_ARITHMETIC.finditer(self.written(tree).partition("))")[0]):
            self.variables.set(match[1], [Field.unknown("it is arithmetic", self.index.offset(tree.start_byte))])

    def redirected(self, tree: "Tree", depth: int) -> None:
        """A statement with redirections, which belong to the last command in it."""
        body, *redirects = [one for one in tree.children if one.is_named]
        given = [*redirects, *self.redirects.pop(tree.id, [])]
        self.redirects[_last_command(body).id] = given
        self.statement(body, depth)
        for redirect in redirects:
            for after in redirect.children:
                if after.type == "pipeline":
                    # What the document is piped into reads it.
                    self.documents[_last_command(after).id] = redirect
            self.block(redirect, depth)

    def assign(self, word: Word, export: bool = False) -> None:
        """Carry out one assignment."""
        self.counted(1)
        target, sign, *value = word.trees[0].children
        self.variables.assumed = {}
        name, append = self.written(target), sign.type == "+="
        if any(damage(one) is not None for one in word.trees):
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
        trees = [one for one in array.children if one.type not in {"(", ")", "comment", "ERROR"}]
        words = joined(trees, left_out(self.text, array.children))
        self.counted(len(words))
        return [each for one in words for each in self.expander.words(one)]

    def declare(self, tree: "Tree") -> None:
        """`export A=1 B`, `local x=2`, `declare -x Y=3`."""
        words = joined(tree.named_children)
        options = [self.text[one.start : one.end] for one in words if self.text.startswith("-", one.start)]
        export = tree.children[0].type == "export" or any("x" in option for option in options)
        self.prepares = True
        for one in words:
            if _is_assignment(one):
                self.assign(one, export)
            elif export and one.trees[0].type == "variable_name":
                self.variables.export(self.text[one.start : one.end])

    def command(self, tree: "Tree", redirects: Sequence["Tree"]) -> None:
        """One simple command, and those of a script that it is handed."""
        piped = [self.documents.pop(tree.id)] if tree.id in self.documents else []
        trees, documents, target = self.sorted_out([*tree.children, *redirects])
        words = joined(trees, left_out(self.text, [*tree.children, *redirects]))
        prefixes = list(takewhile(_is_assignment, words))
        words = words[len(prefixes) :]
        if not words:
            for one in prefixes:
                self.assign(one)
            return
        while words and self.text[words[0].start : words[0].end] in _BEFORE_A_COMMAND:
            words = words[1:]
        self.counted(len(words))
        self.prepares = bool(words) and self.text[words[0].start : words[0].end] in _PREPARING
        self.variables.assumed = {}
        fields = [each for one in words for each in self.expander.words(one)]
        if not fields:
            return
        exports = self.variables.environment(self.index)
        given = {self.written(one.trees[0].children[0]): self.value(one).node(self.index) for one in prefixes}
        nodes = acted_on(tuple(one.node(self.index) for one in fields))
        if not nodes:
            return
        if nodes[0].value == "read":
            self.read_from_input(fields[1:])
        if damage(tree) is not None or self.cut in range(tree.start_byte, words[-1].end + 2):
            return  # What is missing of it may be any of its options.
        place = self.index.place((*prefixes, *words)[0].start, words[-1].end, "")
        heredoc = inside = script = None
        if documents or piped:
            script = self.expander.document([*piped, *documents][-1])
            inside = self.index.part(script.origins())
            heredoc = Node(script.text, self.index.place_in_file(script.start, script.end), None, script.text)
        if not target and nodes[0].value == "tee":
            target = next((str(node.value) for node in nodes[1:] if not str(node.value).startswith("-")), "")
        assumed = tuple(said(name, value) for name, value in self.variables.assumed.items())
        nested = self.level > 0 or self.index.origins is not None
        variables = {**exports, **given} if given else exports
        own = Command(nodes, variables, place, heredoc, inside, target, assumed, self.index.text, nested)
        if nodes[0].value == "eval":
            self.evaluated(own, fields[1:], given)
            return
        self.found.append(own)
        self.handed_over(own, fields, script, {**passed(nodes), **given})

    def sorted_out(self, trees: Sequence["Tree"]) -> tuple[list["Tree"], list["Tree"], str]:
        """The parts of a command's words, its here-documents, and the file that its output goes to. A word may stand
        behind a redirection.
        """
        words: list[Tree] = []
        documents: list[Tree] = []
        target = ""
        for tree in trees:
            if tree.type == "heredoc_redirect":
                documents.append(tree)
                more, _, inner = self.sorted_out(tree.children)
                words += more
                target += inner
            elif tree.type == "file_redirect":
                files = joined(one for one in tree.named_children if one.type != "file_descriptor")
                if files and any(one.type in _OUTPUTS for one in tree.children):
                    target += self.expander.value(files[0]).text
                words += [part for one in files[1:] for part in one.trees]
            elif tree.type not in _NO_WORDS:  # a lone dash has no name in the grammar
                words.append(tree)
        return words, documents, target

    def counted(self, words: int) -> None:
        """Raise UnreadableText for the word too many."""
        self.count += words
        if self.count > MOST_WORDS:
            raise UnreadableText(f"longer than a script: more than {MOST_WORDS} words")

    def evaluated(self, command: Command, fields: Sequence[Field], given: dict[str, Node]) -> None:
        """`eval WORDS`: the words, with blanks between, are read a second time where the first left off."""
        text, origins = "", list[int]()
        for one in fields:
            text += f"{one.text} "
            origins += one.origins()
        read_again = self.inner(text, origins, given, everything=True)
        assumed = [tuple(dict.fromkeys((*command.assumed, *one.assumed))) for one in read_again]
        self.found += [replace(one, assumed=said) for one, said in zip(read_again, assumed, strict=True)] or [command]

    def handed_over(
        self, command: Command, fields: Sequence[Field], script: Field | None, given: dict[str, Node]
    ) -> None:
        """Read the commands of `bash -c '...'`, `ssh host '...'`, `--wrap="..."`, and of a here-document for a shell.
        A part of such a script that is not known is unknown in its place; the rest is read.
        """
        nodes = command.words
        name = str(nodes[0].value).rpartition("/")[2]
        for (before, _), (node, one) in pairwise(zip(nodes, fields, strict=False)):
            text = one.text if all(piece.text for piece in one.pieces) else node.value
            if not isinstance(text, str) or not re.search(r"[ \n]", text):
                continue
            flagged = isinstance(before.value, str) and re.fullmatch(r"-[a-z]*c|--wrap", before.value) is not None
            wrap = len("--wrap=") if text.startswith("--wrap=") else 0
            if flagged or wrap or name in {"ssh", "tmux", "screen"}:
                self.found += self.inner(text[wrap:], one.origins()[wrap:], given)
        if script is not None and (name in _SHELLS | _TAKE_A_SCRIPT or _SCRIPT.search(command.target)):
            self.found += self.inner(script.text, script.origins(), given)

    def inner(
        self, text: str, origins: list[int], given: dict[str, Node], everything: bool = False
    ) -> tuple[Command, ...]:
        """Commands of a script inside this one; none of one that cannot be read."""
        if self.level >= DEEPEST_SCRIPT:
            return ()
        variables = self.variables.handed_over(given, everything)
        walk = _Walk(text, self.index.part(origins), variables, self.level + 1)
        try:
            broken = walk.read()
        except UnreadableText:
            return ()
        self.passed_over += walk.passed_over
        return () if broken is not None else tuple(walk.found)

    def notice_script(self, pipeline: "Tree") -> None:
        """Note a script that a pipeline writes for a shell (`echo "$JOB" | bash`), which is not read."""
        first, last = (self.written(one).split() for one in (pipeline.named_children[0], pipeline.named_children[-1]))
        written = first[:1] in (["echo"], ["printf"], ["cat"])
        if written and last and last[0].rpartition("/")[2] in _SHELLS and all(one in ("-", "-s") for one in last[1:]):
            self.passed_over.append(UnreadableText("text that is piped into a shell is not read", self.line(pipeline)))

    def read_from_input(self, fields: Sequence[Field]) -> None:
        """`read NAME`."""
        for one in fields:
            if one.text.isidentifier() and not one.why:
                self.variables.set(one.text, [Field.unknown(f"{one.text} is read from input", one.start)])


def _is_assignment(word: Word) -> bool:
    return bool(word.trees) and word.trees[0].type == "variable_assignment"


def _last_command(tree: "Tree") -> "Tree":
    while tree.type in {"list", "pipeline", "negated_command", "redirected_statement"}:
        tree = tree.named_children[0 if tree.type == "redirected_statement" else -1]
    return tree


__all__ = ["Command", "commands"]
