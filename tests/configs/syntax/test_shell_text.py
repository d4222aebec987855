import pytest

from rlaudit.configs.syntax.shell_command import TakenDefault
from rlaudit.configs.syntax.shell_text import Command, commands
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.unknown import Unknown


def words(text: str) -> list[object]:
    return [word.value for word in commands(text, "run.sh")[-1].words]


def unknown(text: str) -> str:
    found = [word.value for word in commands(text, "run.sh")[-1].words if isinstance(word.value, Unknown)]
    assert found, text
    return found[0].reason


def of(text: str, name: str) -> Command:
    return next(command for command in commands(text, "run.sh") if command.words[0].value == name)


def test_quotes_escapes_continuations_and_comments_are_those_of_a_shell() -> None:
    text = "serve 'a b' \"c $D\" e\\ f --x='{\"k\": 1}' $'t\\tab' \\\n  g#h # comment\n"
    assert words("D=d\n" + text) == ["serve", "a b", "c d", "e f", '--x={"k": 1}', "t\tab", "g#h"]


def test_every_word_stands_where_its_place_says() -> None:
    text = "A=1\r\nserve --flag 'two words' \\\r\n  --more=$A\r\n"
    for word in commands(text, "run.sh")[-1].words:
        assert text[word.place.start : word.place.end] == word.text
    last = commands(text, "run.sh")[-1].words[-1]
    assert (last.place.line, last.place.column, last.value) == (3, 3, "--more=1")


@pytest.mark.parametrize(
    ("script", "last"),
    [
        ("A=2\nserve $A", ["2"]),
        ("A='x y'\nserve $A \"$A\"", ["x", "y", "x y"]),
        ("A=(a 'b c')\nA+=(d)\nserve \"${A[@]}\" ${A[0]} x${A[1]}", ["a", "b c", "d", "a", "xb", "c"]),
        ("serve ${TP:-8} ${TP-9} \"${X:-a b}\"", ["8", "9", "a b"]),
        ("A=\nserve ${A:-8} ${A-9} end", ["8", "end"]),
        ("A=1\nserve ${A:+--flag} ${B:+--no}", ["--flag"]),
        ("A=1\nB=${A}2\nserve $B", ["12"]),
        ("A=$NOWHERE\nA=3\nserve $A", ["3"]),
        ("A=2\nB=${B:-3}\nserve $((A * (${B} + $A) - 7 / 2)) x$(( A ))", ["7", "x2"]),
    ],
)  # fmt: skip
def test_variables_arrays_and_defaults_are_resolved_where_the_file_tells(script: str, last: list[str]) -> None:
    assert words(script) == ["serve", *last]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("serve $TP", "TP is set nowhere"),
        ('serve "$@"', "the arguments that the script"),
        ('set -- --x 1\nserve "$@"', "the arguments that the script"),
        ("serve $1", "argument 1"),
        ("serve $(date)", "output of a command"),
        ("serve $((N+1))", "arithmetic"),
        ("serve $((1/0))", "arithmetic"),
        ("A=1\nif x; then A=2; fi\nserve $A", "under a condition in line 2"),
        ("A=1\n[ -n x ] && A=2\nserve $A", "under a condition in line 2"),
        ("A=1\npython3 -c 'import x' && A=2\nserve $A", "under a condition in line 2"),
        ("A=1\nx || A=2\nserve $A", "under a condition"),
        ("for A in 1 2; do serve $A; done", "several values"),
        ("case x in\n a) A=1 ;;\n *) A=2 ;;\nesac\nserve $A", "under a condition"),
        ("f() { A=1; }\nserve $A", "condition"),
        ("serve ${A%x}", "not evaluated"),
        ("serve --model <your_model> --x 1", "<your_model> is left to fill in"),
        ("serve --x 1 --model <org/model>", "<org/model> is left to fill in"),
        ("read A\nserve $A", "read from input"),
    ],
)  # fmt: skip
def test_what_the_file_does_not_tell_is_unknown_with_the_reason(script: str, reason: str) -> None:
    assert reason in unknown(script)


@pytest.mark.parametrize("text", ["serve x <in >out\n", "serve x <in>out\n", "serve x < in > out\n", "serve x <<< y\n"])
def test_redirections_are_no_words_of_the_command(text: str) -> None:
    assert words(text) == ["serve", "x"]


