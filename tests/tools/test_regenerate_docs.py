"""Documents are generated from harnesses, limitations and recorded results, and checked."""

import contextlib
import dataclasses
import pathlib
import shutil
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest

from harnesses import recorded
from harnesses.database import Database, Row, Versions
from harnesses.recorded import Recorded
from harnesses.selection import CORE_DTYPES, OTHER_DTYPES, RARE_DTYPES, Selection
from harnesses.sweep import versions
from harnesses.variants import PLAIN
from limitations import Limitation
from lowering.targets import CONSUMERS
from tools import explorer, history, regenerate_docs

ROWS = [
    Row(
        f"sin_{dtype}",
        "sin",
        dtype,
        mode,
        target,
        "cpu",
        PLAIN,
        outcome,
        verdict,
        0.0,
        "",
        why,
        0.1,
    )
    for dtype, outcome, verdict, why in (
        ("float32", "equal", "equal", ""),
        ("int8", "lowering error", "limited", "There is no sine of integers."),
    )
    for mode in ("eager", "graph")
    for target in ("tf", "xla")
]


OTHER = Versions("0.9.0", "0.9.0", "2.20.0", "2.0.0", "3.11.0")


@pytest.fixture
def g3doc(tmp_path, monkeypatch) -> pathlib.Path:
    """A directory of templates without documents and recorded results."""
    shutil.copytree(regenerate_docs.G3DOC / "templates", tmp_path / "templates")
    monkeypatch.setattr(regenerate_docs, "G3DOC", tmp_path)
    monkeypatch.setattr(regenerate_docs, "README", tmp_path / "README.md")
    begin, end = regenerate_docs._MARKS
    (tmp_path / "README.md").write_text(f"Before.\n\n{begin}\nold\n{end}\n\nAfter.\n")
    monkeypatch.setattr(regenerate_docs, "RECORDED", tmp_path / "recorded.json")
    monkeypatch.setattr(regenerate_docs, "OF_CONSUMERS", tmp_path / "consumers.json")
    return tmp_path


@pytest.fixture
def limitations(monkeypatch) -> dict[str, tuple[Limitation, ...]]:
    """The limitations, for a test to change; there are none at first."""
    limitations = {}
    for module in (regenerate_docs, recorded):
        monkeypatch.setattr(module, "all_limitations", lambda: limitations)
    return limitations


@pytest.fixture
def harnesses(monkeypatch) -> dict[str, object]:
    """The harnesses, for a test to change; those of `ROWS` at first."""

    class Named:
        def __init__(self, name):
            self.name = name
            self.primitive, self.dtype_name = name.split("_")

    harnesses = {row.harness: Named(row.harness) for row in ROWS}
    monkeypatch.setattr(regenerate_docs, "all_harnesses", lambda: harnesses)
    return harnesses


def database(path: pathlib.Path, rows: list[Row], selection: Selection | None = None) -> str:
    with_sweep = Database(path)
    data = (selection or Selection()).as_data()
    sweep, _ = with_sweep.begin(versions(), data, "sources", fresh=False)
    with_sweep.record(sweep, rows)
    with_sweep.finish(sweep)
    with_sweep.close()
    return str(path)


def condensed(ran: Versions) -> Recorded:
    return recorded.condense(ran, ROWS, ["sin", "unheard_of"])


def test_committed_documents_are_up_to_date(capsys):
    assert regenerate_docs.main(["--check"]) == 0, capsys.readouterr().out


def test_import_of_a_sweep(g3doc, harnesses, limitations):
    limitations["sin"] = (
        Limitation("There is no sine of integers.", error="lowering error", dtypes={"int8"}),
    )
    argv = ["--database", database(g3doc / "sweep.sqlite", ROWS)]
    assert regenerate_docs.main(["--check"]) == 1
    assert regenerate_docs.main(argv) == 0
    assert regenerate_docs.main(["--check"]) == 0

    coverage = (g3doc / "jax_primitives_coverage.md").read_text()
    assert "| `sin` | float32, int8 | 2 | 8 | 4 |  |" in coverage
    limited = (g3doc / "primitives_with_limited_support.md").read_text()
    assert (
        "| `sin` | There is no sine of integers. | int8 | all | all | all | `lowering error` | 4 |"
        in limited
    )

    before = {path.name: path.read_bytes() for path in g3doc.glob("*.*")}
    assert regenerate_docs.main(argv) == 0
    assert {path.name: path.read_bytes() for path in g3doc.glob("*.*")} == before


