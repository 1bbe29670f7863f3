// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace torch::nn {
class Module;
}

namespace rehearse {

// Moves the module's parameters to the meta device and drops their memory and gradients. (Module::to() refuses that
// device.) Parameters stay the same objects; buffers do not change. LibTorch's modules allocate their values when they
// are constructed. With this function you can build a model module by module for FullyShardedOptions::from_meta and
// never need the memory of more than one. Does not block. Throws c10::ValueError, which names the parameter, if a
// parameter has an autograd history.
void move_to_meta(torch::nn::Module& module);

}  // namespace rehearse
