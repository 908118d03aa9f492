"""
Forecast a time series with prediction intervals: the flow of water
===================================================================

River's WaterFlow is the flow in a pipe of a water network, once an hour for 1,268 hours. The next value is predicted from
the last day, with an interval for nine values of ten. The flow changes so slowly that the last value is hard to beat;
the model adds the interval.
"""

import matplotlib.pyplot as plt
import numpy as np

from gristmill import AutoRegressor
from river import datasets

flow = np.array([y for _, y in datasets.WaterFlow()], dtype=float)
lags = 24
X = np.lib.stride_tricks.sliding_window_view(flow, lags)[:-1]  # the last 24 hours
y = flow[lags:]

model = AutoRegressor(random_state=0)
low, high = model.prequential_interval(X, y, coverage=0.9).T  # of each hour before it was learned
inside = (low <= y) & (y <= high)
forecast = AutoRegressor(random_state=0).prequential(X, y)
late = slice(200, None)
print(f"mean absolute error: {np.abs(forecast - y)[late].mean():.2f}")
print(f"the last value again: {np.abs(np.diff(flow)[lags - 1 :])[late].mean():.2f}")
print(f"the value of yesterday: {np.abs(flow[lags:] - flow[:-lags])[late].mean():.2f}")
print(f"inside the interval: {inside[late].mean():.3f}")

# %%
part = slice(len(y) - 7 * 24, None)
hours = np.arange(len(y))[part]
figure, axes = plt.subplots(figsize=(9, 3.8), layout="constrained")
axes.fill_between(hours, low[part], high[part], alpha=0.25, label="90 % interval")
axes.plot(hours, y[part], "k.", markersize=4, label="flow")
axes.plot(hours, forecast[part], label="forecast")
axes.set(xlabel="hour", ylabel="flow", title="the last week")
axes.legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1.06))
plt.show()
