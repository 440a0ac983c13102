"""What a trace leaves in the containers of its caller, as its result tells it."""

from __future__ import annotations

import wend
from wend.trace.aliasing.rebuilt_containers import ResultAndContainers


def _tree(fun, *args):
    return wend.function(fun).get_concrete_function(*args).traced.result_tree


def test_only_what_changes_is_in_the_result():
    def change(first, second):
        first[0] = second[0]
        return second[0]

    tree = _tree(change, [1.0], [2.0])
    assert tree.type is ResultAndContainers
    assert tree.child(1).num_children == 1


def test_a_result_without_containers_of_the_caller_is_as_it_was():
    tree = _tree(lambda items: [items[0], "a"], [1.0])
    assert tree.type is list


def test_items_that_stay_are_no_results_of_the_graph():
    concrete = wend.function(lambda items: items.reverse()).get_concrete_function([1.0, 2.0])
    assert len(concrete.traced.result_types) == 0
