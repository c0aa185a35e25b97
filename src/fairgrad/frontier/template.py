"""Any estimator with an epsilon, alone or as the last step of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from fairgrad.sklearn import FairGradClassifier

if TYPE_CHECKING:
    from fairgrad.frontier.parts import Part


@dataclass(frozen=True, eq=False)
class Template:
    """An estimator to be fitted for every epsilon.

    Attributes:
        estimator: unfitted; never changed.
        parameter: the name of its epsilon.
    """

    estimator: Any
    parameter: str

    @property
    def step(self) -> str:
        """What precedes the parameters of the last step: "" if the estimator is no pipeline."""
        return f"{self.estimator.steps[-1][0]}__" if isinstance(self.estimator, Pipeline) else ""

    @property
    def last(self) -> Any:
        """The last step, or the estimator itself."""
        return self.estimator[-1] if isinstance(self.estimator, Pipeline) else self.estimator

    @property
    def is_stackable(self) -> bool:
        """Whether all models can be trained as one stack."""
        return isinstance(self.last, FairGradClassifier) and self.parameter.endswith("epsilon")

    @property
    def takes_infinity(self) -> bool:
        """Whether an infinite epsilon is the plain model, as for this library's estimators."""
        own = "fairness_measure" in self.last.get_params(deep=False)
        return own and self.parameter.endswith("epsilon")

    def parameter_of_last(self, name: str) -> Any:
        """A parameter of the last step; None if it has none of that name."""
        return self.last.get_params(deep=False).get(name)

    def variant(self, **changed: Any) -> Any:
        """A copy with other parameters of the last step; those it does not have are left out."""
        known = self.last.get_params(deep=False)
        changed = {f"{self.step}{name}": v for name, v in changed.items() if name in known}
        return clone(self.estimator).set_params(**changed)

    def fit_arguments(self, **arguments: Any) -> dict[str, Any]:
        """Arguments of fit as the estimator takes them; those that are None are left out."""
        prefix = "" if get_config()["enable_metadata_routing"] else self.step
        return {f"{prefix}{name}": v for name, v in arguments.items() if v is not None}


def as_template(estimator: Any, parameter: str | None) -> Template:
    """The estimator, or the library's own if there is none.

    Raises:
        ValueError: if it has no such parameter.
    """
    template = Template(FairGradClassifier() if estimator is None else estimator, "")
    name = template.step + "epsilon" if parameter is None else parameter
    if name not in template.estimator.get_params():
        raise ValueError(
            f"estimator: expected one with a parameter {name!r}, got "
            f"{type(template.estimator).__name__} with {sorted(template.estimator.get_params())}; "
            "name the one that sets the slack in parameter=."
        )
    return Template(template.estimator, name)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Models that share the same preprocessing.

    Attributes:
        models: one per epsilon and seed.
        steps: fitted preprocessing steps, if the models are the last steps of pipelines.
        last_name: the name of the last step.
    """

    models: list[Any]
    steps: list[tuple[str, Any]] = field(default_factory=list)
    last_name: str = ""

    def predict(self, X: Any) -> list[Any]:
        """The predictions of all models; what is shared is computed once."""
        X = self.prepare(X)
        return [model.predict(X) for model in self.models]

    def prepare(self, X: Any) -> Any:
        """Features as the models take them."""
        return Pipeline(self.steps).transform(X) if self.steps else X

    def prepared(self, part: Part) -> Part:
        """Rows with their features as the models take them."""
        return replace(part, X=self.prepare(part.X))

    def estimator(self, position: int) -> Any:
        """One model with all that comes before it."""
        model = self.models[position]
        return Pipeline([*self.steps, (self.last_name, model)]) if self.steps else model
