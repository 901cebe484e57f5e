"""The agent of Woodblock: a network that chooses cuts and learns by PPO (qd-tree paper, 5.2 and 5.3).

The network has two shared layers and two outputs: the probability of each cut (the policy), and the expected reward
(the value). A lesson makes cuts more likely if their reward was better than expected. It minimises

    loss = - min(r A, clip(r, 1 - CLIP, 1 + CLIP) A) + VALUE (worth - reward)^2 - ENTROPY entropy

    A        the advantage of a cut: its reward minus the expected reward when it was chosen, normalised
    r        the cut's probability now, divided by its probability when it was chosen; clipped to limit one lesson
    worth    the expected reward now
    entropy  the entropy of the policy; rewarding it makes the agent try other cuts

JAX compiles the network, for a GPU if there is one.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hedgerow.core.arrays import Floats, Ints
from hedgerow.core.compiled_loop import compiled_loop
from hedgerow.core.errors import LayoutError
from hedgerow.learners.woodblock.episodes import Choices, Episodes, Policy, State

HIDDEN = 512  # units in each of the two layers
RATE, CLIP, ENTROPY, VALUE = 5e-4, 0.2, 0.003, 0.5  # Adam's step; PPO's clipping; weights in the loss
EPOCHS, MINIBATCH, MAX_LESSON = 2, 512, 4096  # passes in a lesson; decisions in a step; decisions in a lesson
Net = dict[str, Any]


class Batch(NamedTuple):
    """The decisions of one step of learning; `weight` is 0 for padding."""

    state: State
    cut: Ints
    likely: Floats
    advantage: Floats
    reward: Floats
    weight: Floats

    def of(self, chosen: Any) -> Batch:
        return Batch(self.state.of(chosen), *(field[chosen] for field in self[1:]))


class Agent:
    """A policy and value network with shared layers. Sizes are rounded up, so that JAX compiles for few shapes."""

    def __init__(self, features: int, cuts: int, random: np.random.Generator) -> None:
        self.shape = _padded(features), _padded(cuts)
        self.cuts = cuts
        self.random = random
        sizes = self.shape[0], HIDDEN, HIDDEN
        self.net: Net = {}
        for layer, (n, m) in enumerate(pairwise(sizes)):
            self.net[f"w{layer}"] = random.normal(0, np.sqrt(2 / n), (n, m))
            self.net[f"b{layer}"] = np.zeros(m)
        # The policy head is nearly zero: at first all legal cuts are equally likely.
        for head, m, scale in (("policy", self.shape[1], 0.01), ("value", 1, 1.0)):
            self.net[f"w_{head}"] = random.normal(0, scale / np.sqrt(HIDDEN), (HIDDEN, m))
            self.net[f"b_{head}"] = np.zeros(m)
        self.net = {name: value.astype(np.float32) for name, value in self.net.items()}
        self.state = compiled().begin(self.net)

    def policy(self) -> Policy:
        """Return a policy that draws cuts with the network's probabilities."""

        def choose(state: State) -> Choices:
            n = len(state.legal)
            if not n:
                return Choices(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
            likely, worth = compiled().forward(self.net, self._fitted(state, _bucket(n)))
            likely = np.asarray(likely)[:n, : self.cuts]
            cut = _drawn(likely, state.legal, self.random.random(n))
            return Choices(cut, likely[np.arange(n), cut].astype(np.float64), np.asarray(worth)[:n].astype(np.float64))

        return choose

    def learn(self, grown: Episodes) -> None:
        """Learn from the cuts of these trees by PPO; from at most `MAX_LESSON` of them, drawn at random."""
        if not len(grown.tree):
            return
        advantage = grown.reward - grown.choices.worth
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        drawn = self._draw(grown.rows)
        choices, ones = grown.choices.of(drawn), np.ones(len(drawn))
        lesson = Batch(
            *(grown.state.of(drawn), choices.cut, choices.likely, advantage[drawn], grown.reward[drawn], ones)
        )
        for _ in range(EPOCHS):
            self._steps(lesson)

    def _draw(self, rows: Ints) -> Ints:
        """Draw decisions for a lesson, weighted by the square root of their rows, because small nodes are alike."""
        return np.argsort(-0.5 * np.log(rows) - self.random.gumbel(size=len(rows)))[:MAX_LESSON]

    def _steps(self, lesson: Batch) -> None:
        order = self.random.permutation(len(lesson.cut))
        for first in range(0, len(order), MINIBATCH):
            batch = lesson.of(order[first : first + MINIBATCH])
            size = _bucket(len(batch.cut))
            filled = (_narrow(np.concatenate([x, np.zeros(size - len(x), x.dtype)])) for x in batch[1:])
            padded = Batch(self._fitted(batch.state, size), *filled)
            self.net, self.state = compiled().ppo(self.net, self.state, padded)

    def _fitted(self, state: State, size: int) -> State:
        """Pad the state to the network's sizes and to `size` nodes."""
        padded = [np.zeros((size, width), bool) for width in self.shape]
        for to, array in zip(padded, state, strict=True):
            to[: len(array), : array.shape[1]] = array
        return State(*padded)


def _narrow(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return x.astype(np.float32 if x.dtype.kind == "f" else np.int32)


def _padded(n: int) -> int:
    return max(1, -(-n // 64)) * 64


def _bucket(n: int) -> int:
    """Return the least of 32, 64, 128, ... that is at least `n`."""
    return max(32, 1 << (n - 1).bit_length())


@compiled_loop()
def _drawn(likely: Any, legal: Any, at: Any) -> Any:
    """Return for each node the legal cut at place `at` (0 to 1), if cuts are laid side by side by their probability."""
    cuts = np.empty(len(at), np.int64)
    for i in range(len(at)):
        until = 0.0
        for c in range(legal.shape[1]):
            if legal[i, c]:
                cuts[i] = c
                until += np.exp(likely[i, c])
                if until > at[i]:
                    break
    return cuts


class _Compiled(NamedTuple):
    begin: Any
    forward: Any
    ppo: Any


@lru_cache(maxsize=1)
def compiled() -> _Compiled:
    """Return the network and its steps, compiled by JAX for each new shape."""
    try:
        import jax
        import jax.numpy as jnp
        import optax
    except ImportError as error:
        raise LayoutError("woodblock needs JAX and optax: pip install 'hedgerow[rl]'") from error
    optimiser = optax.adam(RATE)

    def forward(net: Net, state: Any) -> Any:
        x = state.features.astype(jnp.float32)
        for layer in range(2):
            x = jax.nn.relu(x @ net[f"w{layer}"] + net[f"b{layer}"])
        logits = x @ net["w_policy"] + net["b_policy"]
        worth = (x @ net["w_value"] + net["b_value"])[:, 0]
        return jax.nn.log_softmax(jnp.where(state.legal, logits, -1e9)), worth

    def loss(net: Net, batch: Any) -> Any:
        all_likely, worth = forward(net, batch.state)
        likely = jnp.take_along_axis(all_likely, batch.cut[:, None], axis=1)[:, 0]
        entropy = -jnp.where(batch.state.legal, jnp.exp(all_likely) * all_likely, 0).sum(axis=1)
        ratio = jnp.exp(likely - batch.likely)
        gain = jnp.minimum(ratio * batch.advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * batch.advantage)
        losses = VALUE * (worth - batch.reward) ** 2 - gain - ENTROPY * entropy
        return (batch.weight * losses).sum() / batch.weight.sum()

    def ppo(net: Net, state: Any, batch: Any) -> Any:
        updates, state = optimiser.update(jax.grad(loss)(net, batch), state)
        return optax.apply_updates(net, updates), state

    return _Compiled(optimiser.init, jax.jit(forward), jax.jit(ppo))
