"""Tiny judges, made once a run."""

from pathlib import Path

import pytest

from tests.evaluation.making import make_judge


@pytest.fixture(scope="session", params=["gpt2", "llama"])
def judge_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_judge(tmp_path_factory.mktemp("judges") / f"tiny-{request.param}", request.param)
