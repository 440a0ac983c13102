"""wend: differentiable programs with real control flow.

Plain Python functions over NumPy arrays, recorded once as a graph in which a loop is one node,
differentiated to any order through data-dependent loops, and compiled.
"""

from wend import ir as ir
from wend import numpy as numpy
from wend.base.config import config as config
from wend.base.errors import WendError as WendError
from wend.capture.convert import do_not_capture as do_not_capture
from wend.capture.convert import source as source
from wend.capture.iterables import unroll as unroll
from wend.function.concrete import ConcreteFunction as ConcreteFunction
from wend.function.function import Function as Function
from wend.function.function import function as function
from wend.function.function import jit as jit
from wend.function.gradients import grad as grad
from wend.function.gradients import value_and_grad as value_and_grad
from wend.function.gradients import vjp as vjp
from wend.function.spec import TensorSpec as TensorSpec
from wend.numpy.elementwise import stop_gradient as stop_gradient
from wend.trace.control import cond as cond
from wend.trace.control import fori_loop as fori_loop
from wend.trace.control import switch as switch
from wend.trace.control import while_loop as while_loop
from wend.trace.effects import assert_ as assert_
from wend.trace.effects import print as print
from wend.trace.scan import map as map
from wend.trace.scan import scan as scan
from wend.trace.tape import GradientTape as GradientTape
from wend.trace.variable import Variable as Variable

__version__ = "0.1.0"
