"""The model of a TRL program is what its trainer gets: a name, what the program loads, or a default in the file."""

from pathlib import Path

import pytest
from packaging.version import Version
from reading import source_of

from rlaudit.configs.dialects.declared import declared
from rlaudit.unknown import Unknown

NAME = "Qwen/Qwen3-30B-A3B"
HEAD = """
parser.add_argument("-m", "--model-name", default="Qwen/Qwen3-30B-A3B")
MODEL = os.environ.get("MODEL", "Qwen/Qwen3-30B-A3B")
tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen3-8B")
options = GRPOConfig(use_vllm=True, vllm_mode="colocate")
"""


@pytest.mark.parametrize(
    ("trainer", "model", "taken"),
    [
        (f"GRPOTrainer(model='{NAME}', args=options)", NAME, ""),
        (f"GRPOTrainer('{NAME}', args=options)", NAME, ""),
        (f"class Own(GRPOTrainer): pass\nOwn(model='{NAME}')", NAME, ""),
        ("GRPOTrainer(model=MODEL)", NAME, "MODEL is taken at its default"),
        (f"GRPOTrainer(model=os.getenv('M') or '{NAME}')", NAME, "M is taken at its default"),
        (
            "args = parser.parse_args()\nGRPOTrainer(model=args.model_name)",
            NAME,
            "--model-name is taken at its default",
        ),
        (f"model = AutoModelForCausalLM.from_pretrained('{NAME}')\nGRPOTrainer(model=model)", NAME, ""),
        ("model = peft(AutoModel.from_pretrained(MODEL))\nGRPOTrainer(model=model)", NAME, "MODEL is taken"),
        ("GRPOTrainer(model=args.other)", None, ""),
        ("GRPOTrainer(model=f'{MODEL}-x')", None, ""),
        ("a = M.from_pretrained('a/b')\nGRPOTrainer(model=build())", None, ""),
        ("Model.from_pretrained('a/b')\nModel.from_pretrained('c/d')\nGRPOTrainer(model=build())", None, ""),
        ("GRPOTrainer(model='a/b')\nGRPOTrainer(model='c/d')", None, ""),
    ],
)
def test_the_model_is_read_from_where_the_trainer_gets_it(
    trainer: str, model: str | None, taken: str, tmp_path: Path
) -> None:
    source = source_of(HEAD + trainer + "\n", str(tmp_path / "train.py"))
    (config,) = declared()["trl"].read(source, Version("0.20.0"))
    assert config.model is not None
    assert (None if isinstance(config.model.value, Unknown) else config.model.value) == model
    assert any(line.startswith(taken) for line in config.not_seen) if taken else True


def test_a_config_without_its_trainer_names_no_model(tmp_path: Path) -> None:
    (config,) = declared()["trl"].read(source_of(HEAD, str(tmp_path / "train.py")), Version("0.20.0"))
    assert config.model is None
