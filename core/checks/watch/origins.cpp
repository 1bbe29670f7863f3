// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/checks/origins.h>
#include <rehearse_internal/operators/storage_of.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace rehearse::checks {

std::string Origin::text() const {
  const auto site = where.describe();
  const auto who = rank < 0 ? "" : fmt::format(" on rank {}", rank);
  return fmt::format("made by {}{}{}{}{}{}", made_by, who, site.empty() ? "" : " at " + site,
                     behind.empty() ? "" : ", " + behind, way.empty() ? "" : ", brought by ", way);
}

OriginPtr Origins::of(const at::Tensor& tensor) const {
  const auto found = entries_.find(operators::storage_of(tensor));
  return found == entries_.end() || found->second.storage.expired() ? nullptr : found->second.origin;
}

void Origins::set(const at::Tensor& tensor, OriginPtr origin) {
  const auto* const storage = operators::storage_of(tensor);
  if (storage == nullptr) return;
  entries_.insert_or_assign(storage, Entry{tensor.storage().getWeakStorageImpl(), std::move(origin)});
  drop_gone();
}

void Origins::clear(const at::Tensor& tensor) {
  if (entries_.empty()) return;
  const auto* const storage = operators::storage_of(tensor);
  if (storage == nullptr || tensor.nbytes() < storage->nbytes()) return;
  entries_.erase(storage);
}

// Makes a pass over all entries only when their number has doubled, so that a new entry costs constant time on average.
void Origins::drop_gone() {
  if (entries_.size() < drop_at_) return;
  std::erase_if(entries_, [](const auto& each) { return each.second.storage.expired(); });
  drop_at_ = std::max<std::size_t>(1024, 2 * entries_.size());
}

}  // namespace rehearse::checks