def test_what_an_import_leaves_for_people_to_look_at(g3doc, harnesses, limitations, capsys):
    path = database(g3doc / "sweep.sqlite", ROWS)
    for _ in range(2):
        assert regenerate_docs.main(["--database", path]) == 0
    (record,) = history.read(g3doc / "history.json")
    assert dataclasses.astuple(record)[1:] == ("core", versions().jax, 8, 4, 1)
    assert "sin" in (g3doc / "explorer.html").read_text()
    coverage = (g3doc / "jax_primitives_coverage.md").read_text()
    for name in ("coverage", "over_time", "slowest"):
        assert f"(pictures/{name}.svg)" in coverage
        ElementTree.parse(g3doc / "pictures" / f"{name}.svg")
    assert "(pictures/accuracy.svg)" in (g3doc / "accuracy.md").read_text()

    (g3doc / "pictures" / "coverage.svg").write_text("<svg/>")
    assert regenerate_docs.main(["--check"]) == 1
    assert "pictures/coverage.svg is out of date" in capsys.readouterr().out


def test_variants_are_counted_where_jax_has_them(g3doc, harnesses, limitations):
    variants = [
        dataclasses.replace(ROWS[0], variant="vmap"),
        dataclasses.replace(
            ROWS[0], variant="jvp", outcome="JAX itself cannot", verdict="no variant"
        ),
    ]
    path = database(g3doc / "sweep.sqlite", [*ROWS, *variants])
    assert regenerate_docs.main(["--database", path]) == 0
    assert regenerate_docs.main(["--check"]) == 0
    (swept,) = recorded.read(g3doc / "recorded.json").values()
    assert swept.variants == {"vmap": 1}
    assert swept.count("sin") == len(ROWS)


def test_evidence_of_other_versions_is_kept(g3doc, harnesses, limitations):
    recorded.write(g3doc / "recorded.json", {OTHER.jax: condensed(OTHER)})
    assert regenerate_docs.main(["--database", database(g3doc / "sweep.sqlite", ROWS)]) == 0
    swept = recorded.read(g3doc / "recorded.json")
    assert list(swept) == [OTHER.jax, versions().jax]
    assert swept[OTHER.jax] == condensed(OTHER)
    coverage = (g3doc / "jax_primitives_coverage.md").read_text()
    assert "JAX 0.9.0, TensorFlow 2.20.0" in coverage
    assert "`unheard_of`" in coverage.split("## Not yet")[1]


def test_a_changed_document_is_stale(g3doc, harnesses, limitations, capsys):
    regenerate_docs.main(["--database", database(g3doc / "sweep.sqlite", ROWS)])
    (g3doc / "no_xla_limitations.md").write_text("All is well.\n")
    assert regenerate_docs.main(["--check"]) == 1
    assert "no_xla_limitations.md is out of date" in capsys.readouterr().out


def test_changed_harnesses_make_documents_stale(g3doc, harnesses, limitations, capsys):
    regenerate_docs.main(["--database", database(g3doc / "sweep.sqlite", ROWS)])
    del harnesses["sin_int8"]
    assert regenerate_docs.main(["--check"]) == 1
    assert "have changed since they were swept" in capsys.readouterr().out


def test_changed_limitations_make_documents_stale(g3doc, harnesses, limitations, capsys):
    regenerate_docs.main(["--database", database(g3doc / "sweep.sqlite", ROWS)])
    limitations["sin"] = (Limitation("A new reason.", error="crash", devices={"tpu"}),)
    assert regenerate_docs.main(["--check"]) == 1
    assert "have changed since they were swept" in capsys.readouterr().out


def of_consumers(
    dtype: str,
    dtypes: tuple[str, ...],
    path: pathlib.Path,
    targets: Sequence[str] = ("onnx", "tfjs"),
) -> str:
    """A database with a sweep of consumers, all of whose cells are equal and of one dtype."""
    rows = [
        dataclasses.replace(
            ROWS[0], harness=f"sin_{dtype}", dtype=dtype, mode="runtime", target=target
        )
        for target in targets
    ]
    return database(path, rows, Selection.of_consumers(dtypes))


