// SPDX-License-Identifier: BSD-3-Clause
#include "noted_store.h"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse_internal/job/rank_note.h>

namespace rehearse::real {
namespace {

// Uses the words of the simulation's store: `store wait for key "id"`.
std::string text_of(std::string_view what, const std::vector<std::string>& keys) {
  return fmt::format("store {} {} \"{}\"", what, keys.size() == 1 ? "key" : "keys", fmt::join(keys, "\", \""));
}

std::string text_of_wait(const std::vector<std::string>& keys) { return text_of("wait for", keys); }

}  // namespace

c10::intrusive_ptr<c10d::Store> NotedStore::clone() {
  return c10::make_intrusive<NotedStore>(prefix_, store_->clone());
}

std::vector<std::uint8_t> NotedStore::get(const std::string& key) {
  const RankNote::Wait noted(text_of_wait({key}));
  return PrefixStore::get(key);
}

std::vector<std::vector<std::uint8_t>> NotedStore::multiGet(const std::vector<std::string>& keys) {
  const RankNote::Wait noted(text_of_wait(keys));
  return PrefixStore::multiGet(keys);
}

std::vector<std::uint8_t> NotedStore::queuePop(const std::string& key, bool block) {
  if (!block) return PrefixStore::queuePop(key, block);
  const RankNote::Wait noted(text_of("queue pop from", {key}));
  return PrefixStore::queuePop(key, block);
}

void NotedStore::wait(const std::vector<std::string>& keys) {
  const RankNote::Wait noted(text_of_wait(keys));
  PrefixStore::wait(keys);
}

void NotedStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
  const RankNote::Wait noted(text_of_wait(keys));
  PrefixStore::wait(keys, timeout);
}

}  // namespace rehearse::real