def test_inside_its_branch_a_variable_is_known_and_a_subshell_leaves_nothing_behind() -> None:
    text = "if x; then A=1; serve $A; else A=2; other $A; fi\n(B=3; third $B)\nfourth ${B:-none}\n"
    assert of(text, "serve").words[1].value == "1"
    assert of(text, "other").words[1].value == "2"
    assert of(text, "third").words[1].value == "3"
    assert of(text, "fourth").words[1].value == "none"


def test_an_array_that_only_grows_under_a_condition_keeps_what_is_certain() -> None:
    command = commands('A=(--x 1)\nif c; then A+=(--y); fi\nserve "${A[@]}"\n', "run.sh")[-1]
    assert [word.value for word in command.words[:3]] == ["serve", "--x", "1"]
    assert isinstance(command.words[3].value, Unknown)


def test_words_of_an_array_and_flags_of_a_string_stand_where_they_are_written() -> None:
    text = "A=(--x 1)\nB='--y 2'\nserve \"${A[@]}\" $B --z $C\n"
    places = {str(word.value): word.place.line for word in commands(text, "run.sh")[-1].words}
    assert (places["--x"], places["1"], places["--y"], places["2"], places["--z"]) == (1, 1, 2, 2, 3)


def test_exports_and_prefixes_are_in_force_and_plain_assignments_are_not() -> None:
    text = "export A=1 B='2 3'\nC=4\nD=5 serve x\nunset A\nserve y\n"
    first, second = (command for command in commands(text, "run.sh") if command.words[0].value == "serve")
    assert {name: node.value for name, node in first.variables.items()} == {"A": "1", "B": "2 3", "D": "5"}
    assert set(second.variables) == {"B"}


def test_a_default_that_the_environment_may_change_is_said() -> None:
    (command,) = commands("TP=${TP:-8}\nserve -tp $TP\n", "run.sh")
    assert command.assumed == ("TP is taken at its default 8",)
    assert [one.variable for one in command.assumed if isinstance(one, TakenDefault)] == ["TP"]
    (command,) = commands("serve ${1:-x} ${EXTRA:-} $((${N:=2} + 1))\n", "run.sh")
    assert command.assumed == ("argument 1 is taken at its default x", "EXTRA is taken as empty, its default")


def test_the_number_of_an_arithmetic_expansion_rests_on_the_defaults_of_its_variables() -> None:
    (command,) = commands("A=${A:-1}\nserve $((A + 1))\n", "run.sh")
    assert command.words[1].value == "2" and command.assumed == ("A is taken at its default 1",)


def test_scripts_inside_scripts_are_read_at_their_places() -> None:
    text = "M=m\nbash -c \"serve $M --x 1\"\nssh host 'serve n'\nsbatch --wrap='serve o'\n"
    found = [command for command in commands(text, "run.sh") if command.words[0].value == "serve"]
    assert [command.words[1].value for command in found] == ["m", "n", "o"]
    assert all(command.nested for command in found)
    flag = found[0].words[2]
    assert text[flag.place.start : flag.place.end] == "--x"


def test_a_script_that_holds_variables_of_the_job_is_read_and_they_are_unknown_in_it() -> None:
    script = 'head=$(hostname)\nsrun bash -lc "ready && serve m --seed $SEED --host ${head} --port 8"\n'
    served = next(one for one in commands(script, "run.sh") if one.words[0].value == "serve")
    assert [isinstance(word.value, Unknown) for word in served.words] == [False] * 3 + [True, False, True, False, False]
    assert script[served.words[-1].place.start : served.words[-1].place.end] == "8"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("bash <<EOF\nserve m\nEOF\n", 1),
        ("A=1 sbatch <<'EOF'\nserve m\nEOF\n", 1),
        ("ssh host bash -s <<EOF\nserve m\nEOF\n", 1),
        ("x\ncat <<EOF | sbatch\nserve m\nEOF\n", 2),
        ("x\necho 'serve m' | bash\n", 2),
    ],
)
def test_text_that_a_shell_gets_is_named_with_its_line_and_not_read(text: str, line: int) -> None:
    refused: list[UnreadableText] = []
    read = commands(text, "run.sh", damaged=refused.append)
    assert not [one for one in read if one.words[0].value == "serve"]
    (unread,) = refused
    assert "is not read" in str(unread) and unread.line == line
    with pytest.raises(UnreadableText):
        commands(text, "run.sh")


