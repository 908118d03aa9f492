// More columns for a learner over trees.
#pragma once

#include "core/additive/hypothesis.hpp"
#include "core/learner/learner.hpp"

namespace gristmill {

// `fresh` takes over what `narrow` has learned: a new coordinate has the value 0 at every stored point.
// requires: fresh has learned nothing; each coordinate of narrow is one of fresh, which has at least as many columns.
void take_widened(Learner<Trees>& fresh, Learner<Trees>& narrow);

}  // namespace gristmill
