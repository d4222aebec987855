"""The tokens of a shell script: words in parts, operators, redirections and here-documents, each with its span.

One pass, every character looked at a bounded number of times. Words are cut up but not expanded; see shell_text.py.

Why no grammar of tree-sitter (tree-sitter-bash 0.25.1, measured 2026-11-22 on two cores): importing it and parsing one
line takes 26 ms of the processor, importing this file 9, and a cold `inspect` has to stay near what importing typer and
yaml costs. Of 600 damaged scripts (13 published ones, cut off or with a quote, bracket or keyword too many) its tree
has errors in 105; this lexer refuses 62 and reads 43 of those, and in 17 of the 43 the tree holds fewer commands. What
it would replace is this file; a walk over its tree that cuts words into the same parts, each character at its offset
in the file, would stay.
"""

import re
from dataclasses import dataclass, field

from rlaudit.configs.syntax.unreadable import UnreadableText

OPERATORS = (";;&", ";;", ";&", "&&", "||", "|&", ";", "|", "(", ")", "\n")
_NAME_ASSIGNED = re.compile(r"[A-Za-z_]\w*(\[[^\]\s]*\])?\+?=")
_REDIRECT = re.compile(r"\d{0,2}(<<<|<<-|<<|<>|<&|<|>>|>\||>&|>)|&>>|&>")
# `--model <your_model>`: to a shell two redirections, to whoever wrote it a word that is left to fill in.
_PLACEHOLDER = re.compile(r"<[A-Za-z][\w./-]*>(?=[ \t]*(?:\\?\r?\n|$)|[ \t]+-)")
_SIMPLE_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_BLANK = " \t\r"
LONGEST_ARITHMETIC = 500


@dataclass(frozen=True)
class Part:
    """A piece of a word: literal text whose characters stand at start, start + 1, ..., or an expansion's source."""

    text: str
    start: int
    quoted: bool
    expansion: bool = False


@dataclass(frozen=True)
class Token:
    """kind: word, array, operator, redirect or heredoc. name: of an array, operator or redirection.

    parts: of a word, of a redirection's target, or of a here-document's body. elements: an array's words.
    """

    kind: str
    start: int
    end: int
    name: str = ""
    parts: tuple[Part, ...] = ()
    elements: tuple["Token", ...] = ()

    @property
    def literal(self) -> str | None:
        """The text of a word without quotes and expansions; None for any other."""
        if self.kind == "word" and all(not part.quoted and not part.expansion for part in self.parts):
            return "".join(part.text for part in self.parts)
        return None


