"""Two implementations, one behaviour: the same names, signatures, exceptions and reprs."""

import ast
import inspect

import pytest
from conftest import load

CLASSES = ["ActorSystem", "ActorCell", "BoundedNodeQueue", "StatusWord", "PriorityExecutor"]
pytestmark = pytest.mark.native_only


@pytest.fixture(scope="module")
def twins(runtime):
    return runtime, load("pure")


def public(cls):
    """The public names of a class, and those special methods that one of the twins defines itself."""
    special = {"__len__", "__bool__", "__repr__", "__iter__", "__contains__", "__enter__", "__exit__"}
    return {
        name
        for name in dir(cls)
        if not name.startswith("_")
        or (name in special and getattr(cls, name) is not getattr(object, name, None))
    }


def parameters(function):
    """(name, kind, has a default) of each parameter but self, as far as it can be seen."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a C method: Cython writes the signature into the first line of the docstring
        line = (function.__doc__ or "").partition("\n")[0]
        assert "(" in line, f"{function!r} does not tell its signature"
        source = line[line.index("(") :].partition("->")[0].strip()
        args = ast.parse(f"def f{source}: pass").body[0].args
        source = ast.unparse(args) if hasattr(ast, "unparse") else source
        plain = ast.parse(f"def f({source}): pass").body[0]
        for argument in ast.walk(plain):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        scope = {}
        exec(compile(ast.Module([plain], []), "signature", "exec"), _Names(scope))
        signature = inspect.signature(scope["f"])
    return [
        (p.name, p.kind, p.default is not p.empty) for p in signature.parameters.values() if p.name != "self"
    ]


class _Names(dict):
    """Globals in which every name has a value, for the defaults of a signature that is only read."""

    def __init__(self, scope):
        super().__init__()
        self.scope = scope

    def __setitem__(self, name, value):
        self.scope[name] = value

    def __missing__(self, name):
        return name


@pytest.mark.parametrize("name", CLASSES)
def test_public_names(twins, name):
    """The same classes with the same public names."""
    native, pure = (getattr(twin, name) for twin in twins)
    assert public(native) == public(pure)


@pytest.mark.parametrize("name", CLASSES)
def test_signatures(twins, name):
    """The same parameters: names, order, kinds, which have defaults."""
    native, pure = (getattr(twin, name) for twin in twins)
    for attribute in sorted(public(pure)):
        one = inspect.getattr_static(pure, attribute)
        if inspect.isfunction(one) and not attribute.startswith("_"):
            assert parameters(getattr(native, attribute)) == parameters(one), attribute


@pytest.mark.parametrize("name", CLASSES)
def test_properties(twins, name):
    """What is an attribute here is one there, and is documented alike."""
    native, pure = (getattr(twin, name) for twin in twins)
    for attribute in sorted(public(pure)):
        if isinstance(inspect.getattr_static(pure, attribute), property):
            assert not callable(getattr(native, attribute)), attribute


@pytest.mark.parametrize("name", CLASSES)
def test_read_only_attributes(twins, name):
    """Neither lets itself be changed where the other does not."""
    for twin in twins:
        system = twin.ActorSystem(threads=1)
        objects = {
            "ActorSystem": system,
            "ActorCell": system.cell("a", print),
            "BoundedNodeQueue": twin.BoundedNodeQueue(1),
            "StatusWord": twin.StatusWord(),
            "PriorityExecutor": twin.PriorityExecutor(1),
        }
        for attribute in ("path", "value", "capacity", "threads", "processed", "total", "status"):
            if hasattr(type(objects[name]), attribute):
                with pytest.raises(AttributeError):
                    setattr(objects[name], attribute, 1)


def test_reprs(twins):
    """The same words."""
    texts = []
    for twin in twins:
        system = twin.ActorSystem("same", threads=1)
        cell = system.cell("a", print)
        cell.suspend()
        cell.dispatch(1)
        queue = twin.BoundedNodeQueue(2)
        queue.add(1)
        texts.append(
            [repr(x) for x in (system, cell, cell.status, queue, system.executor, system.dead_letters)]
        )
        system.shutdown(drain=False)
    assert texts[0] == texts[1]


def outcome(call):
    try:
        return repr(call())
    except Exception as error:  # noqa: BLE001 - which one is the question
        return type(error), str(error)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.BoundedNodeQueue(0),
        lambda t: t.BoundedNodeQueue("1"),
        lambda t: t.BoundedNodeQueue(True),
        lambda t: t.PriorityExecutor(0),
        lambda t: t.PriorityExecutor(1, "random"),
        lambda t: t.PriorityExecutor(1).execute(None),
        lambda t: t.ActorCell(None, "a", print),
        lambda t: t.ActorSystem(threads="x"),
        lambda t: t.ActorSystem(quota=0),
        lambda t: t.ActorSystem("s", threads=1).dispatch("a", 1),
        lambda t: t.ActorSystem("s", threads=1).cell("a", 1),
        lambda t: t.ActorSystem("s", threads=1).cell([], print),
        lambda t: t.ActorSystem("s", threads=1).cell("a", print, weight=0),
        lambda t: t.ActorSystem("s", threads=1).cell("a", print, capacity=0),
        lambda t: t.ActorSystem("s", threads=1, max_actors=1).shutdown(timeout=-1),
    ],
)
def test_errors(twins, call):
    """The same exceptions with the same words."""
    native, pure = (outcome(lambda twin=twin: call(twin)) for twin in twins)
    assert native == pure
    assert isinstance(native, tuple)


def test_errors_of_full_and_closed(twins):
    """MailboxFull, SystemFull and SystemClosed are the same classes, with the same words."""
    seen = []
    for twin in twins:
        system = twin.ActorSystem("s", threads=1, capacity=1, max_actors=1)
        cell = system.cell("a", print)
        cell.suspend()
        row = [outcome(lambda c=cell: c.dispatch_many([1, 2]))]
        row.append(outcome(lambda s=system: s.cell("b", print)))
        system.shutdown(drain=False)
        row.append(outcome(lambda c=cell: c.dispatch(1)))
        seen.append(row)
    assert seen[0] == seen[1]
    assert [kind.__name__ for kind, _ in seen[0]] == ["MailboxFull", "SystemFull", "SystemClosed"]


def test_docstrings(twins):
    """Every public method of the native twin is documented where the pure one is."""
    for name in CLASSES:
        native, pure = (getattr(twin, name) for twin in twins)
        for attribute in sorted(public(pure)):
            if not attribute.startswith("_") and inspect.getdoc(getattr(pure, attribute)):
                assert inspect.getdoc(getattr(native, attribute)), f"{name}.{attribute}"


def test_shared_types(twins):
    """Records and errors are shared, not doubled."""
    native, pure = twins
    assert issubclass(native.ActorSystem, pure.ActorSystem.__mro__[1])
    assert type(native.ActorSystem().stats()) is type(pure.ActorSystem().stats())
