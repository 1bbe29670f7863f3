// SPDX-License-Identifier: BSD-3-Clause
#include "capture/fake/infer/fixed_generator.h"

#include <ATen/CPUGeneratorImpl.h>

namespace rehearse::capture {

FixedGenerator::FixedGenerator(bool is_on) {
  if (is_on) state_ = at::detail::getDefaultCPUGenerator().get_state();
}

FixedGenerator::~FixedGenerator() {
  if (!state_) return;
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_state(*state_);
}

}  // namespace rehearse::capture