@pytest.mark.parametrize(
    "text",
    [
        "cat <<EOF\nserve m\nEOF\nbash\n",
        "echo 'serve m' > file; bash\n",
        "echo 'serve m' | grep x | bash\n",
        "echo 'serve m' | kubectl apply -f -\n",
    ],
)
def test_text_that_no_shell_gets_is_no_script(text: str) -> None:
    assert not [one for one in commands(text, "run.sh", damaged=lambda _error: None) if one.words[0].value == "serve"]


def test_pipes_and_redirections_are_no_words() -> None:
    text = "nohup serve x --y 1 > log.txt 2>&1 &\nserve z 2> e | tee f\n"
    found = [[word.value for word in command.words] for command in commands(text, "run.sh")]
    assert found == [["serve", "x", "--y", "1"], ["serve", "z"], ["tee", "f"]]


@pytest.mark.parametrize(
    ("text", "line"), [("a\nserve 'x", 2), ('serve "x', 1), ("serve $(x", 1), ("A=(1 2", 1), ("a\0b", 1)]
)
def test_a_damaged_script_is_refused_with_a_line(text: str, line: int) -> None:
    with pytest.raises(UnreadableText) as refusal:
        commands(text, "run.sh")
    assert refusal.value.line == line


@pytest.mark.parametrize(
    ("damaged", "line"),
    [
        ('before $A\nserve "$A" --x \'c\n', 2),
        ('before $A\nserve "$A" --x $(c\n', 2),
        ("before $A\nserve --x 1)\nafter\n", 2),
        ("before $A\nif x; then\n  serve 'c\n", 3),
        ("before $A\nB=(1 2\nserve m\n", 2),
    ],
)
def test_of_a_damaged_script_the_whole_commands_are_read_and_the_damaged_one_is_not(damaged: str, line: int) -> None:
    refused: list[UnreadableText] = []
    found = commands(f"A=1\n{damaged}", "run.sh", damaged=refused.append)
    names = [command.words[0].value for command in found]
    assert [word.value for word in found[0].words] == ["before", "1"] and "serve" not in names
    assert len(refused) == 1 and refused[0].line == line + 1


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_places_are_characters_in_any_alphabet(end: str) -> None:
    text = end.join(
        ("# \u00e9\u00e9 \U0001f600", "A='\u00fc b'", 'serve "$A" --x=\u4e2d\u6587 \\', "  --y <your/model>", "")
    )
    command = commands(text, "run.sh")[-1]
    assert [word.value for word in command.words[:4]] == ["serve", "\u00fc b", "--x=\u4e2d\u6587", "--y"]
    assert [text[word.place.start : word.place.end] for word in command.words] == [word.text for word in command.words]
    assert isinstance(command.words[4].value, Unknown)


@pytest.mark.parametrize(
    ("script", "last"),
    [
        ("D=/d\nP=p\nE=e\nX=$D/c/$P/$E\nserve $X x=$D/c/$P/$E", ["/d/c/p/e", "x=/d/c/p/e"]),
        ("P=p\nexport X=a/$P/b/$P/d\nserve $X", ["a/p/b/p/d"]),
        ('P=p\nA=($P\\ ,c \\ )\nserve "${A[@]}"', ["p ,c", " "]),
        ("serve -f - <<EOF\nx\nEOF", ["-f", "-"]),
        ("serve a > log --b 2>&1 --c", ["a", "--b", "--c"]),
        ("X=1\n((X += 1))\nserve x", ["x"]),
    ],
)
def test_words_that_the_grammar_cuts_up_or_drops_are_whole(script: str, last: list[str]) -> None:
    assert words(script) == ["serve", *last]


def test_what_arithmetic_changes_is_unknown() -> None:
    assert "arithmetic" in unknown("X=1\n((X += 1))\nserve $X")


@pytest.mark.parametrize("text", ["serve {}\n", 'serve "{}"\n', "A={}\nserve $A\n"])
def test_a_word_of_very_many_expansions_is_not_evaluated(text: str) -> None:
    (command,) = commands("B=b\n" + text.format("$B" * 1001), "run.sh")
    word = command.words[-1].value
    assert isinstance(word, Unknown) and "1000 expansions" in word.reason
    (command,) = commands("B=b\n" + text.format("$B" * 1000), "run.sh")
    assert command.words[-1].value == "b" * 1000


