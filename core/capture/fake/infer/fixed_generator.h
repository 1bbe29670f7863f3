// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <ATen/core/Generator.h>

namespace rehearse::capture {

// While it lives and `is_on`, what is drawn from the default CPU generator is not missed afterwards.
// For code below a BelowAutograd.
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
