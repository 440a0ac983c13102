"""Wheels: a library with a Python module that calls it, for any Python with NumPy."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zipfile
from importlib import resources
from pathlib import Path

from wend.backends.native.target.platform import Platform
from wend.base.errors import UnsupportedError, explain
from wend.build.built import Built
from wend.build.linking import link_shared

VERSION = "0.1"
_GLIBC = re.compile(rb"\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)")
# What Linux calls the extensions that code may use and that not every x86-64 processor has
_CPUINFO = {
    **{f"sse4.{k}": f"sse4_{k}" for k in (1, 2)},
    "ssse3": "ssse3",
    "popcnt": "popcnt",
    "avx": "avx",
    "avx2": "avx2",
    "bmi2": "bmi2",
    "fma": "fma",
    "f16c": "f16c",
    "movbe": "movbe",
    "bmi": "bmi1",
    "lzcnt": "abm",
    **{f"avx512{x}": f"avx512{x}" for x in ("f", "bw", "cd", "dq", "vl")},
}


def make_wheel(
    built: Built, platform: Platform, out: Path, *, target: str | None = None, libraries: str = ""
) -> Path:
    """Link a library and write it as a wheel, whose functions take and return NumPy arrays.

    Args:
        built: the object file and its functions.
        platform: the machine that it is made for.
        out: the folder of the wheel.
        target: the machine, if it is another than this one.
        libraries: further options of the linker.

    Raises:
        LinkError: it cannot be linked.
        UnsupportedError: the machine has no Linux.
    """
    if "linux" not in platform.triple:
        what = f"wheels are made for Linux, not for {platform.triple}."
        raise UnsupportedError(explain(what, cure="link the object file on that machine."))
    shared = out / f"lib{built.name}.so"
    link_shared([built.object], shared, target=target, libraries=libraries)
    machine = platform.triple.partition("-")[0]
    image = shared.read_bytes()
    tag = f"py3-none-{platform_tag(image, machine)}"
    needed = [_CPUINFO[name] for name in sorted(platform.features) if name in _CPUINFO]
    folder, info = built.name, f"{built.name}-{VERSION}.dist-info"
    members = {
        f"{folder}/__init__.py": _module(built, needed if platform.is_x86 else []).encode(),
        f"{folder}/caller.py": resources.files("wend.build").joinpath("caller.py").read_bytes(),
        f"{folder}/layout.json": json.dumps(built.layout, indent=1).encode(),
        f"{folder}/{shared.name}": image,
        f"{folder}/{built.name}.h": built.header.read_bytes(),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: {built.name}\nVersion: {VERSION}\nRequires-Dist: numpy\n"
        ).encode(),
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: wend\nRoot-Is-Purelib: false\nTag: {tag}\n"
        ).encode(),
    }
    record = "".join(f"{name},{_digest(data)},{len(data)}\n" for name, data in members.items())
    members[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    path = out / f"{built.name}-{VERSION}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in members.items():
            wheel.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return path


def platform_tag(image: bytes, machine: str) -> str:
    """Return the tag of the oldest glibc that has all versions of symbols that a library needs."""
    versions = [(int(a), int(b)) for a, b in _GLIBC.findall(image)]
    if not versions:
        return f"linux_{machine}"
    major, minor = max(*versions, (2, 17))
    return f"manylinux_{major}_{minor}_{machine}"


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"


def _module(built: Built, needed: list[str]) -> str:
    lines = [
        f'"""The functions of {built.name}.h."""',
        "",
        "import json",
        "import os",
        "",
        "from .caller import CLibrary",
        "from .caller import StateArrays",
        "",
        f"_needed = {needed!r}",
        "if _needed and os.path.exists('/proc/cpuinfo'):",
        "    with open('/proc/cpuinfo') as _file:",
        "        _flags = next((x for x in _file if x.startswith('flags')), '').split()",
        "    _missing = [x for x in _needed if x not in _flags]",
        "    if _missing:",
        "        raise ImportError(",
        f"            '{built.name} was built for a processor with ' + ', '.join(_missing)",
        "            + ', which this one lacks; build it again with --cpu x86-64'",
        "        )",
        "_folder = os.path.dirname(os.path.abspath(__file__))",
        "with open(os.path.join(_folder, 'layout.json')) as _file:",
        "    _layout = json.load(_file)",
        f"_path = os.path.join(_folder, 'lib{built.name}.so')",
        "_library = CLibrary(_path, _layout, lambda text: print(text, end=''))",
        "",
        "",
        "def State():",
        '    """Return the variables, with the values that they had when the library was built."""',
        "    return StateArrays(_library)",
    ]
    for function in built.layout["functions"]:
        names = [x["name"] for x in function["inputs"]]
        state = ["*", "state=None"] if function["state"] else []
        arguments = f"[{', '.join(names)}], {'state' if function['state'] else 'None'}"
        lines += [
            "",
            "",
            f"def {function['name']}({', '.join([*names, *state])}):",
            f"    return _library.call({function['name']!r}, {arguments})",
        ]
    return "\n".join(lines) + "\n"
