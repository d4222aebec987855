from extract_catalogue.fields import choices, nested, origin
from extract_catalogue.flags import flags, flags_of_fields
from extract_catalogue.modules import Tree
from vllm_sources import module_of, tree_of

CONFIG = """
    from typing import Literal, Optional
    import enum
    Dtype = Literal["auto", "half"]

    class Format(enum.Enum):
        AUTO = "auto"
        DUMMY = "dummy"

    class PassConfig:
        fuse: bool = False

    class CompilationConfig:
        level: int = 3
        pass_config: PassConfig = field(default_factory=PassConfig)
        off: PassConfig | None = None

    class ModelConfig:
        eager: bool = False
        maybe: Optional[bool] = None
        token: bool | str | None = None
        dtype: Dtype = "auto"
        cache: Optional[Literal["fp8"]] = None
        open: Literal["a"] | str = "a"
        format: Format = Format.AUTO
        seed: int = 0
        compilation_config: CompilationConfig = field(default_factory=CompilationConfig)
"""
ARGUMENTS = """
    from vllm.config import ModelConfig

    class EngineArgs:
        seed: int = ModelConfig.seed

        @staticmethod
        def add_cli_args(parser):
            model_kwargs = get_kwargs(ModelConfig)
            eager_kwargs = model_kwargs["eager"]
            group = parser.add_argument_group()
            group.add_argument("--tensor-parallel-size", "-tp", type=int)
            group.add_argument("--enforce-eager", **eager_kwargs)
            group.add_argument("--maybe", **model_kwargs["maybe"])
            group.add_argument("--hf-token", dest="token", **model_kwargs["token"])
            group.add_argument("--seed", **{**model_kwargs["seed"], "default": None})
            group.add_argument("--enable-x", action="store_true")
            group.add_argument("--log", action=argparse.BooleanOptionalAction)
            group.add_argument("--policy", choices=["fcfs", "priority"])
            group.add_argument("model_tag")
            guided = [("--guided-a", str), ("--guided-b", str)]
            for flag, kind in guided:
                group.add_argument(flag, type=kind)
"""


def argument_flags(tree: Tree) -> dict[str, str]:
    module = module_of(tree, "engine/arg_utils")
    cls = tree.find_class("EngineArgs", module)
    assert cls is not None
    method = tree.method("add_cli_args", *cls)
    assert method is not None
    return {name: flag.sets for flag in flags(tree, *method) for name in flag.names()}


TREE = tree_of(config=CONFIG, engine__arg_utils=ARGUMENTS)


def test_every_spelling_of_a_flag_leads_to_what_it_sets() -> None:
    found = argument_flags(TREE)
    assert (found["tensor-parallel-size"], found["tp"]) == ("tensor_parallel_size", "tensor_parallel_size")
    assert found["hf-token"] == "token"
    assert (found["guided-a"], found["guided-b"]) == ("guided_a", "guided_b")
    assert "model_tag" not in found


def test_only_flags_that_vllm_makes_in_pairs_can_be_negated() -> None:
    negated = {name for name in argument_flags(TREE) if name.startswith("no-")}
    assert negated == {"no-enforce-eager", "no-maybe", "no-log"}


def test_fields_of_a_front_end_become_flags_with_dashes() -> None:
    found = TREE.find_class("ModelConfig", module_of(TREE, "config"))
    assert found is not None
    names = {name for flag in flags_of_fields(TREE, TREE.fields(*found)) for name in flag.names()}
    assert {"eager", "no-eager", "compilation-config", "token"} <= names
    assert "no-token" not in names


def test_words_come_from_literals_and_enumerations_unless_any_text_is_taken() -> None:
    found = TREE.find_class("ModelConfig", module_of(TREE, "config"))
    assert found is not None
    fields = TREE.fields(*found)
    assert choices(TREE, fields["dtype"]) == ["auto", "half"]
    assert choices(TREE, fields["cache"]) == ["fp8"]
    assert choices(TREE, fields["format"]) == ["auto", "dummy"]
    assert choices(TREE, fields["open"]) == []
    assert choices(TREE, fields["seed"]) == []


def test_listed_choices_belong_to_their_flag() -> None:
    module = module_of(TREE, "engine/arg_utils")
    cls = TREE.find_class("EngineArgs", module)
    assert cls is not None
    method = TREE.method("add_cli_args", *cls)
    assert method is not None
    assert {flag.sets: flag.choices for flag in flags(TREE, *method)}["policy"] == ("fcfs", "priority")


def test_a_default_is_traced_to_the_line_that_holds_it() -> None:
    found = TREE.find_class("EngineArgs", module_of(TREE, "engine/arg_utils"))
    assert found is not None
    seed = origin(TREE, TREE.fields(*found)["seed"])
    path, line = seed.split(":")
    assert path == "vllm/config.py"
    assert TREE.read("vllm/config.py").splitlines()[int(line) - 1].strip() == "seed: int = 0"


def test_fields_inside_config_objects_are_found_where_the_object_is_there_by_default() -> None:
    found = TREE.find_class("ModelConfig", module_of(TREE, "config"))
    assert found is not None
    rows = nested(TREE, *found)
    assert rows["compilation_config.level"][0] == 3
    assert rows["compilation_config.pass_config.fuse"][0] is False
    assert "compilation_config.off.fuse" not in rows