@dataclass
class Lexer:
    """Cuts `text` into tokens. Raises UnreadableText."""

    text: str
    at: int = 0
    tokens: list[Token] = field(default_factory=list)
    waiting: list[tuple[str, bool, bool]] = field(default_factory=list)
    limit: int = 20_000

    def run(self) -> list[Token]:
        """All tokens."""
        while self.at < len(self.text):
            self.within_limit(len(self.tokens))
            token = self.next()
            if token is not None:
                self.tokens.append(token)
        return self.tokens

    def within_limit(self, words: int) -> None:
        """Raise UnreadableText for the word too many."""
        if words > self.limit:
            raise UnreadableText(f"longer than a script: more than {self.limit} words")

    def next(self) -> Token | None:  # noqa: PLR0911 - one for each kind of token
        """The token at the current position; None for blanks and comments."""
        text, start = self.text, self.at
        character = text[start]
        if character in _BLANK:
            self.at += 1
            return None
        if character == "\\" and (self.newline_at(start + 1)):
            self.at = start + 1 + self.newline_at(start + 1)
            return None
        if character == "#":
            end = text.find("\n", start)
            self.at = len(text) if end < 0 else end
            return None
        placeholder = _PLACEHOLDER.match(text, start)
        if placeholder:
            self.at = placeholder.end()
            return Token("word", start, self.at, parts=(Part(placeholder.group(), start, False, True),))
        redirect = _REDIRECT.match(text, start)
        if redirect:
            return self.redirect(redirect)
        if character == "(" and text.startswith("((", start):
            end = text.find("))", start, start + LONGEST_ARITHMETIC)
            if end >= 0 and "\n" not in text[start:end]:
                self.at = end + 2
                return Token("word", start, self.at, parts=(Part(text[start : self.at], start, False, True),))
        for operator in OPERATORS:
            if text.startswith(operator, start):
                self.at += len(operator)
                if operator == "\n":
                    self.bodies()
                return Token("operator", start, self.at, operator)
        if character == "&":
            self.at += 1
            return Token("operator", start, self.at, "&")
        return self.word()

    def newline_at(self, at: int) -> int:
        """The length of a line end at a position: 0, 1 or 2 characters."""
        return 1 if self.text.startswith("\n", at) else 2 if self.text.startswith("\r\n", at) else 0

    def word(self) -> Token:
        """A word, or an array that is assigned."""
        start = self.at
        parts: list[Part] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in " \t\r\n;|&)<>":
                break
            if character == "(":
                match = _NAME_ASSIGNED.fullmatch(self.text, start, self.at)
                if not match:
                    break
                return self.array(start, self.text[start : self.at])
            part = self.part(parts)
            if part is None:
                continue
            parts.append(part)
        return Token("word", start, self.at, parts=tuple(parts))

    def part(self, parts: list[Part]) -> Part | None:
        """The next part of an unquoted word; None after a continuation, or where quotes appended their own."""
        start, text = self.at, self.text
        character = text[start]
        if character == "'":
            end = text.find("'", start + 1)
            if end < 0:
                raise self.unclosed(start)
            self.at = end + 1
            return Part(text[start + 1 : end], start + 1, True)
        if character == '"':
            self.at += 1
            self.double(parts, start)
            return None
        if character == "\\":
            skip = self.newline_at(start + 1)
            self.at = start + 1 + skip if skip else min(start + 2, len(text))
            # At the very end there is nothing to quote, and no word.
            return None if skip or start + 1 >= len(text) else Part(text[start + 1 : self.at], start + 1, True)
        if text.startswith("$'", start):
            quoted = ansi_quoted(text, start + 2)
            if quoted is None:
                raise self.unclosed(start)
            made, self.at = quoted
            return Part(made, start + 2, True)
        if character in "$`":
            return self.expansion(False)
        end = start + 1
        while end < len(text) and text[end] not in " \t\r\n;|&()<>'\"\\$`":
            end += 1
        self.at = end
        return Part(text[start:end], start, False)

    def double(self, parts: list[Part], opened: int) -> None:
        """The inside of double quotes, up to and with the closing one."""
        text, begun = self.text, self.at
        before = len(parts)
        while True:
            if self.at >= len(text):
                raise self.unclosed(opened)
            character = text[self.at]
            if character not in '"\\$`':
                self.at = self.plain_end(self.at)
                continue
            if self.at > begun:
                parts.append(Part(text[begun : self.at], begun, True))
            if character == '"':
                self.at += 1
                break
            if character == "\\":
                skip = self.newline_at(self.at + 1)
                follower = text[self.at + 1 : self.at + 2]
                if skip:
                    self.at += 1 + skip
                elif follower in {'"', "\\", "$", "`"}:
                    parts.append(Part(follower, self.at + 1, True))
                    self.at += 2
                else:
                    parts.append(Part("\\", self.at, True))
                    self.at += 1
            else:
                parts.append(self.expansion(True))
            begun = self.at
        if len(parts) == before:
            parts.append(Part("", self.at - 1, True))

    def plain_end(self, at: int) -> int:
        """The end of a run without a character that means something in double quotes."""
        match = _SPECIAL.search(self.text, at)
        return match.start() if match else len(self.text)

    def expansion(self, quoted: bool) -> Part:
        """`$NAME`, `${...}`, `$(...)`, `$((...))` or a backquoted command; a lone dollar is text."""
        start, text = self.at, self.text
        if text[start] == "`":
            end = start + 1
            while end < len(text) and text[end] != "`":
                end += 2 if text[end] == "\\" else 1
            if end >= len(text):
                raise self.unclosed(start)
            self.at = end + 1
        elif text.startswith("${", start):
            self.at = self.closing(start + 2, "{", "}", start)
        elif text.startswith("$(", start):
            self.at = self.closing(start + 2, "(", ")", start)
        else:
            name = _SIMPLE_NAME.match(text, start + 1)
            if name is None:
                self.at = start + 1
                return Part("$", start, quoted)
            self.at = name.end()
        return Part(text[start : self.at], start, quoted, True)

    def closing(self, at: int, opener: str, closer: str, opened: int) -> int:
        """The position after the bracket that closes the one before `at`."""
        end = after_closing(self.text, at, opener, closer)
        if end is None:
            raise self.unclosed(opened)
        return end

    def array(self, start: int, name: str) -> Token:
        """`NAME=( words )`."""
        self.at += 1
        elements = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            character = self.text[self.at]
            if character in " \t\r\n":
                self.at += 1
            elif character == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif character == "\\" and self.newline_at(self.at + 1):
                self.at += 1 + self.newline_at(self.at + 1)
            elif character in ";|&(<>":
                self.at += 1
            else:
                elements.append(self.word())
                self.within_limit(len(elements) + len(self.tokens))
        if self.at >= len(self.text):
            raise self.unclosed(start)
        self.at += 1
        return Token("array", start, self.at, name, elements=tuple(elements))

    def redirect(self, match: re.Match[str]) -> Token | None:
        """A redirection with its target, or the announcement of a here-document."""
        start = match.start()
        self.at = match.end()
        operator = match.group().lstrip("0123456789")
        if operator in {"<", ">"} and self.text.startswith("(", self.at):
            self.at = self.closing(self.at + 1, "(", ")", start)
            return Token("word", start, self.at, parts=(Part(self.text[start : self.at], start, False, True),))
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        if self.at >= len(self.text) or self.text[self.at] in "\r\n;|)":
            return None
        if self.text[self.at] in "&(<>":
            return None
        target = self.word()
        if operator in {"<<", "<<-"}:
            delimiter = "".join(part.text for part in target.parts)
            self.waiting.append((delimiter, operator == "<<-", any(part.quoted for part in target.parts)))
            return None
        return Token("redirect", start, self.at, operator, target.parts)

    def bodies(self) -> None:
        """The here-documents that were announced on the line that just ended, as tokens before its end."""
        for delimiter, tabs, literal in self.waiting:
            begun = self.at
            end = stop = len(self.text)
            line = begun
            while line < len(self.text):
                newline = self.text.find("\n", line)
                line_end = len(self.text) if newline < 0 else newline
                content = self.text[line:line_end].rstrip("\r")
                if (content.lstrip("\t") if tabs else content) == delimiter:
                    end, stop = line, min(line_end + 1, len(self.text))
                    break
                line = line_end + 1
            self.at = stop
            parts = (Part(self.text[begun:end], begun, True),) if literal else self.body_parts(begun, end)
            self.tokens.append(Token("heredoc", begun, end, delimiter, parts))
        self.waiting = []

    def body_parts(self, begun: int, end: int) -> tuple[Part, ...]:
        """Literal text and expansions of an unquoted here-document."""
        inner = Lexer(self.text[:end], begun) if "$" in self.text[begun:end] or "`" in self.text[begun:end] else None
        if inner is None:
            return (Part(self.text[begun:end], begun, True),)
        parts: list[Part] = []
        while inner.at < end:
            at = inner.at
            match = _DOCUMENT_SPECIAL.search(inner.text, at)
            stop = match.start() if match else end
            if stop > at:
                parts.append(Part(inner.text[at:stop], at, True))
            inner.at = stop
            if match is None:
                break
            if inner.text[stop] == "\\":
                parts.append(Part(inner.text[stop + 1 : stop + 2], stop + 1, True))
                inner.at = stop + 2
                continue
            try:
                parts.append(inner.expansion(True))
            except UnreadableText:
                parts.append(Part(inner.text[stop], stop, True))
                inner.at = stop + 1
        return tuple(parts)

    def unclosed(self, start: int) -> UnreadableText:
        """The error for something that is opened and never closed."""
        line = self.text.count("\n", 0, start) + 1
        return UnreadableText(f"{self.text[start : start + 2].strip()} is opened here and never closed", line)


_SPECIAL = re.compile(r'["\\$`]')
_DOCUMENT_SPECIAL = re.compile(r"\\[\\$`]|[$`]")


def after_closing(text: str, at: int, opener: str, closer: str) -> int | None:
    """The position after the bracket that closes the one before `at`; None where the text ends first."""
    depth = 1
    while at < len(text):
        character = text[at]
        if character == "\\":
            at += 1
        elif character == "'" and opener == "(":
            end = text.find("'", at + 1)
            if end < 0:
                return None
            at = end
        elif character == opener:
            depth += 1
        elif character == closer:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return None


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "e": "\x1b"}


def ansi_quoted(text: str, at: int) -> tuple[str, int] | None:
    """What stands between `at`, the first character inside the quotes, and the closing one, and the position after
    that; None where nothing closes them."""
    made = []
    while at < len(text) and text[at] != "'":
        if text[at] == "\\" and at + 1 < len(text):
            made.append(_ESCAPES.get(text[at + 1], "\\" + text[at + 1]))
            at += 2
        else:
            made.append(text[at])
            at += 1
    return ("".join(made), at + 1) if at < len(text) else None
