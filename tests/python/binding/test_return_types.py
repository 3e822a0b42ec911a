"""The named tuples of results, those of out= and their place in pytrees."""

from __future__ import annotations

import rushlight as torch
from rushlight.utils import _pytree


def test_results_with_out_have_a_type_of_their_own():
    x = torch.tensor([[1.0, 3.0], [2.0, 0.0]])
    plain = x.max(0)
    made = torch.max(x, 0, out=(torch.empty(0), torch.empty(0, dtype=torch.int64)))
    assert type(plain) is torch.return_types.max
    assert type(made) is torch.return_types.max_out
    assert made.values.tolist() == [2.0, 3.0] and made.indices.tolist() == [1, 0]
    assert (made.n_fields, made.n_sequence_fields, made.n_unnamed_fields) == (2, 2, 0)


def test_every_operator_with_named_results_and_out_has_both():
    names = {kind.__name__ for kind in torch.return_types.all_return_types}
    for row in torch._C._operator_table():
        if {"out", "function"} <= set(row["faces"]) and row["name"] in names:
            assert f"{row['name']}_out" in names
    assert {"linalg_svd_out", "sort_out", "frexp_out", "aminmax_out"} <= names


def test_classes_registered_by_hand(monkeypatch):
    kind = torch.return_types.max
    monkeypatch.setattr(_pytree, "SUPPORTED_NODES", _pytree.SUPPORTED_NODES)
    torch.return_types.pytree_register_structseq(kind)
    try:
        leaves, spec = _pytree.tree_flatten(torch.ones(2, 2).max(0))
        assert len(leaves) == 2 and isinstance(_pytree.tree_unflatten(leaves, spec), kind)
    finally:
        _pytree._deregister_pytree_node(kind)
