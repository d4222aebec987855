"""Source trees of a few lines, as the extractor reads them."""

from textwrap import dedent

from extract_catalogue.modules import Module, Tree


def tree_of(**files: str) -> Tree:
    """`config="..."` becomes vllm/config.py; double underscores are folders."""
    texts = {f"vllm/{name.replace('__', '/')}.py": dedent(text) for name, text in files.items()}
    return Tree(frozenset(texts), texts.__getitem__)


def module_of(tree: Tree, path: str) -> Module:
    module = tree.module(f"vllm/{path}.py")
    assert module is not None
    return module
