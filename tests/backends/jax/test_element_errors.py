"""What fails in maps, on this backend: the tests of the others."""

from __future__ import annotations

import pytest
from tests.backends.test_element_errors import (  # noqa: F401
    test_calls_by_compiled_code,
    test_chunks_of_elements,
    test_derivatives,
    test_derivatives_of_python_are_not_repeated,
    test_directions_of_jacobians_are_no_elements,
    test_draws_are_not_repeated,
    test_effects_happen_once,
    test_it_is_that_of_the_first_element_not_of_the_first_operation,
    test_lists_of_elements,
    test_nested_maps_tell_all_numbers,
    test_operations_outside_of_maps_have_no_number,
    test_python_is_not_called_again,
    test_the_error_is_that_of_the_first_element,
    test_what_the_elements_share,
)
from tests.function.mapping.test_vmap_checks import (  # noqa: F401
    test_elements_of_nested_maps_tell_all_numbers,
)


@pytest.fixture
def backend() -> str:
    return "jax"
