// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/sim/world.h>

namespace golden_worlds {

using rehearse::RankContext;

// Training with DDP that goes wrong on one rank: bodies of whole worlds. They have a file of their own, because the
// golden reports contain its line numbers. Outside rehearse, because its frames are not user code.

// The last rank leaves the loop one step before the others.
void returns_a_step_early(RankContext& ctx);

// The last rank's loss is "too good to learn from" in the last step, so it runs no backward.
void skips_the_last_backward(RankContext& ctx);

// The same in the second of four steps. The rank's later all-reduces match those of the others' previous step.
void skips_a_backward_on_the_way(RankContext& ctx);

// In the last step, the last rank's data bypasses a layer, although DDP's options do not allow that.
void leaves_a_layer_out(RankContext& ctx);

// The same, one step earlier: DDP itself finds the mistake in the rank's next forward.
void leaves_a_layer_out_before_the_last_step(RankContext& ctx);

// Correct: the same, with an option that allows it. A second model trains on sub-groups meanwhile.
void leaves_a_layer_out_as_agreed(RankContext& ctx);

// The last rank registers two layers of the same shape in another order, so its buckets hold other parameters. PyTorch
// silently adds up the gradients of different layers.
void registers_layers_in_another_order(RankContext& ctx);

}  // namespace golden_worlds
