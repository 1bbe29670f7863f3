// SPDX-License-Identifier: BSD-3-Clause
#include "explain/watched_store.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/exec/this_rank.h>

namespace rehearse::sim {
namespace {

std::string at(const exec::CallSite& site) {
  const auto where = site.describe();
  return where.empty() ? "" : " at " + where;
}

// The number of letters that two names share at their beginnings and ends.
std::size_t likeness(const std::string& a, const std::string& b) {
  const auto length = std::min(a.size(), b.size());
  const auto begin = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(length), b.begin()).first - a.begin());
  const auto rest = static_cast<std::ptrdiff_t>(length - begin);
  return begin + static_cast<std::size_t>(std::mismatch(a.rbegin(), a.rbegin() + rest, b.rbegin()).first - a.rbegin());
}

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

void StoreHistory::changed(const std::string& key, Value value) {
  if (!exec::this_rank::is_fiber()) return;
  const int rank = exec::this_rank::rank();
  changes_[key] = {rank, exec::CallSite::capture(), std::move(value), false, ++number_};
  set_[key][rank] = changes_[key];
}

void StoreHistory::may_have_changed(const std::string& key, Value value) {
  const auto known = changes_.find(key);
  const bool is_so =
      known == changes_.end() ? value.text.empty() : !known->second.is_deletion && known->second.value == value;
  if (!is_so) changed(key, std::move(value));
}

void StoreHistory::deleted(const std::string& key) {
  if (exec::this_rank::is_fiber())
    changes_[key] = {exec::this_rank::rank(), exec::CallSite::capture(), {}, true, ++number_};
}

void StoreHistory::checked(const Keys& keys, bool there) {
  if (!exec::this_rank::is_fiber() || keys.empty()) return;
  answers_[exec::CallSite::capture()][exec::this_rank::rank()] = {keys.front(), there, ++number_};
}

void StoreHistory::waits(const Keys& keys) {
  if (!exec::this_rank::is_fiber()) return;
  for (const auto& key : keys) missed_.emplace(exec::this_rank::rank(), key);
}

void StoreHistory::has_waited(const Keys& keys) {
  if (!exec::this_rank::is_fiber()) return;
  for (const auto& key : keys) missed_.erase({exec::this_rank::rank(), key});
}

// Takes the last change that each rank made to the key, and returns the earliest of these that is not before `since`.
// Ignores changes by rank `but_by` (negative: ignores none). Returns null if there is no such change, or if the key
// does not exist now.
const StoreHistory::Change* StoreHistory::set_since(const std::string& key, std::uint64_t since, int but_by) const {
  const auto last = changes_.find(key);
  const auto by_rank = set_.find(key);
  if (by_rank == set_.end() || last->second.is_deletion) return nullptr;
  const Change* first = nullptr;
  for (const auto& [rank, change] : by_rank->second) {
    if (rank == but_by || change.number < since) continue;
    if (first == nullptr || change.number < first->number) first = &change;
  }
  return first;
}

// The most similar name of an existing key. Null if every name shares fewer than half of the letters of `key`.
const std::string* StoreHistory::nearest(const std::string& key) const {
  const std::string* best = nullptr;
  std::size_t most = 0;
  for (const auto& [name, change] : changes_) {
    const auto alike = change.is_deletion ? 0 : likeness(name, key);
    if (2 * alike < key.size() || alike <= most) continue;
    most = alike;
    best = &name;
  }
  return best;
}

std::string StoreHistory::of_wait(const std::string& key) const {
  const auto change = changes_.find(key);
  if (change != changes_.end()) {
    if (!change->second.is_deletion) return "";
    return fmt::format("waited for store key \"{}\", which rank {} deleted{}", key, change->second.rank,
                       at(change->second.where));
  }
  const auto* const other = nearest(key);
  if (other == nullptr) return "";
  const auto& of_other = changes_.at(*other);
  return fmt::format("waited for store key \"{}\", which nobody set; there is \"{}\" ({}), changed last by rank {}{}",
                     key, *other, of_other.value.text, of_other.rank, at(of_other.where));
}

// `rank` did not find a key. Says which rank found a key at the same call site, and which rank set the missing key
// later.
std::string StoreHistory::of_answer(int rank, const exec::CallSite& where, const Answers& answers) const {
  const auto& own = answers.at(rank);
  auto text = fmt::format("store check{} did not find \"{}\"", at(where), own.key);
  const auto found = std::find_if(answers.begin(), answers.end(), [](const auto& each) { return each.second.there; });
  // If no rank found a key here, ignore changes by `rank` itself: a rank may well set a key that it did not find.
  const auto* const set = set_since(own.key, own.number, found == answers.end() ? rank : -1);
  if (found == answers.end() && set == nullptr) return "";
  if (found != answers.end()) {
    text += found->second.key == own.key ? fmt::format(", which rank {} found there", found->first)
                                         : fmt::format(", where rank {} found \"{}\"", found->first, found->second.key);
  }
  if (set != nullptr) text += fmt::format("; rank {} set it later{}", set->rank, at(set->where));
  return text;
}

std::map<std::string, std::set<int>> StoreHistory::notes() const {
  constexpr std::size_t kMost = 3;
  std::map<std::string, std::set<int>> notes;
  for (const auto& [rank, key] : missed_) {
    auto text = of_wait(key);
    if (!text.empty()) notes[std::move(text)].insert(rank);
  }
  for (const auto& [where, answers] : answers_) {
    for (const auto& [rank, answer] : answers) {
      auto text = answer.there ? "" : of_answer(rank, where, answers);
      if (!text.empty()) notes[std::move(text)].insert(rank);
    }
  }
  while (notes.size() > kMost) notes.erase(std::prev(notes.end()));
  return notes;
}

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
