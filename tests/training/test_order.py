"""The stream's order, as arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.errors import UsageError
from tests.effort import examples
from training.order import BLOCK, WINDOW, Order, Position, permutation, share


def rows_of(n: int, every: int) -> np.ndarray:
    """Rows of a cache of n rows, every `every`-th left out."""
    rows = np.arange(n)
    return rows[rows % every != 0] if every > 1 else rows


sizes = st.integers(1, 40_000)
holes = st.sampled_from([1, 2, 3, 7])


@settings(max_examples=examples(40))
@given(n=st.integers(3, 40_000), every=holes, seed=st.integers(0, 99), epoch=st.integers(0, 3))
def test_every_epoch_is_a_permutation_of_all_rows(n: int, every: int, seed: int, epoch: int) -> None:
    rows = rows_of(n, every)
    order = Order(rows, "digest", seed)
    taken = order.take(epoch * len(rows), (epoch + 1) * len(rows))
    assert np.array_equal(np.sort(taken), rows)


@settings(max_examples=examples(40))
@given(n=st.integers(3, 40_000), every=holes, data=st.data())
def test_any_piece_of_the_stream_equals_that_piece_of_the_whole(n: int, every: int, data: st.DataObject) -> None:
    rows = rows_of(n, every)
    whole = Order(rows, "digest", 1).take(0, 2 * len(rows))
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, len(whole)))
    assert np.array_equal(Order(rows, "digest", 1).take(start, stop), whole[start:stop])


@pytest.mark.parametrize("world", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_ranks_and_workers_read_the_same_global_batches(world: int, workers: int) -> None:
    order, batch, batches = Order(np.arange(5000), "digest", 3), 24, 500  # 12,000 places: into the third epoch
    expected = order.take(0, batch * batches).reshape(batches, batch)
    seen: list[np.ndarray] = [np.empty(0)] * batches
    per_rank = [[list(share(batches, batch, rank, world, w, workers)) for w in range(workers)] for rank in range(world)]
    for k in range(batches):  # what a DataLoader does: workers in turn
        parts = [order.take(*per_rank[rank][k % workers][k // workers]) for rank in range(world)]
        seen[k] = np.concatenate(parts)
    assert np.array_equal(np.stack(seen), expected)


def test_a_batch_that_ranks_cannot_share_is_refused() -> None:
    with pytest.raises(UsageError, match="multiple"):
        list(share(1, 8, 0, 3, 0, 1))


@settings(max_examples=examples(40))
@given(place=st.integers(0, 10**7), n=sizes)
def test_positions_and_places_round_trip(place: int, n: int) -> None:
    order = Order(np.arange(n), "d", 0)
    assert order.place(order.position(place)) == place


def test_a_position_of_a_larger_table_is_refused() -> None:
    with pytest.raises(UsageError, match="another table"):
        Order(np.arange(10), "d", 0).place(Position(0, 11))


def test_order_depends_on_digest_seed_and_epoch_and_on_nothing_else() -> None:
    def first(digest: str, seed: int, epoch: int) -> list[int]:
        return Order(np.arange(3000), digest, seed).take(epoch * 3000, epoch * 3000 + 50).tolist()

    orders = [first("a", 0, 0), first("b", 0, 0), first("a", 1, 0), first("a", 0, 1)]
    assert len({tuple(o) for o in orders}) == 4
    assert first("a", 0, 0) == orders[0]


def test_a_window_mixes_its_blocks_and_no_more() -> None:
    n = BLOCK * WINDOW * 3
    window = Order(np.arange(n), "d", 0).take(0, BLOCK * WINDOW)
    blocks = window // BLOCK
    assert len(set(blocks.tolist())) == WINDOW
    assert len(set(blocks[:200].tolist())) > WINDOW // 2


def test_permutation_is_this_one_on_every_machine() -> None:
    # splitmix64 worked out with Python's integers
    def mix(i: int, seed: int) -> int:
        m = (1 << 64) - 1
        z = (i * 0x9E3779B97F4A7C15 + seed) & m
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & m
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & m
        return z ^ (z >> 31)

    import hashlib

    seed = int.from_bytes(hashlib.sha256(b"k\x007").digest()[:8], "big")
    assert permutation(1000, "k", 7).tolist() == sorted(range(1000), key=lambda i: mix(i + 1, seed))
    assert permutation(0, "k").tolist() == []


def test_every_row_comes_everywhere() -> None:
    """Over 400 seeds, row 0 of 8 stands at each place near 50 times: chi-square below its 0.1 % bound."""
    places = [int(np.flatnonzero(permutation(8, "u", s) == 0)[0]) for s in range(400)]
    counts = np.bincount(places, minlength=8)
    assert ((counts - 50) ** 2 / 50).sum() < 24.3
