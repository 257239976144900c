"""Helpers that assert for several folders of tests say what differed, as tests do."""

import pytest

pytest.register_assert_rewrite("tests.vm.agreement", "tests.vm.fields")
