"""The experiments that decide between causes, most decisive first (knowledge/experiments.yaml). Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from cudnn_doctor.diagnose.conditions import fits
from cudnn_doctor.logs.patterns import ExperimentForm, KnownExperiment
from cudnn_doctor.model.explanation import Experiment, Verdict

SPENT = 0.4  # of a cause's weight that is left once an experiment tests it


def experiments(
    verdict: Verdict,
    candidates: Mapping[str, float],
    facts: Mapping[str, str],
    tokens: Collection[str],
    table: Sequence[KnownExperiment],
    limit: int,
) -> tuple[Experiment, ...]:
    """At most `limit` experiments.

    candidates: possible causes with their weights. An experiment is worth the weight of the causes that it tests, less
    its rank; what one has tested weighs less for the next.
    """
    weights = dict(candidates)
    proposed = [e for e in table if verdict in e.verdicts]
    open_ = [(e, form) for e in proposed if (form := _form(e, facts, tokens)) is not None]
    chosen: list[Experiment] = []
    while open_ and len(chosen) < limit:
        best, form = max(open_, key=lambda pair: _worth(pair[0], weights, tokens))
        if _worth(best, weights, tokens) <= 0:
            break
        open_ = [pair for pair in open_ if pair[0] is not best]
        for cause in best.decides:
            weights[cause] = weights.get(cause, 0) * SPENT
        chosen.append(Experiment(id=best.id, text=form.text, command=form.command, outcome=form.outcome))
    return tuple(chosen)


def _worth(experiment: KnownExperiment, weights: Mapping[str, float], tokens: Collection[str]) -> float:
    tested = sum(weights.get(cause, 0) for cause in experiment.decides)
    if any(t in tokens for t in experiment.when):  # made for what the text says
        tested = tested * 1.5 + 3
    return tested / (1 + 0.25 * experiment.rank)


def _form(experiment: KnownExperiment, facts: Mapping[str, str], tokens: Collection[str]) -> ExperimentForm | None:
    """How this person does it; None where it does not apply or is answered."""
    if experiment.when and not any(t in tokens for t in experiment.when):
        return None
    if any(t in tokens or (t.startswith("fact:") and t[5:] in facts) for t in experiment.unless):
        return None
    return next((form for form in experiment.forms if fits(form.condition, facts, tokens)), None)