def test_consumers_are_swept_in_parts(g3doc, harnesses, limitations):
    core = of_consumers("float32", CORE_DTYPES, g3doc / "core.sqlite")
    others = of_consumers("int8", OTHER_DTYPES, g3doc / "others.sqlite")
    for path in (core, others):
        assert regenerate_docs.main(["--database", path]) == 0
        assert regenerate_docs.main(["--check"]) == 0
    (swept,) = recorded.read(g3doc / "consumers.json").values()
    assert swept.dtypes == {"float32", "int8"} and swept.harnesses == {"sin": 2}
    assert swept.count("sin") == 4

    # What limits other dtypes leaves recorded results valid, and what is not is replaced.
    limit = Limitation("It is narrow.", error="TF error", dtypes={"int8"}, targets=("tfjs",))
    limitations["sin"] = (limit,)
    assert regenerate_docs.main(["--check"]) == 1
    assert regenerate_docs.main(["--database", core]) == 0
    (swept,) = recorded.read(g3doc / "consumers.json").values()
    assert swept.dtypes == {"float32"}
    assert regenerate_docs.main(["--check"]) == 0


def test_numbers_of_64_bits_stand_beside_runtimes_that_have_them(g3doc, harnesses, limitations):
    harnesses["sin_float64"] = type(harnesses["sin_float32"])("sin_float64")
    core = of_consumers("float32", CORE_DTYPES, g3doc / "core.sqlite")
    rare = of_consumers("float64", RARE_DTYPES, g3doc / "rare.sqlite", ["onnx"])
    for path in (core, rare):
        assert regenerate_docs.main(["--database", path]) == 0
    rows = (g3doc / "consumers.md").read_text().splitlines()
    (row,) = (row for row in rows if "64 bits included" in row)
    # TF Lite, ONNX and TF.js.
    assert [cell.strip() for cell in row.split("|")[3:6]] == ["–", "2 of 2 (100.0%)", "–"]


def test_harnesses_that_jax_cannot_run_as_consumers_do_are_swept(g3doc, harnesses, limitations):
    core = of_consumers("float32", CORE_DTYPES, g3doc / "core.sqlite")
    with contextlib.closing(Database(core)) as swept:
        ((sweep, _),) = swept.finished(Selection.of_consumers(CORE_DTYPES).as_data())
        other = {"harness": "cos_float32", "primitive": "cos", "verdict": "no variant"}
        swept.record(sweep, [dataclasses.replace(row, **other) for row in swept.rows(sweep)])
    harnesses["cos_float32"] = type(harnesses["sin_float32"])("cos_float32")
    assert regenerate_docs.main(["--database", core]) == 0
    assert regenerate_docs.main(["--check"]) == 0
    (found,) = recorded.read(g3doc / "consumers.json").values()
    assert found.total() == 2


def test_pages_to_explore(g3doc, harnesses, limitations, monkeypatch, capsys):
    """They state the limitations of today, and are of today's template; results are the sweep's."""
    path = database(g3doc / "sweep.sqlite", ROWS)
    assert regenerate_docs.main(["--database", path]) == 0
    page = g3doc / "explorer.html"
    swept = explorer.data_in(page.read_text())
    new = Limitation("A new reason.", error="crash", devices={"tpu"})
    for change in (
        lambda: page.write_text(page.read_text().replace("<title>", "<title>Old ")),
        lambda: monkeypatch.setattr(explorer, "all_limitations", lambda: {"sin": [new]}),
    ):
        assert regenerate_docs.main(["--check"]) == 0
        change()
        assert regenerate_docs.main(["--check"]) == 1
        assert "explorer.html is out of date" in capsys.readouterr().out
        assert regenerate_docs.main([]) == 0
    assert regenerate_docs.main(["--check"]) == 0
    found = explorer.data_in(page.read_text())
    assert [stated["reason"] for stated in found.pop("stated")["sin"]] == [new.reason]
    assert found == {key: value for key, value in swept.items() if key != "stated"}


def test_a_sweep_of_new_primitives_is_joined(g3doc, harnesses, limitations, capsys):
    """The worst errors are those of both sweeps; the page to explore is that of the whole one."""
    whole = [dataclasses.replace(row, ulps=8.0) for row in ROWS]
    assert regenerate_docs.main(["--database", database(g3doc / "sweep.sqlite", whole)]) == 0
    page = (g3doc / "explorer.html").read_text()
    (before,) = recorded.read(g3doc / "recorded.json").values()
    harnesses["cos_float32"] = type(harnesses["sin_int8"])("cos_float32")
    limitations["cos"] = (Limitation("It is new.", error="crash", devices={"tpu"}),)
    assert regenerate_docs.main(["--check"]) == 1
    rows = [
        dataclasses.replace(row, harness="cos_float32", primitive="cos", ulps=2.0)
        for row in ROWS
        if row.dtype == "float32"
    ]
    selection = Selection(primitives=["cos"], per_harness="all")
    path = database(g3doc / "new.sqlite", rows, selection)
    assert regenerate_docs.main(["--database", path]) == 0
    assert regenerate_docs.main(["--check"]) == 0
    (swept,) = recorded.read(g3doc / "recorded.json").values()
    assert (swept.count("sin"), swept.count("cos")) == (len(ROWS), len(rows))
    assert swept.ulps == before.ulps and set(swept.ulps["float32"].values()) == {8.0}
    assert (g3doc / "explorer.html").read_text() == page

    # The recorded results of the others have to be valid.
    del harnesses["sin_int8"]
    recorded.write(g3doc / "recorded.json", {before.versions.jax: before})
    assert regenerate_docs.main(["--database", path]) == 1
    assert "no complete sweep of all harnesses" in capsys.readouterr().err


