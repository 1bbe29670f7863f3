// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/sim/world.h>

namespace golden_worlds {

using rehearse::RankContext;

// Training with DDP that goes wrong on one rank: bodies of whole worlds. In a file of their own, because the reports in
// the golden files name its lines; outside of rehearse, whose frames are no user's.

// The last rank leaves the loop one step before the others.
void returns_a_step_early(RankContext& ctx);

// The last rank's loss is "too good to learn from" in the last step: no backward.
void skips_the_last_backward(RankContext& ctx);

// As before, but in the second of four steps: each of its all-reduces then meets those of the others' step before.
void skips_a_backward_on_the_way(RankContext& ctx);

// The last rank's data takes the way around a layer in the last step, and DDP was not told that this may be.
void leaves_a_layer_out(RankContext& ctx);

// The same one step before: DDP itself finds that in the rank's next forward.
void leaves_a_layer_out_before_the_last_step(RankContext& ctx);

// Correct: the same, and DDP was told. A second model trains on sub-groups meanwhile.
void leaves_a_layer_out_as_agreed(RankContext& ctx);

// The last rank registers two layers of the same shape in another order, so that its buckets hold other parameters.
// PyTorch adds up the gradients of different layers and says nothing.
void registers_layers_in_another_order(RankContext& ctx);

}  // namespace golden_worlds
