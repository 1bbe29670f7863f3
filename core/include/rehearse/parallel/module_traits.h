// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

namespace rehearse::parallel {

// The module behind a module holder (TORCH_MODULE, torch::nn::Linear) or a std::shared_ptr to a module.
template <class Net>
struct ModuleTraits {
  using Module = typename Net::ContainedType;
  static const std::shared_ptr<Module>& pointer(const Net& net) { return net.ptr(); }
};
template <class M>
struct ModuleTraits<std::shared_ptr<M>> {
  using Module = M;
  static const std::shared_ptr<M>& pointer(const std::shared_ptr<M>& net) { return net; }
};

}  // namespace rehearse::parallel
