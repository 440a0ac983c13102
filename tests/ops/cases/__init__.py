"""The rows: a file for each family of `wend.ops`."""

import importlib
import pkgutil

from wend.ir.op import NoGradient

FAMILIES = [
    importlib.import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__)
]
CASES = [case for family in FAMILIES for case in family.CASES]
DERIVED = [case for case in CASES if not isinstance(case.record.derivative, NoGradient)]
NAMED = {"argnames": "case", "ids": str}  # for `pytest.mark.parametrize`
