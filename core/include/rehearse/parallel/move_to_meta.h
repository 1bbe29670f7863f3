// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace torch::nn {
class Module;
}

namespace rehearse {

// Moves the module's parameters to the meta device and lets go of their memory and gradients; Module::to() refuses that
// device. Parameters stay the same objects, and buffers are left alone. Modules that make their values when they are
// made, as LibTorch's do, can thus be put together one by one, for FullyShardedOptions::from_meta, and never take the
// memory of more than one. Does not block. Throws c10::ValueError that names a parameter which has a history.
void move_to_meta(torch::nn::Module& module);

}  // namespace rehearse
