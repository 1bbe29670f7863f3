// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

namespace rehearse::sim {

// How an operator accesses the memory of its arguments, according to its schema and its name.
struct OperatorAccess {
  enum class Of : std::uint8_t {
    nothing,  // the operator reads at most the sizes of tensors
    read,
    write,      // may also read: mul_()
    overwrite,  // writes without reading: copy_(), keyword arguments for results, such as `out`
  };

  explicit OperatorAccess(const c10::OperatorHandle& op);

  std::vector<Of> arguments;
  bool touches_data = false;  // the operator may access data of its arguments
  bool resizes = false;       // the operator may give a tensor another size or other memory
};

}  // namespace rehearse::sim
