"""Simulated orders of a shop: a table with numbers, truth values, labels, and rules between them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..formula import Constraint, boolean, implies, reals
from ..mixed import Category

CARRIERS = ("post", "parcel", "freight")


class Orders(NamedTuple):
    """The rules, and the columns of the table by name; `pandas.DataFrame(table)` takes them.
    [`orders`][pal.datasets.orders] returns it.

    >>> from pal.datasets import orders
    >>> orders(rows=5).constraint.variables
    ('weight', 'price')
    """

    constraint: Constraint
    table: dict[str, Any]


def orders(rows: int = 2000, seed: int = 0) -> Orders:
    """Simulated orders: weight in kg, price of the delivery, carrier, express or not, insured or not.

    The rules: letters by post weigh up to 2 kg, cost up to 9 and are not insured; parcels weigh up to 20 kg; freight weighs at
    least 10 kg, and is never express. A delivery costs at least 2 and half of its weight, 6 more if it is express and 3
    more if it is insured, and at most 50. All rows satisfy them. The same seed gives the same rows.

    Args:
        rows: the number of orders.
        seed: the seed of the simulation.

    Returns:
        the rules and the table.

    >>> from pal.datasets import orders
    >>> rules, table = orders(rows=100, seed=1)
    >>> list(table), len(table["weight"])
    (['weight', 'price', 'carrier', 'express', 'insured'], 100)
    """
    random = np.random.default_rng(seed)
    parts: list[dict[str, Any]] = []
    while sum(len(part["weight"]) for part in parts) < rows:
        parts.append(_draw(4 * rows, random))
    table = {name: np.concatenate([part[name] for part in parts])[:rows] for name in parts[0]}
    return Orders(_rules(), table)


def _rules() -> Constraint:
    weight, price = reals("weight", "price")
    carrier = Category("carrier", CARRIERS)
    express, insured = boolean("express"), boolean("insured")
    least = 2 + weight / 2
    formula = (
        weight.between(0, 40)
        & (price <= 50)
        & (price >= least)
        & implies(express, price >= least + 6)
        & implies(insured, price >= least + 3)
        & implies(express & insured, price >= least + 9)
        & implies(carrier == "post", (weight <= 2) & (price <= 9) & ~insured)
        & implies(carrier == "parcel", weight <= 20)
        & implies(carrier == "freight", (weight >= 10) & ~express)
    )
    return Constraint(formula, variables=["weight", "price"])


def _draw(count: int, random: np.random.Generator) -> dict[str, Any]:
    """Orders without regard to the rules, of which those that obey them are kept."""
    carrier = random.choice(CARRIERS, size=count, p=[0.4, 0.45, 0.15])
    scale = np.select([carrier == "post", carrier == "parcel"], [0.8, 5.0], 22.0)
    weight = scale * np.exp(0.6 * random.normal(size=count))
    express = random.random(count) < np.where(carrier == "post", 0.1, 0.35)
    insured = random.random(count) < 1 / (1 + np.exp(1.5 - 0.1 * weight))
    least = 2 + weight / 2 + 6 * express + 3 * insured
    price = least + random.gamma(2.0, np.where(carrier == "freight", 4.0, 1.0))
    table = {"weight": weight, "price": price, "carrier": carrier, "express": express, "insured": insured}
    kept = ~violations(table)
    return {name: column[kept] for name, column in table.items()}


def violations(table: dict[str, Any]) -> Any:
    """Which rows violate the rules, in plain floating-point arithmetic: a check that does not ask the constraint."""
    weight, price, carrier, express, insured = (np.asarray(table[name]) for name in
                                                ("weight", "price", "carrier", "express", "insured"))
    express, insured = express.astype(bool), insured.astype(bool)
    kept = (weight >= 0) & (weight <= 40) & (price <= 50) & (price >= 2 + weight / 2 + 6 * express + 3 * insured)
    kept &= (carrier != "post") | ((weight <= 2) & (price <= 9) & ~insured)
    kept &= (carrier != "parcel") | (weight <= 20)
    kept &= (carrier != "freight") | ((weight >= 10) & ~express)
    return ~kept
