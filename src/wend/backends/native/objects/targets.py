"""The machines that object files are made for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

from llvmlite import binding

from wend.backends.native.target import host_cpu
from wend.backends.native.target.platform import Platform, host_features
from wend.base.errors import UnsupportedError, explain

# The levels of the x86-64 psABI, each with the extensions of those before it
_V2 = ("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
LEVELS: Mapping[str, tuple[str, ...]] = {
    "x86-64": (),
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": _V4,
}
_MACHINES = ("x86_64", "aarch64")  # 64 bits, little-endian


def target_platform(triple: str | None, cpu: str | None, *, has_blas: bool) -> Platform:
    """Return the platform of a triple and a processor.

    Args:
        triple: LLVM's name of a machine and its system; None for this machine.
        cpu: LLVM's name of a processor, `"native"` for this one; None for this one where the
            triple is that of this machine, else for any.
        has_blas: whether the program has BLAS and LAPACK.

    Raises:
        UnsupportedError: code is not generated for such a machine.
    """
    here = binding.get_default_triple()
    is_here = triple is None or triple == here
    triple = triple or here
    if triple.partition("-")[0] not in _MACHINES:
        what = f"there is no code for {triple}."
        raise UnsupportedError(explain(what, f"machines: {', '.join(_MACHINES)}"))
    if cpu == "native" or (cpu is None and is_here):
        if not is_here:
            what = f"the processor of {triple} is not this one."
            raise UnsupportedError(explain(what, cure="name it, as in --cpu x86-64-v3."))
        return Platform(triple, host_cpu.name(), host_features(), False, has_blas)
    if cpu is not None:
        _check_cpu(triple, cpu)
    features = frozenset(LEVELS.get(cpu or "", ()))
    return Platform(triple, cpu or "generic", features, False, has_blas)


def _check_cpu(triple: str, cpu: str) -> None:
    """Refuse a processor that LLVM does not know, or that has no code of 64 bits.

    LLVM ends the process for such names; so one of its own asks.
    """
    if cpu in LEVELS and triple.startswith("x86_64"):
        return
    command = [sys.executable, "-c", _ASK, triple, cpu]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    if asked.returncode != 0 or "not a recognized processor" in asked.stderr:
        what = f"{cpu!r:.40} is no processor of {triple}."
        cure = "give one of LLVM's names, such as x86-64-v3 or cortex-a72; or leave cpu out."
        raise UnsupportedError(explain(what, cure=cure))


_ASK = """
import sys
from llvmlite import binding
binding.initialize_all_targets()
binding.initialize_all_asmprinters()
machine = binding.Target.from_triple(sys.argv[1]).create_target_machine(cpu=sys.argv[2])
machine.emit_object(binding.parse_assembly("define void @f() { ret void }"))
"""


def machine_of(platform: Platform) -> object:
    """Return LLVM's machine of a platform, for code at any address.

    Raises:
        UnsupportedError: this LLVM has no such machine.
    """
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        target = binding.Target.from_triple(platform.triple)
    except RuntimeError as error:
        what = f"this LLVM makes no code for {platform.triple}: {error}"
        raise UnsupportedError(explain(what)) from None
    is_this = platform.cpu == host_cpu.name()
    features = host_cpu.features().flatten() if is_this else ""
    if platform.has("avx2"):
        features += ("," if features else "") + "+prefer-no-gather"
    return target.create_target_machine(
        cpu=platform.cpu, features=features, opt=3, reloc="pic", codemodel="default"
    )
