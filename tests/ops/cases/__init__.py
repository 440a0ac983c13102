"""The rows: a file for each family of `wend.ops`."""

import importlib
import pkgutil

FAMILIES = [
    importlib.import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__)
]
CASES = [case for family in FAMILIES for case in family.CASES]
