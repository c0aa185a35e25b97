"""Units on a dask.distributed cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairgrad.bench.execute import execute, failure
from fairgrad.bench.record import Record
from fairgrad.bench.sources import code_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairgrad.bench.unit import Unit


def on_cluster(units: Sequence[Unit], address: str) -> Iterator[Record]:
    """The record of every unit, as each is finished.

    The scheduler gives the work of a machine that is lost to another one. Workers find the data
    where they run; records come back to this process, which alone writes files.

    Args:
        units: what to train.
        address: of the scheduler, such as "tcp://10.0.0.1:8786".

    Raises:
        ImportError: if dask.distributed is not installed.
    """
    try:
        from dask.distributed import Client, as_completed  # noqa: PLC0415 - the extra "bench"
    except ImportError as error:
        raise ImportError(
            "A cluster needs dask.distributed: pip install 'fairgrad[bench]'"
        ) from error
    with Client(address) as client:  # type: ignore[no-untyped-call]  # dask publishes no types
        work: dict[Any, Unit] = {_submitted(client, unit): unit for unit in units}
        for future in as_completed(work):  # type: ignore[no-untyped-call]  # as above
            yield _record_of(future, work[future])


def _submitted(client: Any, unit: Unit) -> Any:
    code = code_version(unit)
    return client.submit(execute, unit, code, key=unit.name(code), pure=False)


def _record_of(future: Any, unit: Unit) -> Record:
    try:
        record: Record = future.result()
    except Exception as error:  # noqa: BLE001 - such as a unit that kills every worker it meets
        return Record(unit, code_version(unit), **failure(error))
    return record
