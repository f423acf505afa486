"""The node models of a logistic model tree as formulas over its attributes."""

from __future__ import annotations

from dataclasses import dataclass

from .._inputs.arrays import Floats
from .._inputs.regressors import Regressor, list_regressors
from .conditions import short
from .formulas import Formula, Formulas


@dataclass(frozen=True)
class AttributeFormulas(Formulas):
    """One formula per node for two classes, the log-odds of the second; else one per class.

    Attributes have all kinds of units: slopes are written with digits that matter, one more than
    there are decimals, and only those that are 0 are left out.
    """

    def explain_letters(self) -> str:
        if len(self.classes) == 2:
            text = f"p: probability of {self.classes[1]}"
        else:
            text = "p[c]: probability of class c; the p of all classes are divided by their sum"
        has_indicators = any(each.category is not None for each in self._regressors)
        return f"{text}, [a = b]: 1 where that holds, else 0" if has_indicators else text

    def of_node(self, node: int) -> list[Formula]:
        if len(self.classes) == 2:
            return [self._formula("logit p", self.tree.parameters[node, 0])]
        rows = self.tree.coefficients(node)
        rows[:, 0] -= rows[:, 0].mean()
        lefts = [f"ln p[{name}]" for name in self.classes]
        width = max(map(len, lefts))
        return [
            self._formula(f"{left:<{width}}", row) for left, row in zip(lefts, rows, strict=True)
        ]

    def vanishes(self, coefficient: float) -> bool:
        return coefficient == 0.0

    def write_size(self, size: float) -> str:
        return f"{size:.{self.decimals + 1}g}"

    def _formula(self, left: str, coefficients: Floats) -> Formula:
        intercept, *slopes = coefficients.tolist()
        names = map(self._name, self._regressors)
        # Where attributes give no regressor, there is a slope of 0 that has no name.
        terms = zip(slopes, names, strict=False)
        return Formula(left, self.write_sum([(intercept, ""), *terms]))

    @property
    def _regressors(self) -> list[Regressor]:
        return list_regressors(self.tree.attributes)

    def _name(self, regressor: Regressor) -> str:
        column = self.tree.attributes.columns[regressor.attribute]
        if regressor.category is None or column.categories is None:
            return short(column.name)
        return f"[{short(column.name)} = {short(column.categories[regressor.category])}]"
