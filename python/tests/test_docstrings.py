"""Every public name is documented in one format: a sentence, arguments, what is returned, and an example that runs."""

import doctest
import importlib
import inspect
import re
import types

import pytest

MODULES = ("pal", "pal.torch", "pal.sklearn", "pal.datasets", "pal.plot", "pal.errors")

# Constants and modules, which have no docstring of their own.
PLAIN = {"pal.KINDS", "pal.__version__", "pal.errors", "pal.torch.LAYERS"}


def _public(module):
    content = importlib.import_module(module)
    names = getattr(content, "__all__", None)
    if names is None:
        names = [name for name, value in vars(content).items() if getattr(value, "__module__", "") == module]
    return {f"{module}.{name}": getattr(content, name) for name in names if not name.startswith("_")}


def _objects():
    found = {}
    for module in MODULES:
        try:
            found |= _public(module)
        except ModuleNotFoundError:
            # A library that only this module needs.
            continue
    return {name: value for name, value in found.items() if name not in PLAIN}


OBJECTS = _objects()


def _section(text, title):
    """The entries of a section of a docstring, by name: `name: text`, indented once."""
    found = re.search(rf"^{title}:\n((?:    .*\n?|\n)+)", text, re.MULTILINE)
    return re.findall(r"^    \*{0,2}(\w+):", found[1], re.MULTILINE) if found else None


def _parameters(value):
    parameters = inspect.signature(value).parameters.values()
    return [parameter.name for parameter in parameters if parameter.name not in ("self", "cls", "_instance")]


def _is_made_by_users(value):
    """Whether the constructor is a part of the interface: named tuples, exceptions and compiled classes are returned."""
    own = isinstance(vars(value).get("__init__"), types.FunctionType)
    return own and not issubclass(value, (tuple, BaseException)) and bool(_parameters(value.__init__))


def test_there_are_names():
    assert {"pal.Region", "pal.integrate", "pal.torch.SplineLayer", "pal.errors.ParseError"} <= set(OBJECTS)


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_names_are_documented_with_an_example(name):
    text = inspect.getdoc(OBJECTS[name]) or ""
    # Up to an empty line, which may be a formula's: the end of a sentence, or what announces a formula.
    opening = text.split("\n\n")[0].strip()
    assert opening[:1].isupper() or opening.startswith("`"), f"{name} has no sentence that says what it is"
    assert opening.endswith((".", ":", ",", ";")), f"the first sentence of {name} has no end"
    examples = doctest.DocTestParser().get_examples(text)
    run = [example for example in examples if not example.options.get(doctest.SKIP)]
    assert run, f"{name} has no example that runs"


@pytest.mark.parametrize("name", sorted(name for name, value in OBJECTS.items() if inspect.isfunction(value)))
def test_functions_name_their_arguments_and_what_they_return(name):
    function = OBJECTS[name]
    text = inspect.getdoc(function) or ""
    assert (_section(text, "Args") or []) == _parameters(function)
    returns_something = inspect.signature(function).return_annotation not in (None, "None", inspect.Signature.empty)
    assert bool(re.search(r"^Returns:\n    \S", text, re.MULTILINE)) == returns_something


@pytest.mark.parametrize("name", sorted(n for n, v in OBJECTS.items() if inspect.isclass(v) and _is_made_by_users(v)))
def test_classes_name_the_arguments_of_their_constructors(name):
    assert (_section(inspect.getdoc(OBJECTS[name]) or "", "Args") or []) == _parameters(OBJECTS[name].__init__)


@pytest.mark.parametrize("name", sorted(name for name, value in OBJECTS.items() if inspect.isclass(value)))
def test_methods_that_list_arguments_list_all_of_them(name):
    for method, value in vars(OBJECTS[name]).items():
        function = getattr(value, "__func__", value)
        if inspect.isfunction(function) and not method.startswith("_"):
            listed = _section(inspect.cleandoc(function.__doc__ or ""), "Args")
            assert listed is None or listed == _parameters(function), f"{name}.{method}"
