// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

namespace rehearse::sim {

// What an operator does with the memory of its arguments, as its schema says.
struct OperatorAccess {
  enum class Of : std::uint8_t {
    nothing,  // no tensor, or it looks at its sizes only
    read,
    write,      // it may read, too: mul_()
    overwrite,  // it reads nothing of it: copy_(), arguments named `out`
  };

  explicit OperatorAccess(const c10::OperatorHandle& op);

  std::vector<Of> arguments;
  bool touches_data = false;  // one of them
  bool resizes = false;       // it may give a tensor another size, or other memory
};

}  // namespace rehearse::sim
