"""Table-driven tests: many cases in one test function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any


def rows(
    names: str | Sequence[str], table: Iterable[Any] | Callable[[], Iterable[Any]]
) -> Callable[[Callable[..., Any]], Any]:
    """Run a test for every row of a table; failures are reported together, each with its row.

    Like ``pytest.mark.parametrize``, for rows that need no fixture of their own: a test costs
    pytest several milliseconds, a row nothing. A table that takes long to make may be given as a
    function; it is called when the test runs, so that collecting tests does not wait for it.
    """
    wanted = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)

    @cache
    def cases() -> list[dict[str, Any]]:
        kept = table() if callable(table) else table
        every = [(row,) if len(wanted) == 1 else tuple(row) for row in kept]
        return [dict(zip(wanted, row, strict=True)) for row in every]

    def over_all(test: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(test):

            @wraps(test)
            async def run(*args: Any, **fixtures: Any) -> None:
                errors: list[Exception] = []
                for case in cases():
                    with _named(case, errors):
                        await test(*args, **fixtures, **case)
                _tell(errors, cases())
        else:

            @wraps(test)
            def run(*args: Any, **fixtures: Any) -> None:
                errors: list[Exception] = []
                for case in cases():
                    with _named(case, errors):
                        test(*args, **fixtures, **case)
                _tell(errors, cases())

        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in wanted]
        assert len(signature.parameters) - len(left) == len(wanted), f"{test}: {names}"
        vars(run)["__signature__"] = signature.replace(parameters=left)
        return run

    return over_all


@contextmanager
def _named(case: dict[str, Any], errors: list[Exception]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note("row: " + ", ".join(f"{name}={value!r}" for name, value in case.items()))
        errors.append(error)


def _tell(errors: list[Exception], cases: Sequence[object]) -> None:
    assert cases, "the table has no rows"
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(cases)} rows", errors)
