"""Tasks of one fit on a cluster, which are given up if it does not come to its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self
from weakref import WeakSet

from distributed import Client, Future, futures_of


class Tasks:
    """Gives tasks to a cluster as its client does; whatever ends the fit early gives them up.

    Without that the cluster would go on: exceptions keep futures alive, and these their tasks.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._futures: WeakSet[Future] = WeakSet()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is not None:
            # Not by the client's cancel: its scheduler fails on results that nobody holds any more.
            for future in list(self._futures):
                future.release()

    def submit(self, *given: Any, **options: Any) -> Future:
        """Give a task."""
        future = self.client.submit(*given, pure=False, **options)
        self._futures.add(future)
        return future

    def map(self, *given: Any, **options: Any) -> list[Future]:
        """Give a task for each of some items."""
        return self._keep(self.client.map(*given, pure=False, **options))

    def compute(self, lazy: Iterable[Any]) -> list[Future]:
        """Compute lazy values."""
        return self._keep(self.client.compute(list(lazy)))

    def persist(self, lazy: Iterable[Any]) -> list[Any]:
        """Compute lazy values and keep them where they are; they can be used like lazy ones."""
        persisted: list[Any] = self.client.persist(list(lazy))
        self._keep(futures_of(persisted))
        return persisted

    def _keep(self, futures: list[Future]) -> list[Future]:
        self._futures.update(futures)
        return futures
