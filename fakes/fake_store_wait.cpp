// SPDX-License-Identifier: BSD-3-Clause
// How a rank waits in a FakeStore.
#include <rehearse/fakes/fake_store.h>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/exec/this_rank.h>

namespace rehearse::fakes {
namespace {

std::optional<VirtualTime> deadline_of(std::chrono::milliseconds timeout) {
  if (timeout == c10d::Store::kNoTimeout) return std::nullopt;
  return later(exec::this_rank::now(), timeout);
}

}  // namespace

class FakeStore::WaitObserver final : public exec::Observer {
 public:
  WaitObserver(const FakeStore& store, const Wish& wish) : store_(store), wish_(wish) {}

 private:
  exec::Wait describe() const override {
    auto wait = StoreState::wait_in(wish_.what, store_.all_missing(wish_));
    wait.any_rank = true;
    return wait;
  }

  const FakeStore& store_;
  const Wish& wish_;
};

void FakeStore::wait(const std::vector<std::string>& keys) { wait(keys, timeout_); }

void FakeStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
  begin_call(keys, false);
  wait_until_there({keys, true, "wait for"}, timeout);
}

// `timeout` is a copy: if a rank calls setTimeout() during the wait, only later calls use the new value.
void FakeStore::wait_until_there(const Wish& wish, std::chrono::milliseconds timeout) {
  const std::string* missing = first_missing(wish);
  const bool is_fiber = exec::this_rank::is_fiber();
  if (missing != nullptr) {
    if (!is_fiber) time_out(wish, std::chrono::milliseconds::zero());
    const auto deadline = deadline_of(timeout);
    for (; missing != nullptr; missing = first_missing(wish)) wait_for(*missing, wish, timeout, deadline);
  }
  state_->note_read(wish.keys);
  if (!is_fiber || state_->polls_of_.empty()) return;
  const auto polls = state_->polls_of_.find(StoreState::this_fiber());
  if (polls != state_->polls_of_.end() && polls->second.call == wish.what && polls->second.keys == wish.keys)
    state_->forget_polls();
}

void FakeStore::wait_for(const std::string& missing, const Wish& wish, std::chrono::milliseconds timeout,
                         std::optional<VirtualTime> deadline) {
  struct Entry {
    StoreState& state;
    const std::string& key;
    // Look the entry up again: other waiters of the key may have removed or replaced it.
    ~Entry() {
      const auto found = state.waiting_.find(key);
      if (found != state.waiting_.end() && found->second.empty()) state.waiting_.erase(found);
    }
  };
  const WaitObserver observer(*this, wish);
  const Entry entry{*state_, missing};
  if (state_->waiting_[missing].wait(observer, deadline) == exec::WaitResult::notified) return;
  if (first_missing(wish) == nullptr) return;
  exec::this_rank::note_given_up(observer);
  state_->note_wait_in_vain({exec::this_rank::rank(), observer.wait().call, timeout, exec::this_rank::now()});
  state_->note_poll(wish.what, wish.keys);  // a loop of waits with short timeouts polls
  time_out(wish, timeout);
}

bool FakeStore::has(const std::string& key, bool or_elements) const {
  return state_->values_.contains(key) || (or_elements && state_->queues_.contains(key));
}

const std::string* FakeStore::first_missing(const Wish& wish) const {
  for (const std::string& key : wish.keys) {
    if (!has(key, wish.or_elements)) return &key;
  }
  return nullptr;
}

std::vector<std::string> FakeStore::all_missing(const Wish& wish) const {
  std::vector<std::string> missing;
  for (const std::string& key : wish.keys) {
    if (!has(key, wish.or_elements)) missing.push_back(key);
  }
  return missing;
}

void FakeStore::time_out(const Wish& wish, std::chrono::milliseconds timeout) const {
  C10_THROW_ERROR(DistStoreError,
                  fmt::format("wait timeout after {}ms, keys: {} (no rank has set: {})", timeout.count(),
                              fmt::join(wish.keys, ", "), fmt::join(all_missing(wish), ", ")));
}

}  // namespace rehearse::fakes
