// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/view_families.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rehearse::capture {

std::size_t ViewFamilies::number_of(const at::Tensor& tensor) {
  const auto [found, is_new] = numbers_.emplace(tensor.unsafeGetTensorImpl(), families_.size());
  if (is_new) families_.emplace_back().emplace_back(tensor.getIntrusivePtr());
  return found->second;
}

void ViewFamilies::join(const at::Tensor& view, const at::Tensor& base) {
  const std::size_t to = number_of(base);
  const std::size_t from = number_of(view);
  if (to == from) return;
  std::vector<Member> members = std::exchange(families_[from], {});
  for (const Member& member : members) numbers_[member._unsafe_get_target()] = to;
  std::move(members.begin(), members.end(), std::back_inserter(families_[to]));
}

std::vector<at::Tensor> ViewFamilies::family_of(const at::Tensor& tensor) const {
  const auto found = numbers_.find(tensor.unsafeGetTensorImpl());
  if (found == numbers_.end()) return {tensor};
  std::vector<at::Tensor> alive;
  for (const Member& member : families_[found->second]) {
    if (auto impl = member.lock()) alive.emplace_back(std::move(impl));
  }
  return alive;
}

}  // namespace rehearse::capture
