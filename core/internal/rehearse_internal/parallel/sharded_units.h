// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::parallel {

// The units of a sharded model, and which storage holds which parameter, for a compiler that cuts its graphs by units.
class ShardedUnits {
 public:
  // `text`: names the unit in messages, "unit \"blocks.0\"". Units are numbered in the order of these calls.
  void add_unit(std::string text) { texts_.push_back(std::move(text)); }
  // Adds a parameter to the last unit. The parameter's storage must live as long as this object.
  void add_parameter(const std::string& name, const at::Tensor& parameter);

  struct Parameter {
    std::size_t unit;
    std::string name;
  };
  // Null if the storage holds no sharded parameter.
  const Parameter* find(const void* storage) const;
  const std::string& text_of(std::size_t unit) const { return texts_.at(unit); }

  // The units of the innermost sharded model whose forward the calling fiber runs. Null outside of such a forward.
  static const ShardedUnits* current() noexcept;
  // Sets what current() returns, and returns the previous value. The object must live until it is replaced.
  static const ShardedUnits* set_current(const ShardedUnits* units) noexcept;

 private:
  std::vector<std::string> texts_;
  std::unordered_map<const void*, Parameter> parameters_;  // looked up; never iterated
};

}  // namespace rehearse::parallel
