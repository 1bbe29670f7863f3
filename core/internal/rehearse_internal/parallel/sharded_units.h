// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::parallel {

// The units of a sharded model, and whose parameters lie in which storage. A compiler cuts its graphs by them.
class ShardedUnits {
 public:
  // `text`: for messages, "unit \"blocks.0\"". Units are numbered in the order of these calls.
  void add_unit(std::string text) { texts_.push_back(std::move(text)); }
  // The parameter belongs to the last unit. Its storage must live as long as this object.
  void add_parameter(const std::string& name, const at::Tensor& parameter);

  struct Parameter {
    std::size_t unit;
    std::string name;
  };
  // Null: no sharded parameter lies in that storage.
  const Parameter* find(const void* storage) const;
  const std::string& text_of(std::size_t unit) const { return texts_.at(unit); }

  // The units of the innermost sharded model in whose forward the calling fiber is. Null outside of such a forward.
  static const ShardedUnits* current() noexcept;
  // Sets what current() returns, and returns what it was. The object must live until it is set back.
  static const ShardedUnits* set_current(const ShardedUnits* units) noexcept;

 private:
  std::vector<std::string> texts_;
  std::unordered_map<const void*, Parameter> parameters_;  // looked up, never walked
};

}  // namespace rehearse::parallel
