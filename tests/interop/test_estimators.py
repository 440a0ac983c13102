"""wend under scikit-learn, joblib and Dask: an estimator, and sweeps over worker processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="NOT RUN: scikit-learn is not installed")

from tests.interop.root_regression import RootRegression, predictions, slope_at

WEIGHTS = np.array([1.5, -0.4])


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    xs = np.random.default_rng(0).uniform(-2.0, 2.0, (60, 1))
    return xs, np.asarray(predictions(WEIGHTS, xs[:, 0]))


def test_an_estimator_is_fitted_and_cloned(data: tuple[Any, Any]) -> None:
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    model = clone(RootRegression(steps=300)).fit(*data)
    np.testing.assert_allclose(model.weights_, WEIGHTS, atol=1e-4)
    assert model.score(*data) > 0.999
    search = GridSearchCV(RootRegression(), {"penalty": [0.0, 0.3]}, cv=3, n_jobs=2).fit(*data)
    assert search.best_params_ == {"penalty": 0.0}


def test_a_sweep_by_joblib(data: tuple[Any, Any]) -> None:
    joblib = pytest.importorskip("joblib", reason="NOT RUN: joblib is not installed")
    xs, ys = data
    tasks = [joblib.delayed(slope_at)(float(k), xs[:, 0], ys) for k in range(6)]
    slopes = joblib.Parallel(n_jobs=2)(tasks)
    expected = [slope_at(float(k), xs[:, 0], ys) for k in range(6)]
    assert np.array_equal(slopes, expected)


def test_a_sweep_by_dask(data: tuple[Any, Any]) -> None:
    distributed = pytest.importorskip("distributed", reason="NOT RUN: dask is not installed")
    xs, ys = data
    options = {"n_workers": 2, "threads_per_worker": 2, "dashboard_address": None}
    with (
        distributed.LocalCluster(host="127.0.0.1", **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        futures = [client.submit(slope_at, float(k), xs[:, 0], ys) for k in range(6)]
        slopes = client.gather(futures)
    expected = [slope_at(float(k), xs[:, 0], ys) for k in range(6)]
    assert np.array_equal(slopes, expected)
