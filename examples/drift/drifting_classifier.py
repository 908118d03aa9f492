"""
Sudden drift: a concept that switches
=====================================

Four times in this stream both classes suddenly change: their distributions are drawn again. The old points of a learner
that keeps all of them cause errors. Three learners that forget make only half to two thirds of its mistakes, with a
fraction of its memory.
"""

import matplotlib.pyplot as plt

from gristmill import DropOldest, Gaussian, KernelClassifier, PassiveAggressive, Unbounded, norma_classifier
from gristmill.evaluate import compare
from gristmill.streams import switching_mixture

stream = switching_mixture(n_events=10_000, every=2_000, random_state=3)
kernel = Gaussian(1.0)
results = compare(
    {
        "keeps everything": KernelClassifier(kernel, PassiveAggressive(C=0.3), Unbounded()),
        "keeps the 100 newest": KernelClassifier(kernel, PassiveAggressive(C=0.3), DropOldest(100)),
        "fades, 1 % an event": norma_classifier(kernel, rate=0.3, reg=0.03, size=100),
        "looks back 200 events": norma_classifier(kernel, rate=0.3, reg=0.003, window=200),
    },
    stream,
    window=200,
)
for result in results:
    print(f"{result.name:22} error {result.metrics['error']:.4f}, {result.stored} points stored")

# %%
# The error over the last 200 events. Each switch (dotted) causes mistakes; the learners differ in how long they
# take to recover, and in how many points they keep.

figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for result in results:
    events = [entry["event"] for entry in result.curve]
    axes.plot(events, [entry["rolling_error"] for entry in result.curve], label=result.name)
for switch in range(2_000, 10_000, 2_000):
    axes.axvline(switch, color="grey", linestyle=":")
axes.set(xlabel="event", ylabel="error over the last 200 events", ylim=(0, None))
axes.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
plt.show()
