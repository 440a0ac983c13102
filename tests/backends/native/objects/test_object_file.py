"""Object files: what they export."""

from __future__ import annotations

import numpy as np
from llvmlite import binding

import wend
from wend.backends.native.objects.object_file import object_file
from wend.backends.native.objects.targets import target_platform
from wend.backends.native.target.platform import generating_for, platform, this_process
from wend.build.interfaces import interface_of


def test_all_but_the_functions_of_the_interface_is_hidden() -> None:
    def wave(x):
        return np.sin(x).sum()

    specs = [wend.TensorSpec([None])]
    interfaces = [
        interface_of(wend.function(fun).get_concrete_function(*specs), name, None, {}, {})
        for name, fun in (("first", wave), ("second", wend.grad(wave)))
    ]
    made = object_file(interfaces, target_platform(None, "x86-64", has_blas=True))
    module = binding.parse_assembly(made.text)
    visible = {f.name for f in module.functions if not f.is_declaration}
    visible -= {f.name for f in module.functions if f.linkage == binding.Linkage.internal}
    names = ("", "_workspace_init", "_workspace_release")
    assert visible == {f"{name}{suffix}" for name in ("first", "second") for suffix in names}
    assert made.workspaces.keys() == {"first", "second"}
    assert platform() is this_process()


def test_the_platform_is_that_of_the_block() -> None:
    other = target_platform("aarch64-linux-gnu", None, has_blas=False)
    with generating_for(other):
        assert platform() is other
        assert not platform().is_x86
    assert platform().is_process
