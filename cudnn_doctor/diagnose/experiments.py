"""The experiments that decide between causes, most decisive first (knowledge/experiments.yaml). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from cudnn_doctor.diagnose.conditions import fits

USUAL = ("cause-found", "undetermined")
SPENT = 0.4  # of a cause's weight that is left once an experiment tests it


def experiments(
    verdict: str,
    candidates: Mapping[str, float],
    facts: Mapping[str, str],
    tokens: Collection[str],
    table: Sequence[Mapping[str, Any]],
    limit: int,
) -> list[dict[str, str]]:
    """At most `limit` experiments as {id, text, command, outcome}.

    candidates: possible causes with their weights. An experiment is worth the weight of the causes that it tests, less
    its rank; what one has tested weighs less for the next.
    """  # fmt: skip
    weights = dict(candidates)
    proposed = [e for e in table if verdict in e.get("verdicts", USUAL)]
    open_ = [(e, form) for e in proposed if (form := _form(e, facts, tokens)) is not None]
    chosen: list[dict[str, str]] = []
    while open_ and len(chosen) < limit:
        best, form = max(open_, key=lambda pair: _worth(pair[0], weights, tokens))
        if _worth(best, weights, tokens) <= 0:
            break
        open_ = [pair for pair in open_ if pair[0] is not best]
        for cause in best["decides"]:
            weights[cause] = weights.get(cause, 0) * SPENT
        chosen.append({"id": best["id"], **{k: form[k] for k in ("text", "command", "outcome") if form.get(k)}})
    return chosen


def _worth(experiment: Mapping[str, Any], weights: Mapping[str, float], tokens: Collection[str]) -> float:
    tested = sum(weights.get(cause, 0) for cause in experiment["decides"])
    if any(t in tokens for t in experiment.get("when", ())):  # made for what the text says
        tested = tested * 1.5 + 3
    return tested / (1 + 0.25 * float(experiment["rank"]))


def _form(
    experiment: Mapping[str, Any], facts: Mapping[str, str], tokens: Collection[str]
) -> Mapping[str, str] | None:  # fmt: skip
    """How this person does it; None where it does not apply or is answered."""
    when = experiment.get("when")
    if when and not any(t in tokens for t in when):
        return None
    if any(t in tokens or (t.startswith("fact:") and t[5:] in facts) for t in experiment.get("unless", ())):
        return None
    return next(_fitting(experiment["forms"], facts, tokens), None)


def _fitting(
    forms: Sequence[Mapping[str, Any]], facts: Mapping[str, str], tokens: Collection[str]
) -> Iterator[Mapping[str, Any]]:  # fmt: skip
    return (form for form in forms if fits(form.get("for", {}), facts, tokens))
