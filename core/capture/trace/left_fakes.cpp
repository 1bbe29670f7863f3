// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/capture/left_fakes.h>

#include <rehearse_internal/capture/fake_tensor.h>

#include "capture/fake/become_real.h"

namespace rehearse::capture {

bool LeftFakes::make_real(const std::function<std::vector<c10::IValue>(const Segment&)>& run) const {
  bool holds_any = false;
  for (const auto& [weak, real] : of_inputs) {
    const at::Tensor fake = weak.lock();
    if (!fake.defined() || !is_fake(fake)) continue;
    holds_any = true;
    share_real(fake, real);
  }
  std::vector<std::pair<at::Tensor, std::size_t>> held;
  for (const auto& [weak, result] : made) {
    if (at::Tensor fake = weak.lock(); fake.defined() && is_fake(fake)) held.emplace_back(std::move(fake), result);
  }
  if (held.empty()) return holds_any;
  const std::vector<c10::IValue> results = run(segment);
  for (const auto& [fake, result] : held) {
    if (result < results.size() && results[result].isTensor()) share_real(fake, results[result].toTensor());
  }
  return true;
}

}  // namespace rehearse::capture
