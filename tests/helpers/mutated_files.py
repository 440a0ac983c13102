"""Files of `wend.save` with damage, and what loading and calling them does, in a process apart."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import wend
import wend.numpy as wnp
from wend.base.errors import LoadError
from wend.ir.types import Symbol

SECONDS = 10  # for one file
MEMORY = 6 << 30


class Fitted:
    """An object with variables, a list, and methods."""

    def __init__(self) -> None:
        self.w, self.count = wend.Variable(np.ones(3)), wend.Variable(0)
        self.scales = [np.arange(3.0), {"k": 2.0}]

    @wend.function
    def step(self, x: Any) -> Any:
        assert x.shape == (3,)
        for _ in range(3):
            if wnp.sum(x) > 1.0:
                x = x * self.w - self.scales[0]
            else:
                x = wnp.exp(x)
        self.count.assign_add(1)
        return {"x": x, "loss": wnp.sum(x * x), "state": ("fitted", {1, 2})}


def _samples() -> Iterator[bytes]:
    """Yield files that hold loops, lists, rules, effects, linear algebra and objects."""

    @wend.function
    def root(a: Any) -> Any:
        x = a
        while np.abs(x * x - a) > 1e-12 * a:
            x = 0.5 * (x + a / x)
        return x

    @wend.custom_vjp
    def clipped(x: Any) -> Any:
        return wnp.clip(x, -1.0, 1.0)

    clipped.defvjp(lambda x: (clipped(x), x), lambda x, ct: (ct * (x > 0.0),))

    @wend.function
    def arrays(x: Any, n: Any) -> Any:
        out = []
        for k in range(n):
            out.append(clipped(x[k] * x[::-1][k]))
        y = wnp.stack(out)
        x[1] = wnp.sort(x)[0]
        z = wnp.concatenate([x[1:], y.reshape(-1)]).cumsum()
        if z[0] < 0.0:
            raise ValueError(f"negative: {z[0]:.3f}")
        print("sum", z.sum())
        return wnp.where(z > 1.0, z, wnp.linalg.solve(wnp.eye(2), wnp.ones(2))[0]), y.argmax()

    rng = wend.random.Generator(0)

    @wend.function
    def many(x, m, k):
        a = wnp.sort(x)[wnp.argsort(x)] + wnp.take_along_axis(x, wnp.argsort(-x), 0)
        a = a + wnp.cumprod(x)[::-1] + wnp.pad(x[1:-1], 1) + wnp.roll(x, 2)
        b = wnp.fft.irfft(wnp.fft.rfft(x)) + wnp.real(wnp.fft.ifft(wnp.fft.fft(x)))
        c = wnp.linalg.svd(m)[1].sum() + wnp.linalg.det(m) + wnp.linalg.qr(m)[1].sum()
        s = m @ m.T + wnp.eye(4)
        d = wnp.linalg.eigh(s)[0].sum() + wnp.linalg.cholesky(s).trace() + wnp.linalg.pinv(m).sum()
        e = wnp.searchsorted(wnp.sort(x), x, side="right") + wnp.isin(k, k[:2]).sum()
        m[k[0] % 4, 1:] = x[1:4]
        m[1:3, ::2] += x[:2, None]
        f = wnp.einsum("ij,jk->ik", m, m)[k[:3] % 4].sum(axis=1) + wnp.convolve(x, x[:3]).max()
        g = wnp.split(x, [2, 5])[1].prod() + wnp.bincount(k % 4, minlength=4).sum()
        h = rng.normal(size=3).sum() + wnp.nonzero(x > 0.0)[0].sum() + wnp.special.i0(x).sum()
        return a + b, c + d, e, f, g + h, wnp.argmax(m, axis=1), m.reshape(2, -1).T

    arrays.get_concrete_function(wend.TensorSpec([None]), 3)
    root(2.0)
    fitted = Fitted()
    fitted.step(np.ones(3))
    for value in (
        {"root": root, "slope": _called(wend.value_and_grad(root), 2.0)},
        {"arrays": arrays},
        {"many": _called(many, np.linspace(-1.0, 2.0, 8), np.eye(4) + 0.1, np.arange(8))},
        {"mapped": _called(wend.vmap(wend.grad(root)), np.array([2.0, 3.0]))},
        {"second": _called(wend.grad(wend.grad(root)), 2.0)},
        {"fitted": fitted},
    ):
        file = io.BytesIO()
        wend.save(file, value)
        yield file.getvalue()


def _called(fun: wend.Function, *args: Any) -> wend.Function:
    fun(*args)
    return fun


def samples() -> list[bytes]:
    """The files that are damaged."""
    with contextlib.redirect_stdout(io.StringIO()):
        return [*_samples()]


# Damage
def mutated(data: bytes, rng: random.Random) -> bytes:
    """A file with some damage; digests are those of the damaged members in half of the files."""
    if rng.random() < 0.15:
        return rng.choice(_OF_BYTES)(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        name = rng.choice([*members])
        members[name] = _damaged(name, members[name], rng)
    if rng.random() < 0.85:
        with contextlib.suppress(ValueError, AttributeError, TypeError, RecursionError):
            manifest = json.loads(members["manifest.json"])
            manifest["members"] = {
                name: hashlib.sha256(contents).hexdigest() for name, contents in members.items()
            }
            members["manifest.json"] = json.dumps(manifest).encode()
    return _zipped(members, rng)


def _zipped(members: dict[str, bytes], rng: random.Random) -> bytes:
    buffer = io.BytesIO()
    trick = rng.random()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w") as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, contents in members.items():
            if trick < 0.02:
                name = rng.choice(["../" + name, "/etc/" + name, name + "\0x", name.upper()])
            kind = zipfile.ZIP_DEFLATED if trick > 0.98 else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(name), contents, kind)
            if 0.02 < trick < 0.03:
                archive.writestr(zipfile.ZipInfo(name), contents)
    return buffer.getvalue()


def _flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 8])):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _cut(data: bytes, rng: random.Random) -> bytes:
    start, stop = sorted(rng.randrange(len(data)) for _ in "ab")
    return rng.choice([data[:start], data[:start] + data[stop:], data + data[start:stop]])


_OF_BYTES = (_flipped, _cut)


def _damaged(name: str, data: bytes, rng: random.Random) -> bytes:
    if not data or rng.random() < 0.03:
        return rng.choice(_OF_BYTES)(data or b"x", rng)
    if name.endswith(".json"):
        return _damaged_json(data, rng)
    if name.endswith(".npy"):
        header = data[:128].decode("latin-1")
        return rng.choice(
            [
                lambda: _flipped(data, rng),
                lambda: _swapped(header, rng).encode("latin-1") + data[128:],
                lambda: data[: rng.randrange(len(data))],
            ]
        )()
    return _damaged_text(data.decode("utf-8", "replace"), rng).encode("utf-8", "replace")


_NUMBERS = ["0", "1", "-1", "2", "3", "7", "100000", "4294967296", "-9223372036854775808", "1e300"]
_NUMBER = re.compile(r"(?<![\w.])-?\d+(\.\d+)?(e[+-]?\d+)?")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TYPE = re.compile(r"\b[a-z]+\d*\[[^\]]*\]")


def _swapped(text: str, rng: random.Random) -> str:
    """A text with a number, a word or a type put in place of another."""
    pattern = rng.choice([_NUMBER, _WORD, _TYPE])
    places = [*pattern.finditer(text)]
    if not places:
        return text
    place = rng.choice(places)
    words = [match[0] for match in places]
    if pattern is _NUMBER:
        words += _NUMBERS
    elif pattern is _WORD:
        words += [*rng.sample(_OPS, 4), "nan", "None", "True"]
    else:
        words += [
            "f64[]",
            "f64[3]",
            "i64[]",
            "bool[]",
            "f64[n0]",
            "list<f64[]>",
            "c128[2]",
            "token",
        ]
    return text[: place.start()] + rng.choice(words) + text[place.end() :]


_OPS = [*wend.ir.TABLE]


def _damaged_text(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    kind = rng.random()
    if kind < 0.7:
        return _swapped(text, rng)
    k, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    if kind < 0.8:
        del lines[k]
    elif kind < 0.9:
        lines[k], lines[j] = lines[j], lines[k]
    elif kind < 0.97:
        lines.insert(k, lines[j])
    else:
        deep = rng.choice(["(" * 3000, "list<" * 3000, "f64[" + "1," * 3000])
        lines[k] = lines[k].replace("=", "=" + deep, 1)
    return "\n".join(lines)


def _damaged_json(data: bytes, rng: random.Random) -> bytes:
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError):
        return data
    places: list[tuple[Any, Any]] = []

    def collect(part: Any) -> None:
        for key in [*part] if isinstance(part, dict) else range(len(part)):
            places.append((part, key))
            if isinstance(part[key], (dict, list)):
                collect(part[key])

    collect(manifest)
    holder, key = rng.choice(places)
    _, other = rng.choice(places)
    new = [None, True, -1, 0, 1, 10**30, "x", "", [], {}, [[]], {"tuple": []}, 1.5]
    options: list[Callable[[], Any]] = [
        lambda: rng.choice(new),
        lambda: holder[key] + 1 if type(holder[key]) is int else rng.choice(new),
        lambda: [holder[key]],
        lambda: copy.deepcopy(other),
    ]
    holder[key] = rng.choice(options)()
    text = json.dumps(manifest)
    deep = "[" * 3000 + "]" * 3000
    return (text.replace('"x"', deep) if rng.random() < 0.1 else text).encode()


# What happens
def outcome(data: bytes, backend: str) -> str:
    """What a file does when it is loaded and all that it holds is called."""
    try:
        loaded = wend.load(io.BytesIO(data))
    except LoadError:
        return "refused"
    functions = [fun for fun in _functions(loaded, set()) if fun is not None]
    for fun in functions:
        for concrete in fun.concrete_functions():
            wend.ir.verify(concrete.graph)
            with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                concrete.run(backend, [_example(type) for type in concrete.input_types])
    return "called" if functions else "loaded"


def _functions(value: Any, seen: set[int]) -> Iterator[wend.Function]:
    if id(value) in seen:
        return
    seen.add(id(value))
    for leaf in wend.tree.leaves(value):
        if isinstance(leaf, wend.Function):
            yield leaf
        elif type(leaf).__name__ == "LoadedObject":
            yield from _functions({k: v for k, v in vars(leaf).items() if k[0] != "_"}, seen)


def _example(leaf: Any) -> Any:
    if leaf.variable is not None:
        return wend.Variable(np.ones(leaf.type.dims, leaf.type.dtype))
    shape = [3 if isinstance(dim, Symbol) else min(dim, 64) for dim in leaf.type.shape or (3,)]
    return np.full(shape, 2, leaf.type.dtype)[()]


class _TooSlowError(BaseException):
    pass


def _stop(*_: Any) -> None:
    raise _TooSlowError


def _work(files: list[bytes], seeds: range, backend: str, log: Path) -> None:
    """Damage a file for each seed and note what happens, in a process of limited memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, _stop)
    warnings.simplefilter("ignore")
    with log.open("a", encoding="utf-8", buffering=1) as notes:
        for seed in seeds:
            rng = random.Random(seed)
            data = mutated(files[seed % len(files)], rng)
            notes.write(f"{seed} ")
            signal.alarm(SECONDS)
            try:
                what = outcome(data, backend)
            except (_TooSlowError, MemoryError, RecursionError) as error:
                what = type(error).__name__
            except Exception as error:
                what = f"ERROR {type(error).__name__}: {error!s:.200}".replace("\n", " ")
            finally:
                signal.alarm(0)
            notes.write(f"{what}\n")
    os._exit(0)


