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

// Which sizes and integers of a function vary: what torch.compile calls automatic dynamic shapes
// (FrameStateSizeEntry of torch/_dynamo/pgo.py). The first value seen is taken to be the only one; from a second one on
// it is dynamic for good. A tensor that was seen with another number of dimensions, or in whose place there was an
// integer, is dynamic in all of its sizes.
class Dynamism {
 public:
  // `all`: everything is dynamic from the start, or nothing ever is; none: as said above.
  explicit Dynamism(std::optional<bool> all) : all_(all) {}

  void absorb_tensor(const std::string& source, at::IntArrayRef sizes);
  void absorb_int(const std::string& source, std::int64_t value);

  // The user has said so, whatever is seen.
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
