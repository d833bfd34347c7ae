"""The search for what serves a workload best: patches, hints, knobs and environments.

Optuna proposes, `placewise.study` simulates, and a proposal is compared with the baseline seed by seed. What
is best of many by chance is not best: the front is simulated once more with seeds that the search has not
seen, and only what these say is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from ._program import Error, InputError, StrPath
from ._study import Executor, study
from ._table import Row, Table

if TYPE_CHECKING:
    import optuna

FEWER = "-"
"""Before a figure that has no good direction, of which less is wanted."""

BASELINE = "baseline"
NO_ENVIRONMENT = "none"


@dataclass(frozen=True)
class Trial:
    """A policy and an environment, and how the figures change under them."""

    policy: str
    """As `compare` takes it."""
    environment: str
    changes: Mapping[str, Row]
    """By objective: a row as `compare` has it, with ``change_pct`` positive where it is better."""

    def gain(self, objective: str) -> float:
        """In percent of the baseline's figure, positive where it is better."""
        change = float(self.changes[objective]["change_pct"] or 0.0)
        return 0.0 - change if objective.startswith(FEWER) else change

    def beats_baseline(self, objective: str) -> bool:
        """Is it better by more than noise?"""
        return self.gain(objective) > 0 and self.changes[objective]["significant"] is True


@dataclass(frozen=True)
class Tuned:
    """What a search has found."""

    objectives: Sequence[str]
    front: Sequence[Trial]
    """Whatever of the baseline and the trials no other beats in every objective (Pareto), with the
    figures of the seeds that the search has not seen."""
    tried: int
    """How many different trials there were."""

    @property
    def beats_baseline(self) -> bool:
        """Is there a trial that is better in some objective, by more than noise?"""
        return any(trial.beats_baseline(name) for trial in self.front for name in self.objectives)

    def __str__(self) -> str:
        if not self.beats_baseline:
            return f"nothing of {self.tried} tried beats the baseline by more than noise"
        lines = [
            f"{trial.policy} {trial.environment}: "
            + ", ".join(f"{name} {trial.gain(name):+.1f} %" for name in self.objectives)
            for trial in self.front
        ]
        return "\n".join(lines)

    def table(self) -> Table:
        """A row for each objective of each trial of the front, as `compare` has them."""
        return Table([trial.changes[name] for trial in self.front for name in self.objectives])

    def plot(self, path: StrPath) -> None:
        """Draws the front for the first two objectives, in percent of the baseline (SVG, PNG, PDF)."""
        if len(self.objectives) < 2:
            raise InputError("objectives: a picture of the front takes two")
        from matplotlib import rcParams
        from matplotlib.figure import Figure

        across, up = self.objectives[:2]
        rcParams.update({"svg.hashsalt": "placewise", "svg.fonttype": "none"})
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        axes.axhline(0, color="0.8")
        axes.axvline(0, color="0.8")
        for trial in self.front:
            point = (trial.gain(across), trial.gain(up))
            axes.plot(*point, "o", color="tab:blue")
            axes.annotate(trial.policy, point, xytext=(4, 4), textcoords="offset points", fontsize=8)
        axes.set_xlabel(f"{across}, change in % (more is better)")
        axes.set_ylabel(f"{up}, change in % (more is better)")
        figure.savefig(path, metadata={"Date": None} if str(path).endswith(".svg") else None)


def tune(
    workload: StrPath,
    *,
    results: StrPath,
    objectives: Sequence[str],
    machine: str = "host",
    kernel: Optional[str] = None,
    case: Optional[str] = None,
    policies: Sequence[str] = (),
    hints: Sequence[str] = (),
    knobs: Optional[Mapping[str, Sequence[int]]] = None,
    environments: Sequence[str] = (),
    trials: int = 50,
    runs: int = 5,
    seed: int = 1,
    quick: bool = False,
    executor: Optional[Executor] = None,
) -> Tuned:
    """Searches for what makes a workload better than under the kernel as it is.

    ``objectives`` are figures of the workload, or with a ``-`` before them counters of which less is wanted,
    such as ``-migrations_wakeup``. What is tried is one of ``policies`` (patches)
    or none, any of ``hints``, for each of ``knobs`` one of its values or the kernel's own, and one of
    ``environments`` (files with cpusets, quotas and so on) or none; ``trials`` times, with ``runs`` runs
    each, from ``seed`` on. All simulations are kept in the directory ``results``, so that the same call
    takes them from there. Changes are in percent and positive where they are better.
    """
    optuna = _optuna()
    space = _Space(policies, hints, dict(knobs or {}), environments)
    plan = {
        "machines": [machine],
        "kernels": [kernel] if kernel else None,
        "quick": quick,
        "stats": True,
        "runs": runs,
        "workload": [{"name": str(workload), **({"cases": [case]} if case else {})}],
    }
    ask = _Asked(plan, objectives, results, executor)
    sampler = optuna.samplers.TPESampler(seed=seed)
    search = optuna.create_study(directions=["maximize"] * len(objectives), sampler=sampler)
    known: dict[tuple[str, str], Trial] = {}
    for first in range(0, trials, ROUND):
        asked = [search.ask() for _ in range(first, min(first + ROUND, trials))]
        named = [space.name(trial) for trial in asked]
        new = list(dict.fromkeys(name for name in named if name not in known))
        known.update(ask.changes(new, seed))
        for trial, name in zip(asked, named):
            if name in known:
                search.tell(trial, [known[name].gain(objective) for objective in objectives])
            else:  # It cannot be simulated.
                search.tell(trial, state=optuna.trial.TrialState.FAIL)
    best = _front(list(known.values()), objectives)
    # Seeds that no trial has seen.
    again = ask.changes([(trial.policy, trial.environment) for trial in best], seed + runs)
    return Tuned(objectives, _front(list(again.values()), objectives), len(known))


