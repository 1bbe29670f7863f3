// SPDX-License-Identifier: BSD-3-Clause
// The part of gloo's header of this name that torch/csrc/distributed/c10d/ProcessGroupGloo.hpp names; libtorch_cpu has
// the rest.
#pragma once

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
