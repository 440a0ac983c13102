"""Reads come before updates, where nothing else decides the order."""

from __future__ import annotations

from wend.ir import parse
from wend.ir.graph import Graph
from wend.passes.order_updates import order_updates


def order_of(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def ordered(text: str) -> list[str]:
    return order_of(order_updates(parse(text)))


def test_a_read_of_the_old_version_comes_first() -> None:
    assert ordered(
        """graph f(%0: f64[4], %1: i64[], %2: f64[]) {
          %3: f64[4] = scatter_set(%0, %2, %1)
          %4: f64[] = gather(%0, %1)
          return %3, %4
        }"""
    ) == ["gather", "scatter_set"]


def test_a_read_through_a_shared_reference_comes_first() -> None:
    assert ordered(
        """graph f(%0: f64[4], %1: i64[], %2: f64[]) {
          %3: f64[2,2] = reshape(%0) {shape=(2, 2)}
          %4: f64[4] = scatter_set(%0, %2, %1)
          %5: f64[] = reduce_sum(%3) {axes=(0, 1), keepdims=False}
          return %4, %5
        }"""
    ) == ["reshape", "reduce_sum", "scatter_set"]


def test_a_branch_that_only_reads_comes_first() -> None:
    text = """graph f(%0: f64[4], %1: i64[], %2: f64[], %3: bool[]) {
          %4: f64[4] = scatter_set(%0, %2, %1)
          %5: RESULT = if(%3, %0, %1)
            branch0(%6: f64[4], %7: i64[]) {
              %8: f64[2,2] = reshape(%6) {shape=(2, 2)}
              %9: f64[] = gather(%8, %7, %7)
              return %9
            }
            branch1(%10: f64[4], %11: i64[]) {
              %12: f64[] = gather(%10, %11)
              %13: f64[4] = scatter_set(%10, %12, %11)
              return %OF_BRANCH1
            }
          return %4, %5
        }"""
    reading = text.replace("OF_BRANCH1", "12").replace("RESULT", "f64[]")
    reading = "\n".join(line for line in reading.splitlines() if "%13" not in line)
    assert ordered(reading) == ["if", "scatter_set"]
    writing = text.replace("OF_BRANCH1", "12").replace("RESULT", "f64[]")
    assert ordered(writing) == ["scatter_set", "if"]


def test_a_read_that_depends_on_the_update_stays_behind_it() -> None:
    assert ordered(
        """graph f(%0: f64[4], %1: i64[], %2: f64[]) {
          %3: f64[4] = scatter_set(%0, %2, %1)
          %4: f64[] = gather(%3, %1)
          %5: i64[] = cast(%4) {dtype=:i64}
          %6: f64[] = gather(%0, %5)
          return %3, %6
        }"""
    ) == ["scatter_set", "gather", "cast", "gather"]


def test_what_may_raise_stays_after_the_effects_before_it() -> None:
    assert ordered(
        """graph f(%0: token, %1: f64[4], %2: i64[], %3: f64[]) {
          %4: f64[4] = scatter_set(%1, %3, %2)
          %5: f64[] = gather(%4, %2)
          %6: token = print(%0, %5) {format="{}"}
          %7: f64[] = gather(%1, %2)
          return %6, %4, %7
        }"""
    ) == ["scatter_set", "gather", "print", "gather"]


def test_the_order_of_a_graph_without_late_reads_stays() -> None:
    graph = parse(
        """graph f(%0: f64[4], %1: i64[], %2: f64[]) {
          %3: f64[] = gather(%0, %1)
          %4: f64[4] = scatter_set(%0, %2, %1)
          %5: f64[4] = scatter_add(%4, %3, %1)
          return %5
        }"""
    )
    assert order_updates(graph) is graph


def test_regions_are_ordered() -> None:
    graph = order_updates(
        parse(
            """graph f(%0: bool[], %1: f64[4], %2: i64[], %3: f64[]) {
              %4: f64[4], %5: f64[] = if(%0, %1, %2, %3)
                branch0(%6: f64[4], %7: i64[], %8: f64[]) {
                  return %6, %8
                }
                branch1(%9: f64[4], %10: i64[], %11: f64[]) {
                  %12: f64[4] = scatter_set(%9, %11, %10)
                  %13: f64[] = gather(%9, %10)
                  return %12, %13
                }
              return %4, %5
            }"""
        )
    )
    assert order_of(graph.nodes[0].regions[1]) == ["gather", "scatter_set"]
