// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rehearse/exec/call_site.h>
#include <rehearse/fakes/fake_store.h>
#include <rehearse_internal/exec/this_rank.h>

#include "layers/intercepted_store.h"
#include "layers/layers.h"

namespace rehearse::sim {
namespace {

// Records what ranks did with the keys of a store, for the report of a failed run: who changed a key last, which keys a
// rank waited for in vain, and what the store answered to check(). A world has one history. The functions record calls
// of the current fiber, and ignore calls outside of fibers.
class StoreHistory final : public StoreInterceptor {
 public:
  struct Value {
    bool operator==(const Value&) const = default;

    std::string text;      // in a form that people can read
    std::size_t hash = 0;  // of its bytes, because different values may have the same text
  };

  void before(const StoreCall& call) override;
  void after(const StoreCall& call) override;

  // Call it at the end: the others are lost by a fault.
  void keep_only(const fakes::StoreState& keys) {
    for (auto& [key, change] : changes_) change.is_there = !change.is_deletion && keys.has(key);
  }

  // Possible causes of the failure, at most three, each with the ranks that it concerns. Must not run in a fiber,
  // because finding source lines takes locks.
  // For ranks in `mismatched` only what the store answered: they wait for keys because their calls did not match.
  // `polled`: ranks, and keys for which they went on asking until the end.
  using RanksAndKeys = std::set<std::pair<int, std::string>>;
  std::map<std::string, std::set<int>> notes(const std::set<int>& mismatched, const RanksAndKeys& polled) const;

 private:
  struct Change {
    int rank = -1;
    exec::CallSite where;
    Value value;
    bool is_deletion = false;
    std::uint64_t number = 0;
    bool is_there = true;
  };
  struct Answer {
    std::string key;  // the first of the keys in the call
    bool there = false;
    std::uint64_t number = 0;
  };
  using Answers = std::map<int, Answer>;  // the last answer to each rank

  void changed(const std::string& key, Value value);
  // Call it after a compareSet() that left the key with its desired value. Counts as a change only if `value` differs
  // from the key's last known value.
  void may_have_changed(const std::string& key, Value value);
  const Change* set_since(const std::string& key, std::uint64_t since, int but_by) const;
  std::string of_wait(const std::string& key) const;
  std::string of_other_name(const char* verb, const std::string& key, double likeness_least) const;
  std::string of_answer(int rank, const exec::CallSite& where, const Answers& answers) const;
  const std::string* nearest(const std::string& key, double likeness_least) const;

