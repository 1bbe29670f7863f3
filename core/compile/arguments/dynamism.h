// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/ATen_fwd.h>

namespace rehearse::compiler {

// Decides which sizes and integers of a function vary, like torch.compile's automatic dynamic shapes
// (FrameStateSizeEntry in torch/_dynamo/pgo.py). A size or integer counts as constant until a second value is seen. All
// sizes of a tensor argument are dynamic if, in another call, the argument was an integer or a tensor with another
// number of dimensions. An integer argument is dynamic if it was a tensor in another call.
class Dynamism {
 public:
  // `all`: everything that the user has not marked is dynamic from the start (true), or nothing of it ever is (false).
  // Without `all`, the rules above apply.
  explicit Dynamism(std::optional<bool> all) : all_(all) {}

  void absorb_tensor(const std::string& source, at::IntArrayRef sizes);
  void absorb_int(const std::string& source, std::int64_t value);

  // The user's marks, which take precedence over observed sizes and over `all`.
  void mark_dynamic(const std::string& source, std::size_t dimension, std::size_t dimensions);
  void mark_static(const std::string& source, std::size_t dimension);

  bool is_dynamic_size(const std::string& source, std::size_t dimension) const;
  bool is_dynamic_int(const std::string& source) const;

 private:
  enum class State : std::uint8_t { Unseen, One, Dynamic };
  struct Number {
    State state = State::Unseen;
    std::int64_t value = 0;
    bool marked_static = false;
    bool marked_dynamic = false;
    void absorb(std::int64_t seen) noexcept;
  };
  struct Source {
    Number scalar;
    bool was_int = false;
    bool was_tensor = false;
    bool dimensions_differ = false;
    std::optional<std::vector<Number>> sizes;
  };

  std::optional<bool> all_;
  std::map<std::string, Source> sources_;
};

}  // namespace rehearse::compiler
