// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/fakes/fake_store.h>

#include <optional>
#include <utility>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/exec/executor.h>
#include <rehearse/exec/this_rank.h>

namespace rehearse::fakes {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

// Timeouts beyond the end of virtual time (292 years) are none.
std::optional<VirtualTime> deadline_of(std::chrono::milliseconds timeout) {
  if (timeout == c10d::Store::kNoTimeout) return std::nullopt;
  const VirtualTime now = exec::this_rank::now();
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(VirtualTime::max() - now);
  if (timeout >= left) return std::nullopt;
  return now + timeout;
}

}  // namespace

class FakeStore::WaitObserver final : public exec::Observer {
 public:
  WaitObserver(const FakeStore& store, const std::vector<std::string>& keys) : store_(store), keys_(keys) {}

  std::string describe() const override {
    std::vector<std::string> missing;
    for (const std::string& key : keys_) {
      if (!store_.state_->values_.contains(key)) missing.push_back('"' + key + '"');
    }
    return fmt::format("store wait for {} {}", missing.size() == 1 ? "key" : "keys", fmt::join(missing, ", "));
  }

  bool is_enabled() const override { return store_.first_missing(keys_) == nullptr; }

 private:
  const FakeStore& store_;
  const std::vector<std::string>& keys_;
};

FakeStore::FakeStore(std::shared_ptr<StoreState> state, std::chrono::milliseconds timeout)
    : Store(timeout), state_(std::move(state)) {}

c10::intrusive_ptr<c10d::Store> FakeStore::clone() { return c10::make_intrusive<FakeStore>(state_, timeout_); }

// Wakes those who wait for the key and lets those who poll look again.
void FakeStore::changed(const std::string& key) {
  ++state_->version_;
  if (auto* const executor = exec::RankExecutor::current()) executor->note_progress();
  if (const auto waiting = state_->waiting_.find(key); waiting != state_->waiting_.end()) {
    waiting->second.notify_all();
  }
}

// Reading every key once is no polling; reading on while nothing changes is.
void FakeStore::look() {
  if (!exec::this_rank::is_fiber()) return;
  if (std::exchange(looked_at_, state_->version_) != state_->version_) looks_ = 0;
  if (++looks_ > state_->values_.size() + 1) exec::this_rank::poll();
}

void FakeStore::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  state_->values_[key] = value;
  changed(key);
}

std::vector<std::uint8_t> FakeStore::compareSet(const std::string& key, const std::vector<std::uint8_t>& expected,
                                                const std::vector<std::uint8_t>& desired) {
  const auto may_set = [&] {
    const auto found = state_->values_.find(key);
    return found == state_->values_.end() ? expected.empty() : found->second == expected;
  };
  if (!may_set()) look();
  if (may_set()) {
    set(key, desired);
    return desired;
  }
  const auto found = state_->values_.find(key);
  return found == state_->values_.end() ? expected : found->second;
}

std::vector<std::uint8_t> FakeStore::get(const std::string& key) {
  if (state_->values_.contains(key)) look();
  // The poll may have let somebody delete it, so wait in any case.
  wait({key});
  return state_->values_.at(key);
}

std::int64_t FakeStore::add(const std::string& key, std::int64_t amount) {
  if (amount == 0) look();  // how c10d's own code polls a counter
  const auto [found, is_new] = state_->values_.try_emplace(key);
  std::int64_t sum = amount;
  if (!found->second.empty()) sum += std::stoll(std::string(found->second.begin(), found->second.end()));
  if (amount == 0 && !is_new) return sum;
  const std::string text = number(sum);
  found->second.assign(text.begin(), text.end());
  changed(key);
  return sum;
}

bool FakeStore::deleteKey(const std::string& key) {
  const bool deleted = state_->values_.erase(key) > 0;
  if (!deleted) look();
  if (deleted) changed(key);
  return deleted;
}

bool FakeStore::check(const std::vector<std::string>& keys) {
  if (exec::this_rank::is_fiber()) exec::this_rank::poll();
  return first_missing(keys) == nullptr;
}

std::int64_t FakeStore::getNumKeys() {
  look();
  return static_cast<std::int64_t>(state_->values_.size());
}

void FakeStore::wait(const std::vector<std::string>& keys) { wait(keys, timeout_); }

void FakeStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout_given) {
  const std::chrono::milliseconds timeout = timeout_given;  // it may be a reference to what setTimeout() changes
  const std::string* missing = first_missing(keys);
  if (missing == nullptr) return;
  if (!exec::this_rank::is_fiber()) time_out(keys, std::chrono::milliseconds::zero());
  const auto deadline = deadline_of(timeout);
  for (; missing != nullptr; missing = first_missing(keys)) wait_for(*missing, keys, timeout, deadline);
}

void FakeStore::wait_for(const std::string& missing, const std::vector<std::string>& keys,
                         std::chrono::milliseconds timeout, std::optional<VirtualTime> deadline) {
  struct Entry {
    StoreState& state;
    const std::string& key;
    // Looked up again: other waiters of the key may have come and gone.
    ~Entry() {
      const auto found = state.waiting_.find(key);
      if (found != state.waiting_.end() && found->second.empty()) state.waiting_.erase(found);
    }
  };
  const WaitObserver observer(*this, keys);
  const Entry entry{*state_, missing};
  if (state_->waiting_[missing].wait(observer, deadline) == exec::WaitResult::notified) return;
  if (first_missing(keys) != nullptr) time_out(keys, timeout);
}

const std::string* FakeStore::first_missing(const std::vector<std::string>& keys) const {
  for (const std::string& key : keys) {
    if (!state_->values_.contains(key)) return &key;
  }
  return nullptr;
}

void FakeStore::time_out(const std::vector<std::string>& keys, std::chrono::milliseconds timeout) const {
  std::vector<std::string> missing;
  for (const std::string& key : keys) {
    if (!state_->values_.contains(key)) missing.push_back(key);
  }
  C10_THROW_ERROR(DistStoreError, fmt::format("wait timeout after {}ms, keys: {} (no rank has set: {})",
                                              timeout.count(), fmt::join(keys, ", "), fmt::join(missing, ", ")));
}

}  // namespace rehearse::fakes