ROUND = 8
"""Trials that are proposed together, and simulated side by side."""


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise Error("optuna is not installed; pip install placewise[tune]") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


@dataclass(frozen=True)
class _Space:
    """What may be tried."""

    policies: Sequence[str]
    hints: Sequence[str]
    knobs: Mapping[str, Sequence[int]]
    environments: Sequence[str]

    def name(self, trial: optuna.Trial) -> tuple[str, str]:
        """The policy and the environment that a trial proposes."""
        policy = trial.suggest_categorical("policy", ["", *self.policies])
        hints = [hint for hint in self.hints if trial.suggest_categorical(f"hint:{hint}", [False, True])]
        parts = [policy] if policy else []
        parts += ["hint:" + "+".join(hints)] if hints else []
        for knob, values in self.knobs.items():
            value = trial.suggest_categorical(knob, ["", *map(str, values)])
            parts += [f"set:{knob}={value}"] if value else []
        environments = [NO_ENVIRONMENT, *self.environments]
        environment = trial.suggest_categorical("environment", environments)
        return ",".join(parts) or BASELINE, environment


@dataclass(frozen=True)
class _Asked:
    """What is simulated of each trial."""

    plan: Mapping[str, Any]
    objectives: Sequence[str]
    results: StrPath
    executor: Optional[Executor]

    def changes(self, named: Sequence[tuple[str, str]], seed: int) -> dict[tuple[str, str], Trial]:
        """Of the trials that could be simulated; the baseline is one of them."""
        found: dict[tuple[str, str], dict[str, Row]] = {}
        # What is compared with is the first combination, which is the baseline in no environment.
        for environment in dict.fromkeys([NO_ENVIRONMENT, *(name[1] for name in named)]):
            policies = [name[0] for name in named if name[1] == environment]
            plan = {
                **self.plan,
                "seed": seed,
                "environments": list(dict.fromkeys([NO_ENVIRONMENT, environment])),
                "policies": list(dict.fromkeys([BASELINE, *policies])),
            }
            rows = study(plan, results=self.results, executor=self.executor, changes=True)
            for row in rows:
                if row["environment"] == environment:
                    name = (str(row["policy"]), environment)
                    found.setdefault(name, {})[str(row["metric"])] = row
        self._check(found.get((BASELINE, NO_ENVIRONMENT), {}))
        return {name: self._trial(name, rows) for name, rows in found.items()}

    def _trial(self, name: tuple[str, str], rows: Mapping[str, Row]) -> Trial:
        return Trial(*name, {objective: rows[_figure(objective)] for objective in self.objectives})

    def _check(self, baseline: Mapping[str, Row]) -> None:
        for objective in self.objectives:
            row = baseline.get(_figure(objective))
            if row is None:
                raise InputError(f"objectives: {objective} is no figure of this workload")
            if (row["better"] is None) != objective.startswith(FEWER):
                problem = f"write {FEWER}{_figure(objective)} for less of a figure without a direction"
                raise InputError(f"objectives: {objective}: {problem}, and the name of others alone")


def _figure(objective: str) -> str:
    return objective.removeprefix(FEWER)


def _front(trials: Sequence[Trial], objectives: Sequence[str]) -> list[Trial]:
    """Those that no other is better than in one objective and as good as in all."""

    def gains(trial: Trial) -> list[float]:
        return [trial.gain(objective) for objective in objectives]

    def is_beaten(one: Trial) -> bool:
        return any(
            gains(other) != gains(one) and all(o >= g for o, g in zip(gains(other), gains(one)))
            for other in trials
        )

    return [trial for trial in trials if not is_beaten(trial)]