def search(seeds: range, backend: str, log: Path) -> dict[str, int]:
    """What happened to the files of all seeds, counted; crashes are named by their seed."""
    files = samples()
    log.write_text("", encoding="utf-8")
    start, counts = seeds.start, {}
    while start < seeds.stop:
        process = multiprocessing.get_context("fork").Process(
            target=_work, args=(files, range(start, seeds.stop), backend, log)
        )
        process.start()
        seen = start
        while process.is_alive():
            process.join(3 * SECONDS)
            last = _last(log, start)
            if process.is_alive() and last == seen:
                process.kill()
            seen = last
        if process.exitcode == 0:
            break
        last = _last(log, start)
        with log.open("a", encoding="utf-8") as notes:
            notes.write(f"CRASH {process.exitcode}\n")
        start = last + 1
    for line in log.read_text(encoding="utf-8").splitlines():
        seed, _, what = line.partition(" ")
        is_bad = what.startswith(("ERROR", "CRASH"))
        key = f"{seed}: {what}" if is_bad else what
        counts[key] = counts.get(key, 0) + 1
    return counts


def _last(log: Path, start: int) -> int:
    """The last seed that was begun."""
    lines = log.read_text(encoding="utf-8").splitlines()
    seeds = [line.partition(" ")[0] for line in lines]
    return int(seeds[-1]) if seeds and seeds[-1].isdecimal() else start


if __name__ == "__main__":
    first, last, name, path = sys.argv[1:]
    for key, count in search(range(int(first), int(last)), name, Path(path)).items():
        print(count, key)
