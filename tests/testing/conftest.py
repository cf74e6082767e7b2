"""One thread: models of 32 columns only lose by more, and a busy machine makes threads wait for each other."""

from collections.abc import Iterator

import pytest
import torch

# faulty on purpose, and found by test_faults_are_caught as if they were installed
collect_ignore = ["estimators"]


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
