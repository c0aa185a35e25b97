"""skorch's classifiers, trained to treat groups alike."""

from __future__ import annotations

from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier

from fairgrad.skorch.nets import FairNet


class FairNeuralNetClassifier(FairNet, NeuralNetClassifier):  # type: ignore[misc] # skorch has no types
    """A `skorch.NeuralNetClassifier` whose loss is made fair.

    ``fit`` and ``partial_fit`` take the sensitive values of the rows as `sensitive_features`: one
    value per row, or one column per attribute. They follow their rows through ``train_split``, are
    never shown to the module, and are not needed to predict. (A collate function of your own gets
    pairs of features and sensitive value.) The loss is `criterion`, one of PyTorch's or of
    `fairgrad.torch`, made fair with the labels and sensitive values of the rows that are trained
    on. Its settings are skorch's ``criterion__...``: ``fairness_measure`` (needed), ``epsilon``,
    ``fairness_rate`` and the others of `fairgrad.torch.FairLoss`, so that ``GridSearchCV`` can
    search them. The validation loss is the plain loss.

    ``net.criterion_`` is the fitted loss, with `levels`, `multipliers` and `cell_weights`;
    ``net.history[:, "fairness"]`` has them by name for each epoch, with the share of negative
    weights. ``partial_fit`` goes on with the multipliers there are; ``save_params`` and
    ``load_params`` keep them in `f_criterion`. In a search with metadata routing, ask with
    ``net.set_fit_request(sensitive_features=True)``; without, ``search.fit(X, y,
    sensitive_features=...)`` is enough.

    Everything else is skorch's. By its convention the module gives probabilities with the default
    criterion `torch.nn.NLLLoss`, and logits with `torch.nn.CrossEntropyLoss`; of a tuple the first
    counts, anything else but a tensor is an error.

    Raises:
        ValueError: on fitting, if sensitive values or the measure are missing, lengths differ, or
            ``train_split`` gives training rows that are not those of the data.

    Example:
        >>> import numpy as np, torch
        >>> rng = np.random.default_rng(0)
        >>> sex = rng.choice(["F", "M"], 400)
        >>> X = rng.normal(size=(400, 3)).astype(np.float32)
        >>> X[:, 0] += 2 * (sex == "M")
        >>> y = (X.sum(1) + rng.normal(size=400) > 1).astype(np.int64)
        >>> _ = torch.manual_seed(0)
        >>> net = FairNeuralNetClassifier(
        ...     torch.nn.Linear,
        ...     module__in_features=3,
        ...     module__out_features=2,
        ...     criterion=torch.nn.CrossEntropyLoss,
        ...     criterion__fairness_measure="demographic_parity",
        ...     criterion__fairness_rate=0.2,
        ...     max_epochs=30,
        ...     lr=0.1,
        ...     verbose=0,
        ... ).fit(X, y, sensitive_features=sex)
        >>> chosen = net.predict(X)
        >>> bool(abs(chosen[sex == "F"].mean() - chosen[sex == "M"].mean()) < 0.15)
        True
    """


class FairNeuralNetBinaryClassifier(FairNet, NeuralNetBinaryClassifier):  # type: ignore[misc] # skorch has no types
    """A `skorch.NeuralNetBinaryClassifier` whose loss is made fair.

    As `FairNeuralNetClassifier`, with one logit per row and labels 0 and 1 as floats.

    Example:
        >>> import numpy as np, torch
        >>> X, sex = np.eye(8, dtype=np.float32), np.arange(8) % 2
        >>> y = np.array([0, 0, 0, 1, 1, 1, 1, 0], dtype=np.float32)
        >>> net = FairNeuralNetBinaryClassifier(
        ...     torch.nn.Linear,
        ...     module__in_features=8,
        ...     module__out_features=1,
        ...     criterion__fairness_measure="accuracy_parity",
        ...     train_split=None,
        ...     max_epochs=2,
        ...     verbose=0,
        ... ).fit(X, y, sensitive_features=sex)
        >>> net.predict_proba(X).shape
        (8, 2)
    """
