import pytest

pytest.register_assert_rewrite("tests.unit.catalogue.search_rules")