  std::map<std::string, Change> changes_;             // the last change of each key
  std::map<std::string, std::map<int, Change>> set_;  // for each key, the last change by each rank that set it
  std::map<exec::CallSite, Answers> answers_;         // by the stack of the call
  RanksAndKeys missed_;                               // keys for which it has waited in vain so far
  std::uint64_t number_ = 0;
};

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
  const bool is_text = std::ranges::all_of(value, [](char each) { return each >= ' ' && each <= '~'; });
  if (!is_text || value.size() > kLong) return fmt::format("{} byte{}", value.size(), value.size() == 1 ? "" : "s");
  return std::string(value);
}

StoreHistory::Value value_of(std::string_view bytes) { return {readable(bytes), std::hash<std::string_view>()(bytes)}; }

StoreHistory::Value value_of(const StoreCall::Value& bytes) {
  return value_of(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void StoreHistory::changed(const std::string& key, Value value) {
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

// Takes the last change that each rank made to the key, and returns the earliest of these that is not before `since`.
// Ignores changes by rank `but_by` (negative: ignores none). Returns null if there is no such change, or if the key
// does not exist now.
const StoreHistory::Change* StoreHistory::set_since(const std::string& key, std::uint64_t since, int but_by) const {
  const auto last = changes_.find(key);
  const auto by_rank = set_.find(key);
  if (by_rank == set_.end() || !last->second.is_there) return nullptr;
  const Change* first = nullptr;
  for (const auto& [rank, change] : by_rank->second) {
    if (rank == but_by || change.number < since) continue;
    if (first == nullptr || change.number < first->number) first = &change;
  }
  return first;
}

// The most similar name of an existing key. Null if no name shares that part of the letters of `key`.
const std::string* StoreHistory::nearest(const std::string& key, double likeness_least) const {
  const std::string* best = nullptr;
  std::size_t most = 0;
  for (const auto& [name, change] : changes_) {
    const auto alike = change.is_there ? likeness(name, key) : 0;
    if (static_cast<double>(alike) < likeness_least * static_cast<double>(key.size()) || alike <= most) continue;
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
  return of_other_name("waited for", key, 0.5);
}

std::string StoreHistory::of_other_name(const char* verb, const std::string& key, double likeness_least) const {
  const auto* const other = nearest(key, likeness_least);
  if (other == nullptr) return "";
  const auto& of_other = changes_.at(*other);
  return fmt::format("{} store key \"{}\", which nobody set; there is \"{}\" ({}), changed last by rank {}{}", verb,
                     key, *other, of_other.value.text, of_other.rank, at(of_other.where));
}

// `rank` did not find a key. Says which rank found a key at the same call site, and which rank set the missing key
// later.
std::string StoreHistory::of_answer(int rank, const exec::CallSite& where, const Answers& answers) const {
  const auto& own = answers.at(rank);
  auto text = fmt::format("store check{} did not find \"{}\"", at(where), own.key);
  const auto found = std::ranges::find_if(answers, [](const auto& each) { return each.second.there; });
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

std::map<std::string, std::set<int>> StoreHistory::notes(const std::set<int>& mismatched,
                                                         const RanksAndKeys& polled) const {
  constexpr std::size_t kMost = 3;
  std::map<std::string, std::set<int>> notes;
  for (const auto& [rank, key] : polled) {
    const auto change = changes_.find(key);
    if (change != changes_.end() && change->second.is_deletion) notes[of_wait(key)].insert(rank);
  }
  for (const auto& [rank, key] : missed_) {
    auto text = mismatched.contains(rank) ? "" : of_wait(key);
    if (!text.empty()) notes[std::move(text)].insert(rank);
  }
  for (const auto& [where, answers] : answers_) {
    for (const auto& [rank, answer] : answers) {
      auto text = answer.there ? "" : of_answer(rank, where, answers);
      // A program may ask for what need not be there, so only a name that is nearly the same is worth a remark.
      if (text.empty() && !answer.there && !changes_.contains(answer.key))
        text = of_other_name("asked for", answer.key, 0.8);
      if (!text.empty()) notes[std::move(text)].insert(rank);
    }
  }
  while (notes.size() > kMost) notes.erase(std::prev(notes.end()));
  return notes;
}

bool is_wait(const StoreCall& call) { return call.name == "get" || call.name == "multiGet" || call.name == "wait"; }

// If a wait throws, the history keeps its keys as keys for which the rank waited in vain.
void StoreHistory::before(const StoreCall& call) {
  if (!exec::this_rank::is_fiber() || !is_wait(call)) return;
  for (const auto& key : call.keys) missed_.emplace(exec::this_rank::rank(), key);
}

void StoreHistory::after(const StoreCall& call) {
  if (!exec::this_rank::is_fiber() || call.keys.empty()) return;
  const int rank = exec::this_rank::rank();
  const auto& key = call.keys.front();
  if (call.name == "check") answers_[exec::CallSite::capture()][rank] = {key, call.result != 0, ++number_};
  if (call.name == "append") changed(key, {fmt::format("{} bytes more", call.values.front().size())});
  if (call.name == "add" && call.amount != 0) changed(key, value_of(std::to_string(call.result)));
  if (call.name == "deleteKey" && call.result != 0)
    changes_[key] = {rank, exec::CallSite::capture(), {}, true, ++number_};
  if (call.name == "compareSet" && call.answers.front() == call.values.front())
    may_have_changed(key, value_of(call.answers.front()));
  for (std::size_t i = 0; i < call.keys.size(); ++i) {
    if (is_wait(call)) missed_.erase({rank, call.keys[i]});
    if (call.name == "set" || call.name == "multiSet") changed(call.keys[i], value_of(call.values[i]));
  }
}

class HistoryLayer final : public Layer {
 public:
  explicit HistoryLayer(const fakes::StoreState& keys) : keys_(keys) {}

  std::shared_ptr<StoreInterceptor> store_interceptor() override { return history_; }
  void leave(RunRecord& record) override {
    std::set<int> mismatched;
    for (const auto& mismatch : record.mismatches) {
      for (const auto* const side : {&mismatch.first, &mismatch.second})
        mismatched.insert(side->alike.begin(), side->alike.end());
    }
    history_->keep_only(keys_);
    StoreHistory::RanksAndKeys polled;
    const auto until = record.outcome.time_of_last_waits();
    for (const auto& [fiber, polls] : keys_.polls()) {
      for (const auto& key : polls.go_on(until) ? polls.keys : std::vector<std::string>())
        polled.emplace(fiber.first, key);
    }
    record.notes.merge(history_->notes(mismatched, polled));
  }

 private:
  const fakes::StoreState& keys_;
  const std::shared_ptr<StoreHistory> history_ = std::make_shared<StoreHistory>();
};

}  // namespace

std::unique_ptr<Layer> make_store_history(const Ground& ground) {
  return ground.options.call_sites ? std::make_unique<HistoryLayer>(*ground.keys) : nullptr;
}

}  // namespace rehearse::sim
