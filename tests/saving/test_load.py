"""Files are read, and what they must not hold is refused."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import io
import json
import zipfile
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.saved import again, is_same, saved
from wend.base.errors import LoadError, TypeMismatchError


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def packed(contents: dict[str, bytes], *, rehash: bool = True, **options: Any) -> io.BytesIO:
    contents = dict(contents)
    if rehash:
        manifest = json.loads(contents.pop("manifest.json"))
        manifest["members"] = {k: hashlib.sha256(v).hexdigest() for k, v in contents.items()}
        contents["manifest.json"] = json.dumps(manifest).encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    file.seek(0)
    return file


@pytest.fixture
def contents() -> dict[str, bytes]:
    @wend.function
    def power(x):
        y = x
        while wnp.sum(y) < 100.0:
            y = y * x
        return y * np.arange(3.0)

    power(np.full(3, 2.0))
    return members(saved(power=power))


def edited(contents: dict[str, bytes], old: str, new: str, name: str = "graphs/g0.txt") -> Any:
    text = contents[name].decode()
    assert old in text
    return packed({**contents, name: text.replace(old, new, 1).encode()})


def test_an_edited_file_is_refused_unless_it_is_asked_for(contents):
    text = contents["graphs/g0.txt"].replace(b"100.0", b"10.0")
    file = packed({**contents, "graphs/g0.txt": text}, rehash=False)
    with pytest.raises(LoadError, match=r"wend\.load\(path, verify=False\)"):
        wend.load(file)
    file.seek(0)
    loaded = wend.load(file, verify=False).power
    assert loaded(np.full(3, 2.0)).tolist() == [0.0, 4.0, 8.0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("= mul(", "= py_function(", "calls Python, which no file may"),
        ("= mul(", "= multiply(", "no operation called 'multiply'"),
        ("f64[3] = mul", "f64[4] = mul", "its shape rule gives f64"),
        ("{carry=1}", "{carry=7}", "carry is 7"),
        ("{carry=1}", "{carry=-1}", "carry is -1"),
        ("{carry=1}", "{carry=True}", "carry is True"),
        ("{carry=1}", "{carry=1, memory=7}", "memory is 7"),
        ("while(%0", "while(%9", "used before it is defined"),
        ("graph power", "graph " + "list<" * 5000, "expected"),
        ("value=f64[]<100.0>", "value=" + "(" * 5000, "at most 200 levels"),
        ("value=f64[]<100.0>", "value=f64[9]<100.0>", "cannot reshape"),
        ("value=f64[]<100.0>", "value=f64[-1]<100.0>", "no size or count"),
        ("value=f64[]<100.0>", "value=@0", "no valid graph|side table"),
        ("value=f64[]<100.0>", "value='__import__'", "value is '__import__'"),
    ],
)
def test_a_graph_that_is_not_valid_is_refused(contents, old, new, message):
    with pytest.raises(LoadError, match=message):
        wend.load(edited(contents, old, new))


def test_nested_regions_are_bounded(contents):
    deep = "x: f64[] = if(%0) {\n branch0() {\n" * 3000
    with pytest.raises(LoadError):
        wend.load(edited(contents, "return", deep + "return"))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("format", 2, "has format 2"),
        ("format", True, "format is True"),
        ("ops", {"mul": 2}, "uses version 2 of 'mul'"),
        ("ops", {"warp": 1}, "this version has no such operation"),
        ("graphs", [], "expected a number below 0"),
        ("functions", [{}], "name is None"),
        ("root", {"__class__": {"function": 0}}, "is no name of an attribute"),
        ("root", {"f": {"function": 1}}, "expected a number below 1"),
        ("root", {"f": {"pickle": "…"}}, "no values of kind 'pickle'"),
        ("root", {"f": {"class": ["os.system", ["x"], None, []]}}, "has not the fields"),
        ("entries", [{"object": 1}], "no entries of kind 'object'"),
        ("variables", [{"array": "../x", "stream": False}], "has no member '../x'"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(contents, path, value, message):
    manifest = {**json.loads(contents["manifest.json"]), path: value}
    with pytest.raises(LoadError, match=message):
        wend.load(packed({**contents, "manifest.json": json.dumps(manifest).encode()}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.update(captures=[]), "the graph has 2 params, expected 1"),
        (lambda t: t.update(world=True), "params, expected 3"),
        (lambda t: t.update(written=[0]), "results, expected 2"),
        (lambda t: t.update(traced=[3]), "expected positions"),
        (lambda t: t.update(leaves=[]), "of which 1 are arrays"),
        (lambda t: t.update(result="*", weak_results=[4]), "expected positions"),
        (lambda t: t.update(captures=[{"array": "graphs/g0.txt"}]), "is no .npy file"),
        (lambda t: t.update(result={"tuple": ["*", {"constant": 3}]}), "no constant of a result"),
        (lambda t: t.update(result={"constant": {"set": [{"list": []}]}}), "is no value"),
    ],
)
def test_a_trace_that_does_not_fit_its_graph_is_refused(contents, change, message):
    manifest = json.loads(contents["manifest.json"])
    change(manifest["functions"][0]["traces"][0])
    with pytest.raises(LoadError, match=message):
        wend.load(packed({**contents, "manifest.json": json.dumps(manifest).encode()}))


def test_arrays_have_the_size_that_their_header_says(contents):
    data = contents["arrays/0.npy"]
    for old, new, message in [
        (b"(3,)", b"(9,)", "does not fit its size"),
        (b"(3,)", b"(-3,)", "does not fit its size"),
        (b"'<f8'", b"'|O' ", "which functions do not take"),
        (b"'<f8'", b"'>f8'", "which functions do not take"),
        (b"NUMPY", b"NUMPI", "is no .npy file"),
    ]:
        file = packed({**contents, "arrays/0.npy": data.replace(old, new)})
        with pytest.raises(LoadError, match=message):
            wend.load(file)
    big = data.replace(b"(3,)", b"(999999999999,)")[: len(data)]
    with pytest.raises(LoadError):
        wend.load(packed({**contents, "arrays/0.npy": big}))


def test_members_are_neither_compressed_nor_there_twice(contents):
    with pytest.raises(LoadError, match="To fix it: pack the members as they are: zip -0"):
        wend.load(packed(contents, compression=zipfile.ZIP_DEFLATED))
    file = packed(contents)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(file, "a") as archive:
        archive.writestr("graphs/g0.txt", "x")
    file.seek(0)
    with pytest.raises(LoadError, match="listed twice"):
        wend.load(file)


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\5\6" + b"\0" * 18, b"{}" * 1000])
def test_what_is_no_file_of_wend(data):
    with pytest.raises(LoadError):
        wend.load(io.BytesIO(data))


def test_a_format_string_reads_values_only(contents):
    @wend.function
    def told(x):
        print("x is", x)
        return x

    told.get_concrete_function(1.0)
    parts = members(saved(told=told))
    assert "format='x is {}'" in parts["graphs/g0.txt"].decode()
    for field in ("{0.__class__}", "{0[0]}", "{:9999999}", "{:{}}", "{1}", "{"):
        with pytest.raises(LoadError, match=r"format string|not a plain value"):
            wend.load(edited(parts, "'x is {}'", f"'{field}'"))


def test_exceptions_are_those_of_programs():
    @wend.function
    def checked(x):
        if x > 3.0:
            raise ValueError("too large")
        return x

    checked.get_concrete_function(1.0)
    parts = members(saved(checked=checked))
    for name in ("KeyboardInterrupt", "SystemExit", "eval"):
        with pytest.raises(LoadError, match="no exception called"):
            wend.load(edited(parts, "'ValueError'", repr(name)))


# Signatures
def test_another_signature_is_refused_and_those_in_the_file_are_listed():
    scaled = wend.function(lambda x, unit: x * {"m": 1.0, "km": 1000.0}[unit], name="scaled")
    scaled(2.0, "km")
    scaled(np.ones(3), "m")
    loaded = again(scaled=scaled).scaled
    assert loaded(3.0, "km") == 3000.0
    assert loaded(np.float64(3.0), "km") == 3000.0
    assert loaded(3, unit="km") == 3000.0
    with pytest.raises(wend.WendError) as error:
        loaded(np.ones((2, 2)), "m")
    assert str(error.value) == (
        "scaled has no trace for (x f64[2,2], unit 'm').\n"
        "  it was saved for (x float, unit 'km'); (x f64[3], unit 'm')\n"
        "  To fix it: cast the arguments to one of these, or save it again after a call with such "
        "arguments."
    )
    with pytest.raises(TypeError, match="missing a required argument: 'unit'"):
        loaded(2.0)


def test_unknown_sizes_stay_unknown():
    fun = wend.function(lambda x: wnp.cumsum(x * x), name="fun")
    fun(np.ones(3))
    fun(np.ones(4))
    fun.get_concrete_function(wend.TensorSpec([None, 2]))
    loaded = again(fun=fun).fun
    for n in (2, 5, 100):
        assert is_same(loaded(np.arange(float(n))), fun(np.arange(float(n))))
        assert is_same(loaded(np.ones((n, 2))), fun(np.ones((n, 2))))
        assert is_same(*(wend.grad(lambda x, f=f: f(x)[-1])(np.ones(n)) for f in (fun, loaded)))
    assert is_same(loaded(np.ones((1, 2))), fun(np.ones((1, 2))))
    assert loaded.trace_count == 3


def test_keywords_defaults_and_variable_arguments():
    @wend.function
    def mixed(a, /, b=2.0, *rest, scale=3.0, **more):
        return scale * (a + b + sum(rest)) + more.get("c", 0.0)

    calls = [((1.0,), {}), ((1.0, 5.0, 7.0), {"scale": 2.0}), ((1.0,), {"c": 4.0, "scale": 1.0})]
    values = [mixed(*args, **kwargs) for args, kwargs in calls]
    loaded = again(mixed=mixed).mixed
    assert [loaded(*args, **kwargs) for args, kwargs in calls] == values


def test_an_input_signature_casts():
    fun = wend.function(
        lambda x, y: x + y, input_signature=[wend.TensorSpec([None], "f4", "x")] * 2
    )
    loaded = again(fun=fun).fun
    assert loaded([1, 2], [3, 4]).dtype == np.float32
    assert loaded.input_signature == fun.input_signature


@pytest.mark.filterwarnings("ignore:.*was traced 5 times")
def test_static_values_of_every_kind():
    values = [
        *(None, True, 3, -0.0, float("inf"), 1 + 2j, "text", b"bytes", (1, ("a", None)), ...),
        *(np.float32(1.5), np.dtype("f4"), slice(1, None, 2), range(3), frozenset("ab")),
    ]
    fun = wend.function(lambda x, how: x * 2.0, static_argnames="how", name="fun")
    for value in values:
        fun(1.0, value)
    loaded = again(fun=fun).fun
    for value in values:
        assert loaded(2.0, value) == 4.0
    assert loaded.trace_count == len(values)
    with pytest.raises(wend.WendError, match="has no trace"):
        loaded(1.0, 0.0)


# Structures
Point = collections.namedtuple("Point", "x y")


@wend.tree.register(static=["unit"])
@dataclasses.dataclass
class State:
    x: Any
    v: Any
    unit: str


def test_structures_of_arguments_and_results():
    @wend.function
    def fun(p, d):
        return {
            "b": Point(p.x, [d["k"]]),
            "a": (None, collections.OrderedDict(z=p.y)),
            3: collections.deque([p.x], maxlen=2),
        }

    args = Point(np.ones(2), 2.0), {"k": 3.0, "a": None}
    value = fun(*args)
    result = again(fun=fun).fun(*args)
    assert type(again(types=[Point], fun=fun).fun(*args)["b"]) is Point
    assert [*result] == ["b", "a", 3]
    assert type(result["b"]).__name__ == "Point"
    assert result["b"]._fields == ("x", "y")
    assert is_same(list(result["b"]), list(value["b"]))
    assert type(result["a"][1]) is collections.OrderedDict
    assert result[3].maxlen == 2


@pytest.mark.parametrize("constant", ["text", b"bytes", 10**30, {1, 2}, frozenset(["a"]), None])
def test_constants_in_results(constant):
    fun = wend.function(lambda x: {"x": 2.0 * x, "why": (constant,)}, name="fun")
    fun(1.0)
    loaded = again(fun=fun).fun
    assert loaded(3.0) == {"x": 6.0, "why": (constant,)}
    assert again(fun=loaded).fun(3.0) == loaded(3.0)
    assert loaded(3.0)["why"][0] is not loaded(3.0)["why"][0] or not isinstance(constant, set)


def test_records_are_named_by_their_attributes():
    fun = wend.function(lambda s: s.x * s.v, name="fun")
    fun(State(1.0, 2.0, "m"))
    with pytest.raises(TypeMismatchError, match=r"saved for \(s\.x float, s\.v float\)"):
        again(fun=fun).fun(3.0)


def test_types_are_classes():
    for types in ("State", [State(1.0, 2.0, "m")]):
        with pytest.raises(TypeMismatchError, match=r"is no class.\n.*types=\[State\]"):
            wend.load("unread.wend", types=types)


def test_registered_classes_by_name():
    @wend.function
    def step(s, dt):
        return State(s.x + dt * s.v, s.v, s.unit)

    start = State(np.zeros(2), np.ones(2), "m")
    value = step(start, 0.5)
    loaded = again(types=[State], step=step).step(start, 0.5)
    assert type(loaded) is State
    assert is_same(loaded, value)
    record = again(state=lambda_of(start)).state(0.0)
    assert (record.x.tolist(), repr(record)) == (
        [0.0, 0.0],
        "<State: x=array([0., 0.]), v=array([1., 1.])>",
    )
    doubled = wend.tree.map(lambda x: 2 * x, record)
    assert doubled.v.tolist() == [2.0, 2.0]


def lambda_of(state):
    fun = wend.function(lambda t: State(state.x + t, state.v + t, "m"))
    fun(0.0)
    return fun


# State
def test_functions_share_variables():
    total = wend.Variable(1.0, name="total", trainable=False)
    add = wend.function(lambda x: total.assign_add(x).value, name="add")
    read = wend.function(lambda: total * 1.0, name="read")
    add(1.0)
    read()
    m = again(add=add, read=read, total=total)
    assert (m.add(3.0), m.read(), m.total.value, total.value) == (5.0, 5.0, 5.0, 2.0)
    assert (m.total.name, m.total.trainable) == ("total", False)
    with wend.GradientTape() as tape:
        tape.watch(m.total)
        y = m.read()
    assert tape.gradient(y, m.total) == 1.0


def test_functions_share_callees():
    inner = wend.function(lambda x: wnp.sin(x) * x, name="inner")
    outer = wend.function(lambda x: inner(x) + inner(2.0 * x), name="outer")
    outer(1.0)
    inner(1.0)
    data = saved(outer=outer, inner=inner)
    texts = [data.decode() for name, data in members(data).items() if name.startswith("graphs/")]
    assert sum(text.startswith("graph inner") for text in texts) == 1
    assert texts[1].count("callee is g0") == 2
    assert is_same(wend.load(io.BytesIO(data)).outer(0.5), outer(0.5))


def test_arguments_that_are_changed():
    @wend.function
    def fill(x, y):
        x[1:] = y.sum()
        return y * 1.0

    fill(np.zeros(3), np.ones(2))
    loaded = again(fill=fill).fill
    x = np.zeros(3)
    loaded(x, np.ones(2))
    assert x.tolist() == [0.0, 2.0, 2.0]
    with pytest.raises(wend.WendError, match="are one array"):
        base = np.zeros(5)
        loaded(base[:3], base[1:3])


def test_variables_as_arguments():
    step = wend.function(lambda v, x: v.assign_add(x).value, name="step")
    step(wend.Variable(1.0), 2.0)
    v = wend.Variable(10.0)
    assert again(step=step).step(v, 1.0) == 11.0
    assert v.value == 11.0


def test_generators():
    rng = wend.random.Generator(0)
    draw = wend.function(lambda: rng.normal(size=3), name="draw")
    draw()
    m = again({"draw": draw, "rng": rng})
    assert is_same(m["draw"](), draw())
    assert is_same(m["rng"].normal(), rng.normal())


def test_effects(capsys):
    @wend.function
    def told(x):
        print("x is", x, end="!\n")
        assert x < 3.0, f"{x} is too large"
        return 2.0 * x

    told(1.0)
    loaded = again(told=told).told
    capsys.readouterr()
    assert loaded(2.0) == 4.0
    assert capsys.readouterr().out == "x is 2.0!\n"
    with pytest.raises(AssertionError, match=r"4\.0 is too large"):
        loaded(4.0)
    with pytest.raises(AssertionError):
        wend.grad(loaded)(4.0)


def test_custom_rules():
    @wend.custom_vjp
    def clipped(x):
        return wnp.clip(x, -1.0, 1.0)

    clipped.defvjp(lambda x: (clipped(x), x), lambda x, ct: (7.0 * clipped(x) * ct,))

    @wend.custom_jvp
    def root(x):
        return wnp.sqrt(x)

    root.defjvp(lambda primals, tangents: (root(*primals), 5.0 * tangents[0] * root(*primals)))
    fun = wend.function(lambda x: clipped(x) * root(x), name="fun")
    fun(0.5)
    loaded = again(fun=fun).fun
    for transform in (
        wend.grad,
        lambda f: wend.grad(wend.grad(f)),
        lambda f: lambda x: wend.jvp(wend.grad(f), (x,), (1.0,)),
    ):
        assert is_same(transform(loaded)(0.5), transform(fun)(0.5))


def test_loaded_functions_are_saved_again():
    fun = wend.function(lambda s, x: State(s.x * x, s.v, s.unit), name="fun")
    start = State(np.ones(2), np.zeros(2), "m")
    fun(start, 2.0)
    twice = again(types=[State], fun=again(types=[State], fun=fun).fun).fun
    assert is_same(twice(start, 3.0), fun(start, 3.0))
    assert "loaded from the file" in twice.explain()
    assert twice.concrete_functions()[0].graph.to_svg().startswith("<svg")


def test_files_of_version_1(request):
    """What version 0.1.0 has written loads in every later one."""
    m = wend.load(request.path.parent / "golden" / "format-1.wend")
    x = np.array([0.5, 2.0, 1.0])
    assert m.step(x)["n"] == 3
    assert m.count.value == 2
    np.testing.assert_allclose(m.step(x)["x"], [0.0625, 0.25, 0.125])
    assert m.root(2.0) == pytest.approx(2.0**0.5)
    assert wend.grad(m.root)(2.0) == pytest.approx(0.5 / 2.0**0.5)
