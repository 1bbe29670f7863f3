// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <ATen/core/Generator.h>

namespace rehearse::capture {

// If `is_on`, the destructor restores the state that the default CPU generator had at construction, so that draws in
// between do not affect later draws. Use it only under a BelowAutograd.
class FixedGenerator {
 public:
  explicit FixedGenerator(bool is_on);
  FixedGenerator(const FixedGenerator&) = delete;
  FixedGenerator& operator=(const FixedGenerator&) = delete;
  ~FixedGenerator();

 private:
  std::optional<at::Tensor> state_;
};

}  // namespace rehearse::capture
