"""One traced signature of a function, with its graphs and executables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from wend.autodiff.forward_backward import ForwardBackward
from wend.backends.compiled_graph import CompiledGraph
from wend.base.config import settings
from wend.base.errors import SaveError, explain, listed
from wend.base.lazy.cached_property import cached_property
from wend.base.source import at
from wend.function.forward_run import Run, start
from wend.function.pruning import prune_graph
from wend.function.report import Explanation, costs, memory
from wend.function.signature.binding import Binding
from wend.function.signature.signature import Arguments
from wend.function.signature.trace_inputs import TraceInputs
from wend.ir.graph import Graph, Node
from wend.ir.types import is_differentiable
from wend.ops.effects import host_action
from wend.ops.hosting import HOST_CALLS
from wend.passes.pipeline import CANONICALIZE, run_passes
from wend.trace.aliasing.passed_containers import CallerContainers
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording, current
from wend.trace.state.variable import Variable
from wend.trace.traced import Traced

T = TypeVar("T")


class ConcreteFunction:
    """A function traced for one signature.

    Attributes:
        name: the name of the function.
        graph: the recorded graph. `print(concrete.graph)` shows it.
        captured_inputs: the arrays and variables that it captures, by reference.
        structured_outputs: its results, with types in place of arrays.
        structured_input_signature: its (args, kwargs), with types in place of arrays.
        inputs: its abstract arguments.
        owner: what keeps its variables, if it was loaded from a file.
        first_call: what the first call runs in its place, if that call initializes objects.

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
        compiled: CompiledGraph | None = None,
    ) -> None:
        self.name = name
        self.traced = traced
        self.backend = backend
        self.first_call: ConcreteFunction | None = None
        self.owner: Any = None
        self.compiled = compiled or CompiledGraph(
            run_passes(traced.graph, CANONICALIZE), traced.graph
        )
        self.input_types = arguments.types
        self.input_names = arguments.names()
        self.inputs = TraceInputs(name, arguments, binding)
        self.structured_outputs = traced.rebuild(traced.result_types)

    def for_call(self) -> ConcreteFunction:
        """Return what a call runs: once that of the first call, then this."""
        first, self.first_call = self.first_call, None
        return self if first is None else first

    @property
    def graph(self) -> Graph:
        return self.compiled.graph

    @property
    def structured_input_signature(self) -> Any:
        return self.inputs.structured()

    def is_alive(self) -> bool:
        """Return whether the traced values that it captures belong to open recordings."""
        recording = current()
        for binding in self.traced.captured:
            if isinstance(binding, Tracer):
                if recording is None or binding.read() is not binding:
                    return False
                ancestor: Recording | None = recording
                while ancestor is not None and ancestor is not binding.recording:
                    ancestor = ancestor.parent
                if ancestor is None or not ancestor.is_open:
                    return False
        return True

    @property
    def captured_inputs(self) -> tuple[Any, ...]:
        return self.traced.bindings

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that it reads or assigns to."""
        return tuple(x for x in self.traced.bindings if isinstance(x, Variable))

    @property
    def host_calls(self) -> tuple[str, ...]:
        """The Python functions that its graph calls, with their lines; those prevent saving.

        Example:
            >>> import wend
            >>> noted = wend.function(lambda x: wend.py_function(print, None, x))
            >>> noted.get_concrete_function(1.0).host_calls
            ('print at <doctest host_calls[1]>:1',)
        """
        calls = [(node, _host_callee(node)) for node in self.graph.walk()]
        return tuple(f"{callee.name}{at(node.source)}" for node, callee in calls if callee)

    def __copy__(self) -> ConcreteFunction:
        return self  # a trace never changes

    def __deepcopy__(self, memo: Any) -> ConcreteFunction:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the bytes of `wend.save`, with the values of the variables.

        Raises:
            SaveError: it calls Python functions, which are named.
        """
        if calls := self.host_calls:
            raise SaveError(
                explain(
                    f"{self.name} cannot be saved, for its graph calls Python: {listed(calls)}",
                    cure="save the function itself, which is traced anew where it is loaded; or "
                    "let wend's operations compute what Python does there.",
                )
            )
        from wend.saving.pickled import reduce_concrete  # which imports this module

        return reduce_concrete(self)

    def explain(self) -> Explanation:
        """Return a text on what its runs so far keep in memory and leave to Python.

        There is a line for each record that loops keep, for the backward pass or in lists of the
        program; for each operation that compiled code leaves to Python; and for the memory that
        is held for the next call. The text is empty before the first run.

        Example:
            >>> import math
            >>> import wend, wend.numpy as wnp
            >>> sum = wend.function(lambda x: math.fsum(x), backend="native")
            >>> run = sum.get_concrete_function(wend.TensorSpec((2,), float))
            >>> run(wnp.asarray([2.0, 1.0]))
            np.float64(3.0)
            >>> run.explain()
            runs in Python: fsum at <doctest explain[2]>:1
        """
        return Explanation("\n".join([*self.costs(), *memory(self.compiled.executables())]))

    def costs(self) -> list[str]:
        """Return the lines of `explain` on what compiled runs keep, fuse and leave to Python."""
        return costs(self.compiled.optimized_graphs(), self.compiled.executables())

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run this trace, and no other, on arguments of its types.

        Values that are part of the trace, such as static arguments, may be omitted.

        Raises:
            TypeMismatchError: an argument does not have the type, or the value, that it was traced
                for.

        Example:
            >>> import wend
            >>> fun = wend.function(lambda x, n: x + n, static_argnames="n")
            >>> concrete = fun.get_concrete_function(wend.TensorSpec([]), 2.0)
            >>> concrete(5.0)
            np.float64(7.0)
        """
        arrays = self.inputs.bind(args, kwargs).arrays
        recording = current()
        if recording is not None:
            return self.traced.call_in(recording, arrays, self.backend)
        return self.run(self.backend or settings().backend, arrays)

    def prune(self, feeds: Any, fetches: Any) -> ConcreteFunction:
        """Return the part of this function that computes some values from others, as a function.

        Values are referred to by name: arguments (`"x"`, `"state['h']"`), results (`"result"`,
        `"result['loss']"`), names given by `wend.name`, and the numbers of the printed graph
        (`"%3"`). They may also be values of `graph`. Captured variables stay captured unless they
        are fed.

        Args:
            feeds: the inputs, each a value or a pytree of values that becomes one argument.
            fetches: a pytree of the values to return. It may contain effects (a node of `graph`,
                or a `Variable` that is assigned to), in whose place None is returned. Effects that
                are neither fetched nor needed are dropped.

        Raises:
            ValueError: there is no such value, or one depends on an argument that is not fed.

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
        pruned = prune_graph(self, feeds, fetches)
        return ConcreteFunction(
            pruned.traced.graph.name, pruned.traced, pruned.arguments, pruned.binding, self.backend
        )

    def forward(self, /, *args: Any, **kwargs: Any) -> tuple[Any, Run]:
        """Run the forward graph; return the function's value and a run for `backward`.

        Each run owns its residuals, so several runs before one backward pass do not interfere.

        Example:
            >>> import wend
            >>> square = wend.function(lambda x: x * x).get_concrete_function(3.0)
            >>> value, run = square.forward(3.0)
            >>> square.backward(run, 1.0)
            (np.float64(6.0),)
        """
        return start(self, self.inputs.bind(args, kwargs))

    def backward(self, run: Run, cotangent: Any, *, captures: bool = False) -> tuple[Any, ...]:
        """Run the backward graph on one run of the forward graph.

        Args:
            run: the run, from `forward`.
            cotangent: a pytree like the function's value, with None for results without a
                cotangent; what only those need does not run.
            captures: whether to return cotangents of the captures, too.

        Returns:
            A cotangent for each positional argument, then with `captures` one for each of
            `captured_inputs`; None where the given cotangents do not reach.

        Raises:
            TypeError: `run` belongs to another function.
        """
        if not isinstance(run, Run) or run.concrete is not self:
            raise TypeError(f"{self.name}.backward takes a run of its own forward, not {run!r}")
        return run.pull_back(cotangent, captures)

    def run(
        self,
        backend: str,
        arrays: Sequence[Any],
        caller: Callable[[], CallerContainers] | None = None,
    ) -> Any:
        """Run on the array leaves of the arguments; see `Traced.run`."""
        execute, boundary, _ = self.compiled.entry(backend)
        return self.traced.run(execute, arrays, boundary, caller)

    @property
    def forward_graph(self) -> Graph:
        """The graph that `forward` runs: it returns the function's results, then the residuals.

        Like `backward_graph`, it is built at first use.

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
        """The graph that `backward` runs if all float results have cotangents.

        It takes the residuals and the cotangents, and returns the cotangents of the arguments
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
        return self.forms.backward(self.forms.seeded, len(self.input_types)).graph

    @cached_property
    def forms(self) -> ForwardBackward:
        """The forward graph, and a backward graph for every choice of cotangents."""
        wrt = [k for k, type in enumerate(self.graph.param_types) if is_differentiable(type)]
        seeded = [
            k for k, leaf in enumerate(self.traced.result_types) if is_differentiable(leaf.type)
        ]
        return self.compiled.forward_backward(wrt, seeded)

    def _repr_html_(self) -> str:
        """Return the picture of its graph for notebooks."""
        return self.graph._repr_html_()

    def __repr__(self) -> str:
        return f"<concrete {self.name}({', '.join(map(str, self.input_types))})>"


def _host_callee(node: Node) -> Any:
    """Return what a node calls in Python, or None."""
    if node.op in HOST_CALLS:
        return node.attrs["function"]
    return node.attrs["action"] if node.op is host_action else None
