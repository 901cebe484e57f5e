"""The agent of Woodblock (the qd-tree paper's 5.2 and 5.3): a network that says which cut to take, and PPO.

Policy and value are two heads on the same two layers. Of a cut that was taken one knows how likely it was then and how
much better than expected it went (the advantage); what went well is made more likely, within limits:

    loss = - min(r A, clip(r, 1 - CLIP, 1 + CLIP) A) + VALUE (worth - reward)^2 - ENTROPY entropy      r: now / then

JAX compiles it, for a GPU where it finds one.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from hedgerow.core.errors import LayoutError
from hedgerow.core.pruning.block_stats import Ints
from hedgerow.learners.woodblock.episodes import Episodes, Floats, Policy, Said, Seen, State

HIDDEN = 512  # units in each of two layers
RATE, CLIP, ENTROPY, VALUE = 5e-4, 0.2, 0.003, 0.5  # Adam's step; PPO's clipping; weights in the loss
RATIOS, FLOOR = 3.0, 1e-3  # at first a cut is as likely as its gain ratio, and so much, to this power
EPOCHS, MINIBATCH, LESSON = 2, 512, 4096  # decisions in a step and, at most, in a lesson
Net = dict[str, Any]


class Batch(NamedTuple):
    """What is learned from in one step; `weight` is 0 for rows that only fill it up."""

    state: State
    cut: Ints
    likely: Floats
    advantage: Floats
    reward: Floats
    weight: Floats

    def of(self, chosen: Any) -> Batch:
        return Batch(self.state.of(chosen), *(field[chosen] for field in self[1:]))


class Agent:
    """Policy and value network with shared layers, and how they learn. Sizes are rounded up, so that JAX has few
    shapes to compile."""

    def __init__(self, features: int, cuts: int, random: np.random.Generator) -> None:
        self.shape = _padded(features), _padded(cuts)
        self.cuts = cuts
        self.random = random
        sizes = self.shape[0], HIDDEN, HIDDEN
        self.net: Net = {}
        for layer, (n, m) in enumerate(pairwise(sizes)):
            self.net[f"w{layer}"] = random.normal(0, np.sqrt(2 / n), (n, m))
            self.net[f"b{layer}"] = np.zeros(m)
        # A policy head of nearly nothing: at first all legal cuts are equally likely, or as their gain ratios say.
        for head, m, scale in (("policy", self.shape[1], 0.01), ("value", 1, 1.0)):
            self.net[f"w_{head}"] = random.normal(0, scale / np.sqrt(HIDDEN), (HIDDEN, m))
            self.net[f"b_{head}"] = np.zeros(m)
        self.net["ratios"] = np.array(RATIOS)
        self.net = {name: value.astype(np.float32) for name, value in self.net.items()}
        self.state = compiled().begin(self.net)

    def policy(self) -> Policy:
        """Cuts drawn from what the network says of each node."""

        def choose(seen: Seen) -> Said:
            state = seen.state
            n = len(state.legal)
            if not n:
                return Said(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
            likely, worth = compiled().forward(self.net, self._fitted(state, _bucket(n)))
            likely = np.asarray(likely)[:n, : self.cuts]
            cut = _drawn(likely, state.legal, self.random.random(n))
            return Said(cut, likely[np.arange(n), cut].astype(np.float64), np.asarray(worth)[:n].astype(np.float64))

        return choose

    def learn(self, grown: Episodes) -> None:
        """PPO on the cuts of some trees; of very many on a part."""
        if not len(grown.tree):
            return
        advantage = grown.reward - grown.said.worth
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        own = self._some(grown.rows)
        said = grown.said.of(own)
        whole = Batch(
            *(grown.state.of(own), said.cut, said.likely, advantage[own], grown.reward[own], np.ones(len(own)))
        )
        for _ in range(EPOCHS):
            self._steps(compiled().ppo, whole)

    def imitate(self, tree: Episodes) -> None:
        """Make the cuts of this tree more likely."""
        own = self._some(tree.rows)
        own = own[tree.state.legal[own, tree.said.cut[own]]]
        if len(own):
            none = np.zeros(len(own))
            lesson = Batch(tree.state.of(own), tree.said.cut[own], none, none, tree.reward[own], none + 1)
            self._steps(compiled().clone, lesson)

    def _some(self, rows: Ints) -> Ints:
        """As many as a lesson has, drawn by the root of their rows: small nodes are alike."""
        return np.argsort(-0.5 * np.log(rows) - self.random.gumbel(size=len(rows)))[:LESSON]

    def _steps(self, step: Any, whole: Batch) -> None:
        order = self.random.permutation(len(whole.cut))
        for first in range(0, len(order), MINIBATCH):
            own = whole.of(order[first : first + MINIBATCH])
            size = _bucket(len(own.cut))
            filled = (_narrow(np.concatenate([x, np.zeros(size - len(x), x.dtype)])) for x in own[1:])
            self.net, self.state = step(self.net, self.state, Batch(self._fitted(own.state, size), *filled))

    def _fitted(self, state: State, size: int) -> State:
        """Filled up to the network's sizes and to so many nodes."""
        features, cuts = self.shape
        found: list[Any] = []
        for own, width in zip(state, (features, cuts, cuts if state.ratios.shape[1] else 0), strict=True):
            found.append(np.zeros((size, width), own.dtype))
            found[-1][: len(own), : own.shape[1]] = own
        return State(*found)


