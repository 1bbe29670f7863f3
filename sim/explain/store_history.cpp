// SPDX-License-Identifier: BSD-3-Clause
#include "explain/store_history.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

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

}  // namespace rehearse::sim
