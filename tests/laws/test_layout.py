"""What the documents say is there is there, and what they show runs."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ROOT / "src" / "wend"


def rooms() -> set[str]:
    return {folder.name for folder in ROOMS.iterdir() if (folder / "__init__.py").exists()}


def test_the_architecture_page_names_exactly_the_rooms_there_are() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = re.findall(r"^\|\s*\d+ \| `(\w+)/` \|", page, re.MULTILINE)
    assert sorted(table) == sorted(rooms())


def test_files_that_the_architecture_page_says_to_read_first_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|\s*\d+ \| `(\w+)/` \|.*\| `(\w+\.py)` \|$", page, re.MULTILINE)
    assert len(rows) == len(rooms())
    assert [f"{room}/{file}" for room, file in rows if not (ROOMS / room / file).exists()] == []


def test_the_architecture_page_is_a_map() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 200


def test_the_page_on_passes_names_each_module() -> None:
    page = (ROOT / "docs" / "internals" / "passes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)\.py`", row)]
    modules = [path.stem for path in (ROOT / "src" / "wend" / "passes").glob("[!_]*.py")]
    assert sorted(named) == sorted(modules)


def test_every_folder_of_tests_is_collected(pytestconfig: pytest.Config) -> None:
    patterns = pytestconfig.getini("norecursedirs")
    folders = {file.parent for file in (ROOT / "tests").rglob("test_*.py")}
    names = {part for folder in folders for part in folder.relative_to(ROOT).parts}
    assert [name for name in names if any(fnmatch(name, p) for p in patterns)] == []


def test_prose_has_at_most_100_columns() -> None:
    """Code, tables and images may be wider."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]
    wide = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
        lines = [line for line in prose.splitlines() if not line.startswith(("|", "<img"))]
        wide += [f"{page.relative_to(ROOT)}: {line}" for line in lines if len(line) > 100]
    assert wide == []


def test_no_room_has_a_file_of_odds_and_ends() -> None:
    assert list(ROOMS.rglob("utils.py")) + list(ROOMS.rglob("misc.py")) == []


# One holds a folder in mind; of these, a file is a family, and a table lists them.
FAMILIES = {"autodiff", "numpy", "ops", "passes"}
MOST_FILES = 17
MOST_LINES = 600


def test_a_folder_has_few_files() -> None:
    folders = [ROOMS, *(folder for folder in ROOMS.rglob("*") if folder.is_dir())]
    counts = {
        folder.relative_to(ROOMS).as_posix(): len([*folder.glob("*.py")]) - 1 for folder in folders
    }
    crowded = {name for name, count in counts.items() if count > MOST_FILES}
    assert crowded - FAMILIES == set()


def test_a_file_has_few_lines() -> None:
    long = {
        file.relative_to(ROOMS).as_posix()
        for file in ROOMS.rglob("*.py")
        if len(file.read_text(encoding="utf-8").splitlines()) > MOST_LINES
    }
    assert long == set()


