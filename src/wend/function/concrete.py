"""One traced signature of a function, with its graphs and executables."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

from wend.autodiff.forward_backward import ForwardBackward
from wend.backends.compiled_graph import CompiledGraph
from wend.backends.protocol import choose
from wend.base import trees
from wend.base.config import settings
from wend.base.errors import explain, listed
from wend.base.source import at
from wend.function.forward_run import Run, start
from wend.function.pruning import part_between
from wend.function.report import Explanation, costs, memory
from wend.function.signature.binding import Binding
from wend.function.signature.signature import Arguments
from wend.function.signature.trace_inputs import TraceInputs
from wend.ir.graph import Graph
from wend.ir.types import is_differentiable
from wend.ops.hosting import HOST_CALLS
from wend.passes.pipeline import CANONICALIZE, run_passes
from wend.trace.recording.recording import current
from wend.trace.state.variable import Variable
from wend.trace.traced import Traced

T = TypeVar("T")


class ConcreteFunction:
    """A function traced for one signature.

    Attributes:
        name: the function's name.
        graph: what was recorded. `print(concrete.graph)` shows it.
        captured_inputs: the arrays that it captures, by reference.
        structured_outputs: its results, with their types in place of arrays.
        structured_input_signature: its (args, kwargs), with types in place of arrays.

    Example:
        >>> import wend
        >>> concrete = wend.function(lambda x, y: x + y).get_concrete_function(1.0, 2)
        >>> concrete
        <concrete <lambda>(f64[] (weak), i64[] (weak))>
        >>> concrete.graph.count("add")
        1
    """

    def __init__(
        self,
        name: str,
        traced: Traced,
        arguments: Arguments,
        binding: Binding,
        backend: str | None = None,
    ) -> None:
        self.name = name
        self.traced = traced
        self.backend = backend
        self.compiled = CompiledGraph(run_passes(traced.graph, CANONICALIZE))
        self.input_types = arguments.types
        self.input_names = arguments.names()
        self._inputs = TraceInputs(name, arguments, binding)
        self.structured_outputs = trees.unflatten(traced.result_tree, traced.result_types)

    @property
    def graph(self) -> Graph:
        return self.compiled.graph

    @property
    def structured_input_signature(self) -> Any:
        return self._inputs.structured()

    @property
    def captured_inputs(self) -> tuple[Any, ...]:
        return self.traced.bindings

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that it reads or assigns."""
        return tuple(x for x in self.traced.bindings if isinstance(x, Variable))

    @property
    def host_calls(self) -> tuple[str, ...]:
        """The Python functions that its graph calls, with their lines: what cannot be saved.

        Example:
            >>> import wend
            >>> noted = wend.function(lambda x: wend.py_function(print, None, x))
            >>> noted.get_concrete_function(1.0).host_calls
            ('print at <doctest host_calls[1]>:1',)
        """
        calls = [node for node in self.graph.walk() if node.op in HOST_CALLS]
        return tuple(f"{node.attrs['function'].name}{at(node.source)}" for node in calls)

    def __copy__(self) -> ConcreteFunction:
        return self  # a trace never changes

    def __deepcopy__(self, memo: Any) -> ConcreteFunction:
        return self

    def __reduce__(self) -> NoReturn:
        """Not possible yet; with calls of Python it never will be.

        Raises:
            TypeError: it calls functions of Python, which are named.
            NotImplementedError: it does not, and is waiting for saving to be built.
        """
        if calls := self.host_calls:
            raise TypeError(
                explain(
                    f"{self.name} cannot be saved, for its graph calls Python: {listed(calls)}",
                    cure="save the function itself, which is traced anew where it is loaded; or "
                    "let wend's operations compute what Python does there.",
                )
            )
        raise NotImplementedError("saving a concrete function is not built yet; save the function")

    def explain(self) -> Explanation:
        """What runs of it, so far, have kept and asked of Python.

        A line for each record that loops keep, for the backward pass or in lists of the program;
        for each operation that compiled code leaves to Python; and for the memory that waits for
        the next call. Empty before the first run.

        Example:
            >>> import wend, wend.numpy as wnp
            >>> det = wend.function(lambda x: wnp.linalg.det(x), backend="native")
            >>> run = det.get_concrete_function(wend.TensorSpec((1, 1), float))
            >>> run(wnp.asarray([[2.0]]))
            np.float64(2.0)
            >>> run.explain()
            runs in Python: det at <doctest explain[1]>:1
        """
        return Explanation("\n".join([*self.costs(), *memory(self.compiled.executables())]))

    def costs(self) -> list[str]:
        """Return the lines of `explain` on what compiled runs keep, fuse and ask of Python."""
        return costs(self.compiled.optimized_graphs(), self.compiled.executables())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run this trace, and no other, on arguments of its types.

        Values that are part of the trace, as static arguments are, may be left out.

        Raises:
            TypeMismatchError: an argument is not of the type, or not the value, that it was traced
                for.

        Example:
            >>> import wend
            >>> fun = wend.function(lambda x, n: x + n, static_argnames="n")
            >>> concrete = fun.get_concrete_function(wend.TensorSpec([]), 2.0)
            >>> concrete(5.0)
            np.float64(7.0)
        """
        arrays = self._inputs.bind(args, kwargs).arrays
        recording = current()
        if recording is not None:
            return self.traced.call_in(recording, arrays, self.backend)
        return self.run(self.backend or settings().backend, arrays)

    def prune(self, feeds: Any, fetches: Any) -> ConcreteFunction:
        """The part of this function that computes some values from others, as a function.

        Values are told by what they are called: arguments (`"x"`, `"state['h']"`), results
        (`"result"`, `"result['loss']"`), what `wend.name` has named, the numbers of the printed
        graph (`"%3"`); or they are values of `graph`. Captured variables stay captured, but for
        those that are fed.

        Args:
            feeds: the values that it takes, each or each pytree of them an argument.
            fetches: a pytree of what it returns. In the place of an effect (a node of `graph`, or
                a `Variable` that is assigned to) it returns None. Effects that are neither
                fetched nor on the way are dropped.

        Raises:
            ValueError: there is no such value; or one depends on an argument that is not fed.

        Example:
            >>> import wend, wend.numpy as wnp
            >>> @wend.function
            ... def model(x, w):
            ...     h = wend.name(wnp.tanh(x), "h")
            ...     return {"y": h * w, "norm": h * h}
            >>> concrete = model.get_concrete_function(0.5, 2.0)
            >>> encode, decode = concrete.prune("x", "h"), concrete.prune(["h", "w"], "result['y']")
            >>> decode(encode(0.0), 3.0), decode(h=2.0, w=3.0)
            (np.float64(0.0), np.float64(6.0))
        """
        part = part_between(self, feeds, fetches)
        name = part.traced.graph.name
        return ConcreteFunction(name, part.traced, part.arguments, part.binding, self.backend)

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Any, Run]:
        """Run the forward form: what the function returns, and what `backward` needs.

        Each run owns what it keeps, so that two runs before one backward do not mix.

        Example:
            >>> import wend
            >>> square = wend.function(lambda x: x * x).get_concrete_function(3.0)
            >>> value, run = square.forward(3.0)
            >>> square.backward(run, 1.0)
            (np.float64(6.0),)
        """
        return start(self, self._inputs.bind(args, kwargs))

    def backward(self, run: Run, cotangent: Any) -> tuple[Any, ...]:
        """Run the backward form on one run of the forward form.

        Args:
            run: from `forward`.
            cotangent: like what the function returns, None in the place of each result from which
                nothing comes: what only those would need does not run.

        Returns:
            A cotangent for each positional argument; None where no path leads to what is given.

        Raises:
            TypeError: `run` is of another function.
        """
        if not isinstance(run, Run) or run.concrete is not self:
            raise TypeError(f"{self.name}.backward takes a run of its own forward, not {run!r}")
        return run.pull_back(cotangent)

    def run(self, backend: str, arrays: Sequence[Any]) -> Any:
        """Run on the array leaves of the arguments."""
        boundary = choose(backend).boundary
        return self.traced.run(self.compiled.executable(backend), arrays, boundary)

    @property
    def forward_graph(self) -> Graph:
        """What `forward` runs: after the function's own results it gives what `backward` reads.

        Made when it is first asked for, as `backward_graph` is.

        Example:
            >>> import wend
            >>> square = wend.function(lambda x: x * x, name="square")
            >>> print(square.get_concrete_function(wend.TensorSpec([])).forward_graph)
            graph square(%0: f64[]) {
              %1: f64[] = mul(%0, %0)
              return %1, %0
            }
        """
        return self.forms.forward

    @property
    def backward_graph(self) -> Graph:
        """What `backward` runs where all results that are floats have cotangents.

        It takes what the forward form kept, then the cotangents; and gives those of the arguments
        that are connected.

        Example:
            >>> import wend
            >>> square = wend.function(lambda x: x * x, name="square")
            >>> print(square.get_concrete_function(wend.TensorSpec([])).backward_graph)
            graph square_backward(%0: f64[], %1: f64[]) {
              %2: f64[] = mul(%1, %0)
              %3: f64[] = mul(%1, %0)
              %4: f64[] = add(%2, %3)
              return %4
            }
        """
        return self.forms.backward(self.forms.seeded).graph

    @functools.cached_property
    def forms(self) -> ForwardBackward:
        """The forward form, and a backward form for every choice of cotangents."""
        results = self.traced.result_types
        wrt = [k for k, leaf in enumerate(self.input_types) if is_differentiable(leaf.type)]
        seeded = [k for k, leaf in enumerate(results) if is_differentiable(leaf.type)]
        return self.compiled.forward_backward(wrt, seeded)

    def _repr_html_(self) -> str:
        """What notebooks show: the picture of its graph."""
        return self.graph._repr_html_()

    def __repr__(self) -> str:
        types = ", ".join(map(str, self.input_types))
        return f"<concrete {self.name}({types})>"