def _narrow(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return x.astype(np.float32 if x.dtype.kind == "f" else np.int32)


def _padded(n: int) -> int:
    return max(1, -(-n // 64)) * 64


def _bucket(n: int) -> int:
    """The next of 32, 64, 128, ..."""
    return max(32, 1 << (n - 1).bit_length())


@njit(cache=True)
def _drawn(likely: Any, legal: Any, at: Any) -> Any:
    """Of each node the legal cut at a place between 0 and 1, if all lay side by side, each as wide as it is likely."""
    found = np.empty(len(at), np.int64)
    for i in range(len(at)):
        until = 0.0
        for c in range(legal.shape[1]):
            if legal[i, c]:
                found[i] = c
                until += np.exp(likely[i, c])
                if until > at[i]:
                    break
    return found


class _Compiled(NamedTuple):
    begin: Any
    forward: Any
    ppo: Any
    clone: Any


@lru_cache(maxsize=1)
def compiled() -> _Compiled:
    """The network and its steps, compiled by JAX for each new shape."""
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
        if state.ratios.shape[1]:
            logits += net["ratios"] * jnp.log(state.ratios + FLOOR)
        worth = (x @ net["w_value"] + net["b_value"])[:, 0]
        return jax.nn.log_softmax(jnp.where(state.legal, logits, -1e9)), worth

    def parts(net: Net, batch: Any) -> Any:
        """How likely the cuts taken are now, the entropy of each node, and how wrong the value was."""
        likely, worth = forward(net, batch.state)
        taken = jnp.take_along_axis(likely, batch.cut[:, None], axis=1)[:, 0]
        entropy = -jnp.where(batch.state.legal, jnp.exp(likely) * likely, 0).sum(axis=1)
        return taken, entropy, (worth - batch.reward) ** 2

    def clipped(net: Net, batch: Any) -> Any:
        taken, entropy, wrong = parts(net, batch)
        ratio = jnp.exp(taken - batch.likely)
        gain = jnp.minimum(ratio * batch.advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * batch.advantage)
        loss = VALUE * wrong - gain - ENTROPY * entropy
        return (batch.weight * loss).sum() / batch.weight.sum()

    def imitated(net: Net, batch: Any) -> Any:
        taken, _, wrong = parts(net, batch)
        return (batch.weight * (VALUE * wrong - taken)).sum() / batch.weight.sum()

    def step(loss: Any) -> Any:
        def one(net: Net, state: Any, batch: Any) -> Any:
            updates, state = optimiser.update(jax.grad(loss)(net, batch), state)
            return optax.apply_updates(net, updates), state

        return jax.jit(one)

    return _Compiled(optimiser.init, jax.jit(forward), step(clipped), step(imitated))
