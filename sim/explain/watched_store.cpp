// SPDX-License-Identifier: BSD-3-Clause
#include "explain/watched_store.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace rehearse::sim {
namespace {

// Short texts and numbers appear as they are; other values as their size.
std::string readable(std::string_view value) {
  constexpr std::size_t kLong = 32;
  const bool is_text = std::all_of(value.begin(), value.end(), [](char each) { return each >= ' ' && each <= '~'; });
  if (!is_text || value.size() > kLong) return fmt::format("{} bytes", value.size());
  return std::string(value);
}

StoreHistory::Value value_of(std::string_view bytes) { return {readable(bytes), std::hash<std::string_view>()(bytes)}; }

StoreHistory::Value value_of(const std::vector<std::uint8_t>& bytes) {
  return value_of(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace

c10::intrusive_ptr<c10d::Store> WatchedStore::clone() {
  return c10::make_intrusive<WatchedStore>(below()->clone(), history_);
}

// If a wait throws, the history keeps its keys as keys for which the rank waited in vain.
template <class Wait>
auto WatchedStore::waiting(const std::vector<std::string>& keys, const Wait& wait) {
  history_->waits(keys);
  if constexpr (std::is_void_v<decltype(wait())>) {
    wait();
    history_->has_waited(keys);
  } else {
    auto result = wait();
    history_->has_waited(keys);
    return result;
  }
}

void WatchedStore::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  below()->set(key, value);
  history_->changed(key, value_of(value));
}

std::vector<std::uint8_t> WatchedStore::compareSet(const std::string& key, const std::vector<std::uint8_t>& expected,
                                                   const std::vector<std::uint8_t>& desired) {
  auto value = below()->compareSet(key, expected, desired);
  if (value == desired) history_->may_have_changed(key, value_of(value));
  return value;
}

std::vector<std::uint8_t> WatchedStore::get(const std::string& key) {
  return waiting({key}, [&] { return below()->get(key); });
}

std::int64_t WatchedStore::add(const std::string& key, std::int64_t amount) {
  const auto value = below()->add(key, amount);
  if (amount != 0) history_->changed(key, value_of(std::to_string(value)));
  return value;
}

bool WatchedStore::deleteKey(const std::string& key) {
  const bool was_there = below()->deleteKey(key);
  if (was_there) history_->deleted(key);
  return was_there;
}

bool WatchedStore::check(const std::vector<std::string>& keys) {
  const bool there = below()->check(keys);
  history_->checked(keys, there);
  return there;
}

void WatchedStore::append(const std::string& key, const std::vector<std::uint8_t>& value) {
  below()->append(key, value);
  history_->changed(key, {fmt::format("{} bytes more", value.size())});
}

std::vector<std::vector<std::uint8_t>> WatchedStore::multiGet(const std::vector<std::string>& keys) {
  return waiting(keys, [&] { return below()->multiGet(keys); });
}

void WatchedStore::multiSet(const std::vector<std::string>& keys,
                            const std::vector<std::vector<std::uint8_t>>& values) {
  below()->multiSet(keys, values);
  for (std::size_t i = 0; i < keys.size(); ++i) history_->changed(keys[i], value_of(values[i]));
}

void WatchedStore::wait(const std::vector<std::string>& keys) {
  waiting(keys, [&] { below()->wait(keys); });
}

void WatchedStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
  waiting(keys, [&] { below()->wait(keys, timeout); });
}

}  // namespace rehearse::sim