# Tests of a subject that several files share. All others are named after the file they test, or
# after it and an aspect: `test_report_costs.py` tests `report.py`.
SUBJECTS = {
    "test_cases.py": "the table of operations, on one backend",
    "interop/test_bridges.py": "tests that run in processes of their own",
    "interop/test_estimators.py": "programs of scikit-learn, joblib and Dask that call wend",
    "backends/test_alone.py": "tests that run in processes of their own",
    "backends/jax/test_element_errors.py": "what fails in maps, on this backend",
    "test_cost.py": "costs grow as the work does",
    "test_errors.py": "the messages of a package against golden texts",
    "test_fuzz.py": "random programs",
    "test_programs.py": "random programs",
    "capture/state/test_set_globals.py": "globals that a call sets for a time, and their guards",
    "function/closures/test_local_programs.py": "programs with local functions, on all transforms",
    "autodiff/test_linear_blocks.py": "backward graphs before, between and after the passes",
    "backends/native/test_unknown_sizes.py": "one compilation serves every size",
    "capture/builtins/test_extremes.py": "min, max and sorted of what is no array",
    "capture/heap/test_orders.py": "the order of dict keys and attributes, through every package",
    "capture/test_alias_programs.py": "random programs with aliases",
    "capture/test_conformance.py": "captured functions against plain Python",
    "capture/test_tools.py": "debuggers and coverage see the user's lines",
    "function/test_captures.py": "captures through every level of functions",
    "function/test_pickle.py": "pickling of every kind of function",
    "function/test_rule_errors.py": "the messages of custom rules against golden texts",
    "function/test_unknown_rank.py": "one trace for arrays of any rank",
    "function/test_variables.py": "variables as arguments",
    "numpy/test_elements_out_of_range.py": "Python's numbers that a dtype cannot hold",
    "numpy/test_integer_positions.py": "whole numbers of all dtypes, in every function",
    "numpy/test_conventions.py": "derivatives where there is none, or several",
    "numpy/test_forward.py": "every public function in forward mode",
    "numpy/test_functions.py": "every public function against NumPy",
    "numpy/test_functions_of_dtypes.py": "functions of arrays of every dtype against NumPy",
    "numpy/test_listed_differences.py": "what docs/from-numpy.md says to differ",
    "numpy/test_oracle.py": "random calls of every function against NumPy",
    "numpy/test_sharing.py": "which results are views",
    "passes/test_golden.py": "each pass as text",
    "passes/test_recorded.py": "passes on recorded graphs",
    "pictures/test_browser.py": "pages in a browser",
    "random/test_distributions.py": "distributions of every function",
    "testing/test_check_grads.py": "`check_grads` over every operation",
    "trace/test_leaks.py": "a traced value that leaves its trace is refused",
}


def mirrored_tests() -> list[Path]:
    tests = ROOT / "tests"
    files = [file for room in rooms() for file in (tests / room).rglob("test_*.py")]
    return [file.relative_to(tests) for file in sorted(files)]


def has_a_source(test: Path) -> bool:
    stem = test.stem.removeprefix("test_")
    names = {file.stem for file in (ROOMS / test.parent).glob("*.py")}
    return stem == "init" or any(stem == n or stem.startswith(f"{n}_") for n in names)


def test_tests_mirror_the_tree() -> None:
    unlisted = [t for t in mirrored_tests() if not {t.name, t.as_posix()} & SUBJECTS.keys()]
    assert [test.as_posix() for test in unlisted if not has_a_source(test)] == []


def test_every_subject_has_a_test_and_every_package_has_tests() -> None:
    tests = mirrored_tests()
    assert SUBJECTS.keys() - {t.name for t in tests} - {t.as_posix() for t in tests} == set()
    assert rooms() - {test.parts[0] for test in tests} == set()


def test_the_miniature_holds() -> None:
    runpy.run_path(str(ROOT / "docs" / "miniature.py"))["check"]()


@pytest.mark.parametrize(
    "name",
    [
        *("README.md", "CONTRIBUTING.md", "docs/adding-an-op.md", "docs/quickstart.md"),
        *("docs/errors.md", "docs/architecture.md", "docs/real-programs.md"),
        *("docs/from-autograd.md", "docs/from-numba.md"),
        *(f"docs/internals/{page.name}" for page in (ROOT / "docs" / "internals").glob("*.md")),
    ],
)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    links = re.findall(r"\]\(([^)#]+?)\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


PAGES = [
    "docs/quickstart.md",
    "docs/from-numpy.md",
    "docs/from-jax.md",
    "docs/from-scipy.md",
    "docs/from-autograd.md",
    "docs/from-numba.md",
    "docs/implicit.md",
]


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_the_pages_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert blocks
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")


def test_import_is_light() -> None:
    code = (
        "import sys, wend; "
        "heavy = {'scipy', 'matplotlib', 'rich', 'decimal', 'wend.backends.native.jit.llvm'}; "
        "heavy &= set(sys.modules); "
        "assert not heavy, heavy; "
        "assert 'llvmlite.binding' in sys.modules"  # else the first call would wait for it
    )
    subprocess.run([sys.executable, "-c", code], check=True)
