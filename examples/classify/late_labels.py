"""
Labels that arrive late: phishing sites
=======================================

Whether a web site is a phishing site is known only after a check. `delay=` learns each label that many
samples after its prediction. The data set is River's Phishing: 1,250 sites with nine columns.
"""

import matplotlib.pyplot as plt

from gristmill import AutoClassifier
from gristmill.evaluate import prequential
from gristmill.streams import from_rows
from river import datasets

delays, errors = [0, 10, 50, 100, 250, 500], []
for delay in delays:
    result = prequential(AutoClassifier(random_state=0), from_rows(datasets.Phishing()), delay=delay)
    errors.append(result.metrics["error"])
    print(f"labels {delay:3} samples late: error {errors[-1]:.3f}")

# %%
# In a program of your own, keep a sample until its label comes; the order of learning is that of the labels.

model, waiting, right = AutoClassifier(random_state=0), {}, []
for number, (x, y) in enumerate(datasets.Phishing()):
    row = list(x.values())
    waiting[number] = (row, model.predict_one(row) if number > 50 else None, y)
    if number >= 50:  # the label of an earlier site arrives
        row, predicted, label = waiting.pop(number - 50)
        model.learn_one(row, label)
        right += [predicted == label] if predicted is not None else []
print(f"{1 - sum(right) / len(right):.3f} wrong of {len(right)}, {len(waiting)} wait for their labels")

# %%
figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
axes.plot(delays, errors, "o-")
axes.set(xlabel="samples until the label comes", ylabel="error", ylim=(0, None))
plt.show()