@pytest.mark.parametrize(
    "text",
    [
        "A=xx\n" + "A=$A$A\n" * 60 + "serve $A\n",
        'A=(x)\n' + 'A=("${A[@]}" "${A[@]}")\n' * 60 + 'serve "${A[@]}"\n',
        "serve " + "${A:-" * 50 + "x" + "}" * 50,
        "(" * 5000 + "serve",
        "A='" + "x " * 5000 + "'\n" + "serve $A\n" * 1000,
        "serve x\n" * 50_000,
        "A=(" * 20_000,
        "if x; then A=1\n" * 2_000,
        "a && " * 20_000 + "b",
        "a=$a/b/$c/d\n" * 6_000 + "serve $a",
    ],
)  # fmt: skip
def test_explosions_end_in_unknown_or_in_a_refusal(text: str) -> None:
    try:
        found = commands(text, "run.sh")
    except UnreadableText as refusal:
        assert str(refusal)
    else:
        assert sum(len(str(word.value)) for command in found for word in command.words) < 2_000_000


def test_an_unknown_word_of_an_array_keeps_its_own_text_and_place() -> None:
    text = 'A=(\n  --n $N\n  key=$K\n)\nserve "${A[@]}"\n'
    words_ = commands(text, "run.sh")[-1].words
    assert [word.text for word in words_] == ["serve", "--n", "$N", "key=$K"]
    assert [word.place.line for word in words_] == [5, 2, 2, 3]


def test_a_command_that_is_printed_or_handed_to_a_program_as_data_is_not_run() -> None:
    text = 'A=(serve m)\necho "${A[@]}"\nprintf "%q " "${A[@]}"\npython - "${A[@]}" <<E\n1\nE\npython -c 1 "${A[@]}"\n'
    assert [[word.value for word in command.words] for command in commands(text, "run.sh")] == [
        ["python", "-"],
        ["python", "-c", "1"],
    ]


def test_a_script_inside_a_command_sees_exports_and_what_the_command_sets_at_their_places() -> None:
    text = "# \nexport A=1 F='--x 9' P=0\nP=4 srun --export=ALL,C=3 bash -c 'D=5\nserve $A $C $D $F $P'\n"
    command = of(text, "serve")
    assert [word.value for word in command.words] == ["serve", "1", "3", "5", "--x", "9", "4"]
    places = {name: (node.value, node.place.line, text[node.place.start]) for name, node in command.variables.items()}
    assert places == {"A": ("1", 2, "1"), "C": ("3", 3, "-"), "F": ("--x 9", 2, "'"), "P": ("4", 3, "4")}
    flag = command.words[4].place
    assert text[flag.start : flag.end] == "--x"


def test_eval_reads_its_words_a_second_time_with_all_variables_of_the_script() -> None:
    text = "N=1\nB='--y 2'\nC=\"serve $B --q='\\\"a b\\\"' \\$N ${T:-3} $U | tee log\"\n"
    text += "eval ${C} --x\neval \"$C\"\neval 'serve $N'\n"
    found = [command for command in commands(text, "run.sh") if command.words[0].value == "serve"]
    spelt = [[word.value if isinstance(word.value, str) else "?" for word in command.words] for command in found]
    read = ["serve", "--y", "2", '--q="a b"', "1", "3", "?"]
    assert spelt == [read, read, ["serve", "1"]]
    assert [command.assumed for command in found] == [("T is taken at its default 3",)] * 2 + [()]
    assert text[found[0].words[1].place.start : found[0].words[1].place.end] == "--y"


def test_an_eval_that_cannot_be_read_again_is_a_command_of_its_own() -> None:
    assert [command.words[0].value for command in commands('eval "serve \'x"', "run.sh")] == ["eval"]


def test_what_the_arguments_of_the_script_may_change_is_open() -> None:
    loop = 'while [ $# -gt 0 ]; do\n  case "$1" in\n    --a) A="$2"; shift 2 ;;\n  esac\ndone\n'
    assert "A is set under a condition in line 2" in unknown(f"A=1\n{loop}serve $A")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('A=1\necho "vllm serve $A" | bash\n', [2]),
        ("cat job.sh | sh -s\n", [1]),
        ("bash -c 'echo vllm | bash'\n", [1]),
        ("curl -LsSf https://example.org/install.sh | sh\n", []),
        ("echo y | bash setup.sh\n", []),
        ("echo y | tee log\n", []),
    ],
)
def test_a_script_that_is_piped_into_a_shell_is_passed_over_and_named(text: str, lines: list[int]) -> None:
    unread: list[UnreadableText] = []
    commands(text, "run.sh", damaged=unread.append)
    assert [one.line for one in unread] == lines
