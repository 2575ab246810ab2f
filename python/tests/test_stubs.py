"""The stub file says what the compiled module has: the same classes, methods, properties, parameters and defaults."""

import ast
import inspect
from pathlib import Path

import pal
from pal import _core

STUB = Path(pal.__file__).with_name("_core.pyi")

# Slots that every object has, or that exist only because another one does.
IMPLIED = {
    "__doc__", "__module__", "__new__", "__hash__", "__repr__", "__reduce__", "__copy__", "__deepcopy__",
    "__array_ufunc__", "__rpow__", "__rtruediv__", "__eq__", "__ne__", "__le__", "__lt__", "__ge__", "__gt__",
    "__bool__",
}  # fmt: skip


def parameters(signature: str | None) -> list[tuple[str, bool]]:
    """Names, and whether there is a default."""
    if signature is None:
        return []
    inner = signature.strip("()")
    names = [part.strip() for part in inner.split(",") if part.strip()]
    return [(name.split("=")[0], "=" in name) for name in names if name not in ("$self", "$type", "/")]


def declared(function: ast.FunctionDef) -> list[tuple[str, bool]]:
    names = [argument.arg for argument in function.args.args]
    first_default = len(names) - len(function.args.defaults)
    pairs = [(name, at >= first_default) for at, name in enumerate(names)]
    return [pair for pair in pairs if pair[0] != "self"]


def test_stub_and_module_agree():
    tree = ast.parse(STUB.read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    public = {name: value for name, value in vars(_core).items() if not name.startswith("_")}
    assert set(classes) == {name for name, value in public.items() if inspect.isclass(value)}
    assert set(functions) == {name for name, value in public.items() if not inspect.isclass(value)}
    for name, node in functions.items():
        assert declared(node) == parameters(public[name].__text_signature__), name
    for name, node in classes.items():
        compiled = {key: value for key, value in vars(public[name]).items() if key not in IMPLIED and key != "_read"}
        stub = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
        if "__init__" in stub:
            assert declared(stub.pop("__init__")) == parameters(public[name].__text_signature__), name
        assert {key for key in stub if key not in IMPLIED} == set(compiled), name
        for key, value in compiled.items():
            is_property = any(getattr(d, "id", "") == "property" for d in stub[key].decorator_list)
            attribute = inspect.isgetsetdescriptor(value) or inspect.ismemberdescriptor(value)
            assert is_property == attribute, f"{name}.{key}"
            if not is_property and not key.startswith("__"):
                function = getattr(value, "__func__", value)
                assert declared(stub[key]) == parameters(function.__text_signature__), f"{name}.{key}"


def test_the_compiled_module_has_no_defaults():
    text = [value.__text_signature__ for value in vars(_core).values() if callable(value)]
    for value in vars(_core).values():
        if inspect.isclass(value):
            functions = [getattr(item, "__func__", item) for item in vars(value).values()]
            text += [getattr(function, "__text_signature__", None) for function in functions]
    own = [signature for signature in text if signature and "$module" not in signature]
    assert len(own) > 50 and not [signature for signature in own if "=" in signature.replace("mod=None", "")]


def test_the_package_is_marked_as_typed():
    assert STUB.with_name("py.typed").exists()
