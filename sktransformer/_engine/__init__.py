"""The cellar: what every estimator stands on. Nothing in here is public."""
