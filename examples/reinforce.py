"""REINFORCE with a recurrent policy that balances a pole: all of it in one function.

The policy sees where cart and pole are, not how fast they move: that it has to remember. An episode
is a plain `while` of as many steps as it takes the pole to fall, and the gradient goes back through
them. The environment is written twice: with operations of wend, where an update is one compiled
graph, and as a Python class, which the graph calls at each step.
"""

import sys

import numpy as np

import wend
import wend.numpy as wnp

UNITS, MOST_STEPS, DISCOUNT = 8, 200, 0.98
GRAVITY, CART, POLE, HALF_LENGTH, FORCE, TICK = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
SEEN = np.array([1.0, 10.0])  # how the policy's two inputs are scaled


# The environment
def moved(state, push):
    """The state (position, speed, angle, angular speed) one tick later (Barto et al., 1983).

    `push`: whether to the right.
    """
    x, v, angle, turn = state[0], state[1], state[2], state[3]
    force = FORCE if push else -FORCE
    sine, cosine = np.sin(angle), np.cos(angle)
    mass = CART + POLE
    thrust = (force + POLE * HALF_LENGTH * turn**2 * sine) / mass
    sway = (GRAVITY * sine - cosine * thrust) / (
        HALF_LENGTH * (4.0 / 3.0 - POLE * cosine**2 / mass)
    )
    pull = thrust - POLE * HALF_LENGTH * sway * cosine / mass
    return np.stack([x + TICK * v, v + TICK * pull, angle + TICK * turn, turn + TICK * sway])


def has_fallen(state):
    """Whether the cart has left the track, or the pole leans too far."""
    return (abs(state[0]) > 2.4) | (abs(state[2]) > 0.21)


class CartPole:
    """The environment in operations of wend."""

    def __init__(self, seed=0):
        self.rng = wend.random.Generator(seed)

    def reset(self):
        return self.rng.uniform(-0.05, 0.05, size=4)

    def step(self, state, push):
        state = moved(state, push)
        return state, has_fallen(state)


class HostCartPole:
    """The environment as Python: it keeps its own state, and random numbers of NumPy's."""

    OBSERVED = wend.TensorSpec((4,), float), wend.TensorSpec((), bool)

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.state = None
        self.steps = 0  # in all episodes

    def reset(self):
        return wend.py_function(self._reset, self.OBSERVED[0])

    def step(self, state, push):
        return wend.py_function(self._step, self.OBSERVED, push)

    def _reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, size=4)
        return self.state

    def _step(self, push):
        self.state = moved(self.state, push)
        self.steps += 1
        return self.state, has_fallen(self.state)


# The policy: a gated recurrent unit (Cho et al., 2014)
def sigmoid(x):
    return 0.5 * np.tanh(0.5 * x) + 0.5


def remembered(p, seen, memory):
    """The memory after the policy has seen something."""
    gates = sigmoid(p["gates"] @ np.concatenate([seen, memory]) + p["gates_bias"])
    keep, reset = gates[:UNITS], gates[UNITS:]
    new = np.tanh(p["new"] @ np.concatenate([seen, reset * memory]) + p["new_bias"])
    return keep * memory + (1.0 - keep) * new


class Agent:
    """A policy that learns, with Adam (Kingma and Ba, 2015).

    Args:
        environment: with `reset() -> state` and `step(state, push) -> (state, has_fallen)`.
        seed: of its first weights and of its actions.
        rate: of learning.
    """

    def __init__(self, environment, seed=0, rate=0.02):
        noise = np.random.default_rng(seed)
        weights = {
            "gates": 0.3 * noise.normal(size=(2 * UNITS, 2 + UNITS)),
            "gates_bias": np.zeros(2 * UNITS),
            "new": 0.5 * noise.normal(size=(UNITS, 2 + UNITS)),
            "new_bias": np.zeros(UNITS),
            "out": np.zeros(UNITS),
        }
        self.weights = {name: wend.Variable(w, name) for name, w in weights.items()}
        self.first = {name: wend.Variable(np.zeros_like(w)) for name, w in weights.items()}
        self.second = {name: wend.Variable(np.zeros_like(w)) for name, w in weights.items()}
        self.updates = wend.Variable(0)
        self.usual = wend.Variable(0.0)  # what an episode is usually worth
        self.rng = wend.random.Generator(seed)
        self.environment, self.rate = environment, rate

    def episode(self, p):
        """One episode: what is to be made small, and how many steps it took."""
        state, memory = self.environment.reset(), np.zeros(UNITS)
        fallen, steps, likelihoods = False, 0, []
        while not fallen and steps < MOST_STEPS:
            seen = np.stack([state[0], state[2]]) * SEEN
            memory = remembered(p, seen, memory)
            right = sigmoid(p["out"] @ memory)
            push = self.rng.random() < right
            likelihoods.append(np.log(right if push else 1.0 - right))
            state, fallen = self.environment.step(state, push)
            steps += 1
        left = steps - np.arange(steps)  # each step that the pole still stands is worth 1
        worth = (1.0 - DISCOUNT**left) / (1.0 - DISCOUNT)
        gain = worth - self.usual.value
        self.usual.assign_add(0.05 * wnp.mean(gain))
        return -np.sum(np.stack(likelihoods) * gain) / MOST_STEPS, steps

    @wend.function
    def learn(self):
        """Run one episode and improve the policy by it; the number of steps."""
        now = {name: variable.value for name, variable in self.weights.items()}
        (_, steps), slopes = wend.value_and_grad(self.episode, has_aux=True)(now)
        self.updates.assign_add(1)
        t = self.updates.value
        for name, slope in slopes.items():
            first, second = self.first[name], self.second[name]
            first.assign(0.9 * first.value + 0.1 * slope)
            second.assign(0.99 * second.value + 0.01 * slope**2)
            size = np.sqrt(second.value / (1.0 - 0.99**t)) + 1e-8
            self.weights[name].assign_sub(self.rate * first.value / (1.0 - 0.9**t) / size)
        return steps


def train(agent, episodes, report=None):
    """Let an agent learn; the lengths of its episodes."""
    lengths = []
    for number in range(1, episodes + 1):
        lengths.append(int(agent.learn()))
        if report is not None and number % 50 == 0:
            report(number, np.mean(lengths[-50:]))
    return lengths


def progress(number, mean):
    print(f"episode {number:4}: {mean:6.1f} steps  {'#' * int(mean / 4)}")


if __name__ == "__main__":
    episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    for environment in (CartPole(1), HostCartPole(1)):
        print(type(environment).__name__)
        lengths = train(Agent(environment), episodes, progress)
        first, last = np.mean(lengths[:50]), np.mean(lengths[-50:])
        print(f"from {first:.0f} to {last:.0f} steps in {episodes} episodes")
