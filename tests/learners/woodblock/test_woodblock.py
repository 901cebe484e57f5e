"""The agent: where its steps lead, and the budgets."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench.options import Options
from bench.suites import fig3
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import Compare, col, lit
from hedgerow.learners.woodblock import agent as agent_module
from hedgerow.learners.woodblock.agent import CLIP, Agent, Batch
from hedgerow.learners.woodblock.episodes import Forest, State
from hedgerow.learners.woodblock.woodblock import Reward, Woodblock
from tests.support.tree_problems import sampled

SMALL = Woodblock(max_trees=40, at_once=8, budget_seconds=None)


# --- steps ----------------------------------------------------------------------------------------


def a_batch(r: np.random.Generator, n: int, agent: Agent) -> Batch:
    features, cuts = agent.shape
    legal = r.random((n, cuts)) < 0.3
    legal[:, 0] = True
    cut = np.array([r.choice(np.flatnonzero(row)) for row in legal])
    weight = (np.arange(n) < n - 3).astype(float)  # the last three only fill it up
    state = State(r.random((n, features)) < 0.5, legal)
    likely = np.asarray(agent_module.compiled().forward(agent.net, state)[0])[np.arange(n), cut]
    own = (cut, likely, r.normal(size=n), r.random(n), weight)
    return Batch(state, *map(agent_module._narrow, own))


def test_steps_follow_the_rewards() -> None:
    """PPO makes good cuts likelier and bad ones rarer, and learns what is rewarded."""
    agent, compiled = Agent(70, 10, np.random.default_rng(0)), agent_module.compiled()
    batch = a_batch(np.random.default_rng(1), 64, agent)
    net, state = agent.net, agent.state
    for _ in range(5):
        net, state = compiled.ppo(net, state, batch)
    real = batch.weight > 0
    likely, worth = (np.asarray(x) for x in compiled.forward(net, batch.state))
    gained = likely[np.arange(64), batch.cut] - batch.likely
    good = batch.advantage > 0
    assert gained[real & good].mean() > 0
    assert gained[real & ~good].mean() < 0
    before = np.asarray(compiled.forward(agent.net, batch.state)[1])
    assert np.square(worth - batch.reward)[real].mean() < np.square(before - batch.reward)[real].mean()


def test_what_must_not_count_moves_nothing() -> None:
    """Neither decisions that only fill a batch up, nor advantages beyond PPO's clipping."""
    agent, ppo = Agent(70, 10, np.random.default_rng(0)), agent_module.compiled().ppo
    batch = a_batch(np.random.default_rng(1), 64, agent)

    def stepped(batch: Batch) -> list[list[float]]:
        return [np.asarray(value).tolist() for value in ppo(agent.net, agent.state, batch)[0].values()]

    filled = batch._replace(advantage=batch.advantage + 9 * (batch.weight == 0))
    assert stepped(filled) == stepped(batch)
    clipped = batch._replace(likely=batch.likely - 2 * CLIP, advantage=np.abs(batch.advantage))
    assert stepped(clipped._replace(advantage=2 * clipped.advantage)) == stepped(clipped)
    assert stepped(batch._replace(advantage=2 * batch.advantage)) != stepped(batch)


def test_only_legal_cuts_are_drawn_and_all_of_them() -> None:
    agent = Agent(5, 7, np.random.default_rng(0))
    legal = np.zeros((400, 7), bool)
    legal[:, [2, 6]] = True
    choices = agent.policy()(State(np.zeros((400, 5), bool), legal))
    assert sorted(set(choices.cut.tolist())) == [2, 6]
    assert 120 < (choices.cut == 2).sum() < 280  # at first all are about as likely
    assert np.allclose(choices.likely, np.log(0.5), atol=0.05)


# --- what comes of it -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fig_3(seed: int) -> None:
    params = {"max_trees": 200, "budget_seconds": 20}
    (line,) = fig3.run(Options("quick", seed, learners=("woodblock",), params=params))
    assert line["rows_read"] <= 0.112


@pytest.mark.long
@pytest.mark.parametrize("reward", ["skipped", "log"])
def test_learning_helps(reward: Reward) -> None:
    """New trees become better than those of the first rounds, which know nothing, and the best never becomes worse."""
    _, problem = sampled(6)
    curve = replace(SMALL, max_trees=600, reward=reward).search(problem).curve
    assert all(a.best >= b.best and a.trees < b.trees for a, b in pairwise(curve))
    means = [point.mean for point in curve]
    assert np.mean(means[-5:]) < np.mean(means[:2]) - 0.01


def test_half_the_rows_read_are_rewarded_alike_everywhere() -> None:
    """The shares of the rows skipped differ by 0.25 and by 0.0025, and no reward is infinite."""
    _, problem = sampled(6)
    forest = Forest.of(problem, problem.sample_block_rows)
    agent = Agent(forest.pieces.width, len(problem.cuts), np.random.default_rng(0))
    grown = forest.grown(agent.policy(), 1)
    found = replace(grown, reward=1 - np.array([0.5, 0.25, 0.005, 0.0025, 0.0])).with_log_reward().reward
    assert found[1] - found[0] == pytest.approx(found[3] - found[2])
    assert (np.diff(found) > 0).all() and np.isfinite(found).all()


def test_budgets() -> None:
    _, problem = sampled(6)
    unlimited = replace(SMALL, max_trees=None)
    assert len(replace(unlimited, max_trees=24).search(problem).curve) == 3
    assert len(replace(unlimited, budget_seconds=0).search(problem).curve) == 1
    assert len(replace(unlimited, target=1.0).search(problem).curve) == 1


def test_the_curve_says_what_the_layout_reads() -> None:
    _, problem = sampled(6)
    result = SMALL.search(problem)
    assert result.curve[-1].best == pytest.approx(problem.reads(result.layout))


def test_queries_that_weigh_nothing() -> None:
    table = Sample.of_table(pa.table({"x": list(range(100))}))
    assert SMALL.fit(Problem.build(table, (Compare(col("x"), "<", lit(50)),), 10, (0.0,))).blocks >= 1


def test_interrupted_it_has_the_best_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    _, problem = sampled(6)
    learn, calls = Agent.learn, []

    def interrupting(self: Agent, grown: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        learn(self, grown)

    monkeypatch.setattr(Agent, "learn", interrupting)
    found = replace(SMALL, max_trees=None).search(problem)
    assert len(found.curve) == 2
    assert found.layout.blocks > 1
    assert problem.reads(found.layout) < 1
