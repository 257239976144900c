import pytest

from tests.table import rows

SEEN = []


@rows("left, right", [(1, 1), (2, 2)])
@rows("more", "ab")
def test_every_row_is_run(left, right, more, request):
    assert left == right
    assert request.node.name == "test_every_row_is_run"
    SEEN.append((left, more))
    assert len(set(SEEN)) == len(SEEN)


def test_every_row_that_fails_is_named():
    @rows("value", [1, 2, 3])
    def odd(value):
        assert value % 2

    @rows("value", [2, 4])
    def all_odd(value):
        assert value % 2

    with pytest.raises(AssertionError) as one:
        odd()
    assert one.value.__notes__ == ["row: value=2"]
    with pytest.raises(ExceptionGroup, match="2 of 2 rows"):
        all_odd()


@rows("value", [1, 2])
async def test_coroutines_are_awaited(value):
    assert value


async def test_a_coroutine_that_fails_is_seen():
    @rows("value", [1])
    async def even(value):
        assert value % 2 == 0

    with pytest.raises(AssertionError):
        await even()


def test_a_table_without_rows_is_a_mistake():
    with pytest.raises(AssertionError, match="no rows"):
        rows("value", [])(lambda value: None)()