def test_a_sweep_of_changed_primitives_replaces_theirs(g3doc, harnesses, limitations, capsys):
    """A primitive may have fewer modes than others, and one may be there no more."""
    named = type(harnesses["sin_int8"])
    more = {name: named(name) for name in ("cos_float32", "tan_float32")}
    harnesses.update(more)
    others = [
        dataclasses.replace(row, harness=name, primitive=name[:3])
        for name in more
        for row in ROWS
        if row.dtype == "float32"
    ]
    assert regenerate_docs.main(["--database", database(g3doc / "all", [*ROWS, *others])]) == 0
    del harnesses["tan_float32"]
    limitations["cos"] = (Limitation("It is limited.", error="crash", devices={"tpu"}),)
    assert regenerate_docs.main(["--check"]) == 1
    assert "make sweep ARGS='--per-harness all --primitive cos'" in capsys.readouterr().out
    rows = [row for row in others if row.primitive == "cos" and row.mode == "graph"]
    selection = Selection(primitives=["cos"], per_harness="all")
    assert regenerate_docs.main(["--database", database(g3doc / "a", rows, selection)]) == 0
    assert regenerate_docs.main(["--check"]) == 0
    (swept,) = recorded.read(g3doc / "recorded.json").values()
    counts = {name: swept.count(name) for name in ("sin", "cos", "tan")}
    assert counts == {"sin": len(ROWS), "cos": len(rows), "tan": 0}
    assert swept.count("cos", column="tf graph") == swept.count("sin", column="tf graph") / 2


def test_a_sweep_of_new_primitives_by_consumers_is_joined(g3doc, harnesses, limitations):
    core = of_consumers("float32", CORE_DTYPES, g3doc / "core.sqlite")
    assert regenerate_docs.main(["--database", core]) == 0
    harnesses["cos_float32"] = type(harnesses["sin_int8"])("cos_float32")
    assert regenerate_docs.main(["--check"]) == 1
    rows = [
        dataclasses.replace(
            ROWS[0], harness="cos_float32", primitive="cos", mode="runtime", target=target
        )
        for target in ("onnx", "tfjs")
    ]
    selection = Selection.of_consumers(CORE_DTYPES, ["cos"])
    assert regenerate_docs.main(["--database", database(g3doc / "a", rows, selection)]) == 0
    assert regenerate_docs.main(["--check"]) == 0
    (swept,) = recorded.read(g3doc / "consumers.json").values()
    assert swept.harnesses == {"sin": 1, "cos": 1}


def test_a_red_sweep_is_not_imported(g3doc, limitations, capsys):
    bad = [Row(**{**vars(ROWS[0]), "outcome": "different", "verdict": "unexpected"}), *ROWS[1:]]
    assert regenerate_docs.main(["--database", database(g3doc / "sweep.sqlite", bad)]) == 1
    assert "1 unexpected failures or passes" in capsys.readouterr().err
    assert not (g3doc / "recorded.json").exists()


def test_a_sweep_of_some_cells_is_not_imported(g3doc, capsys):
    path = database(g3doc / "sweep.sqlite", ROWS, Selection(primitives=("sin",)))
    assert regenerate_docs.main(["--database", path]) == 1
    assert "no complete sweep of all harnesses" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("dtypes", "summary"),
    [
        (None, "all"),
        ({"float16", "bfloat16", "float32", "float64"}, "float"),
        ({"int8", "int16", "int32", "int64", "bool"}, "signed, bool"),
        ({"complex64", "float32"}, "complex64, float32"),
    ],
)
def test_dtype_summary(dtypes, summary):
    assert regenerate_docs.dtype_summary(dtypes) == summary


def test_each_consumer_has_a_column():
    assert tuple(regenerate_docs.CONSUMER_NAMES) == CONSUMERS
