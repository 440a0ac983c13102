"""The list of published functions: its entries, their modules and their inputs."""

from __future__ import annotations

import ast
import collections
import collections.abc
import doctest
import importlib
import importlib.abc
import importlib.util
import inspect
import json
import linecache
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

MOST_CALLS = 3


@dataclass(frozen=True)
class Entry:
    """A function of a repository, and where its inputs come from.

    Attributes:
        repository: `owner/name`.
        path: the file, relative to the checkout.
        name: an expression that gives the function, in the module of the file.
        inputs: the arguments, as a Python text; or `doctest`, `runas` or `npbench` for the calls
            that the checkout itself has in that form.
    """

    repository: str
    path: str
    name: str
    inputs: str

    def __str__(self) -> str:
        return f"{self.repository}/{self.path}: {self.name}"


def read_list(path: Path) -> Iterator[Entry]:
    """Yield the entries of a list."""
    repository = file = ""
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("=== "):
            repository = line.split()[1]
        elif not line.startswith(" "):
            file = line
        else:
            name, _, inputs = line.strip().partition(" <- ")
            yield Entry(repository, file, name, inputs)


class _Missing(types.ModuleType):
    """A package that is not installed: its decorators leave functions as they are."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        part: Any = _Missing(name)
        if name == "prange":
            part = range
        elif name[0].isupper():
            part = type(name, (), {})
        setattr(self, name, part)
        return part

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        is_decorator = len(args) == 1 and inspect.isfunction(args[0]) and not kwargs
        return args[0] if is_decorator else self

    def __getitem__(self, item: Any) -> Any:
        return self


class _MissingFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    names = frozenset({
        "numba", "pandas", "torch", "tensorflow", "sklearn", "sympy", "skimage", "cv2", "PIL",
        "tqdm", "gym", "seaborn", "autograd", "requests", "autograd_gamma", "attr", "cvxpy",
        "casadi",
        "numexpr", "joblib", "ansitable", "pymanopt", "pyhsmm", "pybasicbayes", "bokeh", "psutil",
        "pandas_datareader", "theano", "graphviz", "transonic", "pythran", "omp", "xgboost",
        "imageio", "pytest", "keras", "cvxopt", "networkx", "nltk", "plotly", "colorlog",
        "h5py", "pylab_", "pydicom", "pooch", "progressbar", "terminaltables", "matplotlib",
        "six", "hmmlearn", "statsmodels", "bs4", "lxml", "future", "nose", "rich",
    })  # fmt: skip

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        package = name.partition(".")[0]
        if package not in self.names:
            return None
        others = (x for x in sys.meta_path if x is not self)
        if any(x.find_spec(package, None) for x in others):
            return None  # it is installed
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Missing(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


_NUMPY_BY_OTHER_NAMES = {
    "autograd.numpy": "numpy",
    "autograd.numpy.random": "numpy.random",
    "autograd.numpy.linalg": "numpy.linalg",
    "autograd.scipy": "scipy",
    "autograd.scipy.special": "scipy.special",
    "autograd.scipy.stats": "scipy.stats",
    "autograd.scipy.stats.norm": "scipy.stats",
    "autograd.scipy.stats.multivariate_normal": "scipy.stats",
}


def load(entry: Entry, folder: Path) -> tuple[types.ModuleType, Any]:
    """Import the file of an entry, and return its module and the function."""
    sys.meta_path.insert(0, _MissingFinder())
    for name, other in _NUMPY_BY_OTHER_NAMES.items():
        sys.modules[name] = importlib.import_module(other)
        parent, _, attribute = name.rpartition(".")
        if parent == "autograd":  # as `import autograd.numpy as np` reads it
            setattr(importlib.import_module(parent), attribute, sys.modules[name])
    for name in ("Hashable", "Iterable", "Mapping", "Sequence", "Callable"):  # their old place
        setattr(collections, name, getattr(collections.abc, name))
    checkout = folder / entry.repository.replace("/", "+")
    file = checkout / entry.path
    sys.path.insert(0, str(checkout))
    module = _import(file)
    for name in ("np", "numpy"):
        vars(module).setdefault(name, np)
    return module, _evaluated(entry.name, module)


def _import(file: Path) -> types.ModuleType:
    top = file.parent
    while (top / "__init__.py").exists():
        top = top.parent
    sys.path.insert(0, str(top))
    dotted = ".".join(file.relative_to(top).with_suffix("").parts)
    if all(part.isidentifier() for part in dotted.split(".")) and "." in dotted:
        try:
            return importlib.import_module(dotted)
        except Exception:  # noqa: BLE001 - its package needs what is not here; the file may not
            return _import_alone(dotted, top)
    spec = importlib.util.spec_from_file_location("real_" + file.stem.replace(" ", "_"), file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _import_alone(dotted: str, top: Path) -> types.ModuleType:
    """Import a module of a package without running the `__init__` of that."""
    names = dotted.split(".")
    for name in [x for x in sys.modules if x.split(".")[0] == names[0]]:
        del sys.modules[name]
    for k in range(1, len(names)):
        package = types.ModuleType(".".join(names[:k]))
        package.__path__ = [str(top.joinpath(*names[:k]))]
        sys.modules[package.__name__] = package
    return importlib.import_module(dotted)


def _evaluated(text: str, module: types.ModuleType) -> Any:
    filename = f"<{module.__name__}: {text}>"
    linecache.cache[filename] = (len(text), None, [text + "\n"], filename)
    return eval(compile(text, filename, "eval"), vars(module))


def calls_of(
    entry: Entry, folder: Path, module: types.ModuleType, function: Any
) -> list[tuple[Any, Any]]:
    """Return the arguments of up to three calls."""
    if entry.inputs == "doctest":
        texts = [e.source for e in doctest.DocTestParser().get_examples(function.__doc__ or "")]
        return _calls(texts, entry.name, module)
    if entry.inputs == "runas":
        source = Path(module.__file__ or "").read_text()
        return _calls(re.findall(r"#\s*runas (.*)", source), entry.name, module)
    if entry.inputs == "npbench":
        return _npbench_calls(entry, folder)
    namespace = dict(vars(module), np=np, rng=np.random.default_rng(0))
    calls = eval(f"[{entry.inputs}]", namespace)
    return [c if _is_pair(c) else (c, {}) for c in calls]


def _is_pair(call: Any) -> bool:
    return len(call) == 2 and isinstance(call[0], tuple) and isinstance(call[1], dict)


def _calls(texts: list[str], name: str, module: types.ModuleType) -> list[tuple[Any, Any]]:
    namespace, calls = dict(vars(module)), []
    for text in texts:
        try:
            *before, last = ast.parse(text.strip()).body
            filename = f"<example {len(linecache.cache)}>"
            lines = text.strip().splitlines(keepends=True)
            linecache.cache[filename] = (len(text), None, lines, filename)
            exec(compile(ast.Module(before, []), filename, "exec"), namespace)
        except Exception:  # noqa: BLE001 - not an example that can be run
            continue
        nodes = [n for n in ast.walk(last) if isinstance(n, ast.Call) and _calls_name(n, name)]
        try:
            if not nodes:
                exec(compile(ast.Module([last], []), filename, "exec"), namespace)
                continue
            name_of_it = ast.copy_location(ast.Name("_arguments", ast.Load()), nodes[0].func)
            call = ast.copy_location(
                ast.Call(name_of_it, nodes[0].args, nodes[0].keywords), nodes[0]
            )
            taken = {**namespace, "_arguments": lambda *a, **k: (a, k)}
            args, kwargs = eval(compile(ast.Expression(call), filename, "eval"), taken)
        except Exception:  # noqa: BLE001
            continue
        if all(map(_is_numeric, [*args, *kwargs.values()])):
            calls.append((args, kwargs))
        if len(calls) == MOST_CALLS:
            break
    return calls


def _calls_name(node: ast.Call, name: str) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == name


def _is_numeric(value: Any) -> bool:
    """Whether a value is made of numbers and arrays of them, or is a function or an option."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_numeric, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufc"
    return value is None or isinstance(value, (int, float, complex, np.generic)) or callable(value)


def _npbench_calls(entry: Entry, folder: Path) -> list[tuple[Any, Any]]:
    checkout = folder / entry.repository.replace("/", "+")
    file = checkout / entry.path
    for info in sorted((checkout / "bench_info").glob("*.json")):
        spec = json.loads(info.read_text())["benchmark"]
        name = file.stem.removesuffix("_numpy")
        if spec["module_name"] == name and file.parent.as_posix().endswith(spec["relative_path"]):
            values = dict(spec["parameters"]["S"])
            if spec.get("init"):
                start = _import(file.with_name(name + ".py"))
                inputs = [values[a] for a in spec["init"]["input_args"]]
                outputs = getattr(start, spec["init"]["func_name"])(*inputs)
                outputs = outputs if isinstance(outputs, tuple) else (outputs,)
                values |= dict(zip(spec["init"]["output_args"], outputs, strict=True))
            return [(tuple(values[a] for a in spec["input_args"]), {})]
    return []
