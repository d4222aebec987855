"""Modules that a framework's parser imports and does not need: each absent one is stood in for by an empty shell."""

import importlib.abc
import importlib.machinery
import sys
import types


class Shell(type):
    """A class that has every attribute, may be called, subclassed and used as a decorator."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Shell(name, (), {})

    def __call__(cls, *arguments, **_keywords):
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else cls

    def __or__(cls, _other):
        return cls

    __ror__ = __or__

    def __getitem__(cls, _key):
        return cls

    def __iter__(cls):
        return iter(())


class ShellModule(types.ModuleType):
    """A module that has every name."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Shell(name, (), {})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked last: for what nothing else found."""

    def __init__(self, kept):
        self.kept = kept

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.kept:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return ShellModule(spec.name)

    def exec_module(self, module):
        module.__path__ = []


def stand_in_for_all_but(*kept):
    """Install the shells. kept: packages whose absence is an error, the framework's own among them."""
    sys.meta_path.append(Finder({*kept, "_", "sitecustomize", "usercustomize", *sys.stdlib_module_names}))
