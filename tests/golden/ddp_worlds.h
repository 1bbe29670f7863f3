// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/sim/world.h>

namespace golden_worlds {

using rehearse::RankContext;

// Training with DDP that goes wrong on one rank. Each function is the body of a world. The functions have a file of
// their own, because the golden reports contain line numbers. They are outside namespace rehearse, because without line
// tables, reports take code of that namespace for library code.

// The last rank leaves the loop one step before the others.
void returns_a_step_early(RankContext& ctx);

// In the last step, the last rank computes its loss, but runs no backward.
void skips_the_last_backward(RankContext& ctx);

// The last rank skips the backward of the second of four steps. Its later all-reduces match those that the other ranks
// made one step earlier.
void skips_a_backward_on_the_way(RankContext& ctx);

// In the last step, the last rank's data bypasses a layer, although DDP's options do not allow that.
void leaves_a_layer_out(RankContext& ctx);

// Like leaves_a_layer_out(), but one step before the last. DDP itself finds the mistake in the rank's next forward.
void leaves_a_layer_out_before_the_last_step(RankContext& ctx);

// Correct: the data of some ranks bypasses a layer, as DDP's options allow. A second model trains on sub-groups, too.
void leaves_a_layer_out_as_agreed(RankContext& ctx);

// The last rank registers two layers of the same shape in another order, so its buckets hold other parameters. PyTorch
// silently adds up the gradients of different layers.
void registers_layers_in_another_order(RankContext& ctx);

}  // namespace golden_worlds
