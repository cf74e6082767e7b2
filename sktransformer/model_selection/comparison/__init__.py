"""Several estimators on the same folds: scores, costs, a test, a verdict."""
