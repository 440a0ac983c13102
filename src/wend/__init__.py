"""wend: differentiable programs with real control flow.

Plain Python functions over NumPy arrays are recorded once as a graph in which a loop is one node,
differentiated to any order through data-dependent loops, and compiled.
"""

import typing as _typing

from wend.base.gc_pause import gc_paused as _gc_paused
from wend.base.gc_pause import tenure_objects as _tenure_objects

# The imported objects stay alive; garbage collections would take 15 % of the import time.
with _gc_paused():
    from wend import ir as ir
    from wend import numpy as numpy
    from wend import tree as tree
    from wend.backends import native as _native  # noqa: F401 - loads LLVM
    from wend.backends.protocol import check_backend as _check_backend
    from wend.base.config import config as config
    from wend.base.config import settings as _settings
    from wend.base.errors import RetraceWarning as RetraceWarning
    from wend.base.errors import SpillError as SpillError
    from wend.base.errors import TapeLimitError as TapeLimitError
    from wend.base.errors import WendError as WendError
    from wend.base.memory import Checkpoints as Checkpoints
    from wend.base.memory import Every as Every
    from wend.base.version import VERSION as _VERSION
    from wend.capture.convert import do_not_capture as do_not_capture
    from wend.capture.convert import source as source
    from wend.capture.stage.iterables import loop as loop
    from wend.capture.stage.iterables import unroll as unroll
    from wend.function.concrete import ConcreteFunction as ConcreteFunction
    from wend.function.derivatives.gradient import grad as grad
    from wend.function.derivatives.gradient import value_and_grad as value_and_grad
    from wend.function.derivatives.jacobian import hessian as hessian
    from wend.function.derivatives.jacobian import jacfwd as jacfwd
    from wend.function.derivatives.jacobian import jacrev as jacrev
    from wend.function.derivatives.jvp import jvp as jvp
    from wend.function.derivatives.linearize import linearize as linearize
    from wend.function.derivatives.vjp import vjp as vjp
    from wend.function.function import Function as Function
    from wend.function.function import function as function
    from wend.function.function import jit as jit
    from wend.function.host.numpy_function import numpy_function as numpy_function
    from wend.function.host.progress import progress as progress
    from wend.function.host.py_function import py_function as py_function
    from wend.function.mapping.vmap import vmap as vmap
    from wend.function.rules.checkpoint import checkpoint as checkpoint
    from wend.function.rules.custom_jvp import custom_jvp as custom_jvp
    from wend.function.rules.custom_vjp import custom_vjp as custom_vjp
    from wend.function.signature.spec import TensorSpec as TensorSpec
    from wend.numpy.elementwise import stop_gradient as stop_gradient
    from wend.tape.tape import GradientTape as GradientTape
    from wend.trace.control.branches import cond as cond
    from wend.trace.control.branches import switch as switch
    from wend.trace.control.loops import fori_loop as fori_loop
    from wend.trace.control.loops import while_loop as while_loop
    from wend.trace.control.scan import associative_scan as associative_scan
    from wend.trace.control.scan import map as map
    from wend.trace.control.scan import scan as scan
    from wend.trace.recording.is_tracing import is_tracing as is_tracing
    from wend.trace.recording.naming import name as name
    from wend.trace.recording.naming import name_scope as name_scope
    from wend.trace.state.effects import assert_ as assert_
    from wend.trace.state.effects import print as print
    from wend.trace.state.effects import raise_if as raise_if
    from wend.trace.state.variable import Variable as Variable
    from wend.tree.registry import register_pytree_node as register_pytree_node

    _tenure_objects()

__version__ = _VERSION

if _settings().backend == "jax":  # its arrays may be arguments of the first call
    _check_backend("jax")

if _typing.TYPE_CHECKING:
    from wend import debug as debug
    from wend import random as random
    from wend import sequence as sequence
    from wend.backends.dataflow.functionalize import functionalize as functionalize
    from wend.backends.dataflow.lower import lower as lower
    from wend.debug.profiling import profile as profile
    from wend.saving.load import load as load
    from wend.saving.save import save as save
    from wend.saving.variable_files import load_variables as load_variables
    from wend.saving.variable_files import save_variables as save_variables
else:
    _MODULES = {
        "functionalize": "wend.backends.dataflow.functionalize",
        "lower": "wend.backends.dataflow.lower",
        "profile": "wend.debug.profiling",
        "load": "wend.saving.load",
        "save": "wend.saving.save",
        "load_variables": "wend.saving.variable_files",
        "save_variables": "wend.saving.variable_files",
    }

    def __getattr__(name: str) -> object:
        # Imported on first use.
        from importlib import import_module

        if name in ("debug", "random", "sequence"):
            return import_module(f"wend.{name}")
        if name in _MODULES:
            return getattr(import_module(_MODULES[name]), name)
        raise AttributeError(f"module 'wend' has no attribute {name!r}")
