// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/fakes/fake_store.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/exec/observer.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/this_rank.h>

namespace rehearse::fakes {

FakeStore::FakeStore(std::shared_ptr<StoreState> state, std::chrono::milliseconds timeout)
    : Store(timeout), state_(std::move(state)) {}

c10::intrusive_ptr<c10d::Store> FakeStore::clone() { return c10::make_intrusive<FakeStore>(state_, timeout_); }

namespace {

int calling_rank() { return exec::this_rank::is_fiber() ? exec::this_rank::rank() : -1; }

}  // namespace

// Lets polling fibers look again. What nobody reads (a heartbeat) is no progress, or a rank that waits for something
// else beside it would wait without end.
void StoreState::note_change(const std::string& key) {
  ++version_;
  unread_[key] = calling_rank();
  if (auto* const executor = exec::RankExecutor::current()) executor->note_step();
}

void StoreState::note_read(c10::ArrayRef<std::string> keys) {
  for (const std::string& key : keys) {
    const auto change = unread_.find(key);
    if (change == unread_.end() || change->second == calling_rank()) continue;
    unread_.erase(change);
    if (auto* const executor = exec::RankExecutor::current()) executor->note_progress();
  }
}

void StoreState::note_read_of_all() {
  const auto is_of_another = [rank = calling_rank()](const auto& change) { return change.second != rank; };
  if (std::erase_if(unread_, is_of_another) == 0) return;
  if (auto* const executor = exec::RankExecutor::current()) executor->note_progress();
}

void StoreState::note_wait_in_vain(WaitInVain wait) {
  constexpr std::size_t kMost = 64;
  const bool is_known = std::ranges::any_of(waits_in_vain_, [&](const auto& each) {
    return each.rank == wait.rank && each.what == wait.what && each.timeout == wait.timeout;
  });
  if (!is_known && waits_in_vain_.size() < kMost) waits_in_vain_.push_back(std::move(wait));
}

exec::Wait StoreState::wait_in(std::string_view call, c10::ArrayRef<std::string> keys) {
  std::vector<std::string> names;
  for (const std::string& key : keys) names.push_back('"' + key + '"');
  auto text = fmt::format("store {}", call);
  if (!names.empty()) text += fmt::format(" {} {}", names.size() == 1 ? "key" : "keys", fmt::join(names, ", "));
  const bool is_for_a_key = names.size() == 1 && (call == "wait for" || call == "check of");
  return {.waits_on = text, .call = text, .kind = is_for_a_key ? exec::Wait::Kind::key : exec::Wait::Kind::other};
}

StoreState::FiberOfRank StoreState::this_fiber() { return {exec::this_rank::rank(), exec::this_rank::fiber_of_rank()}; }

void StoreState::note_poll(const char* call, c10::ArrayRef<std::string> keys) {
  if (!exec::this_rank::is_fiber()) return;
  const auto now = exec::this_rank::now();
  auto& polls = polls_of_[this_fiber()];
  if (polls.call != call || !keys.equals(polls.keys)) {
    polls = {call, keys.vec(), now, now, {}, 1};
    return;
  }
  polls.longest_pause = std::max(polls.longest_pause, now - polls.last);
  polls.last = now;
  ++polls.times;
}

void StoreState::forget_polls() {
  if (exec::this_rank::is_fiber()) polls_of_.erase(this_fiber());
}

std::vector<std::uint8_t>& StoreState::to_change(const std::string& key) {
  const auto [entry, is_new] = values_.try_emplace(key);
  if (keeps_former_ && !is_new) former_[key] = entry->second;
  return entry->second;
}

std::vector<std::string> StoreState::keys() const {
  std::vector<std::string> keys;
  keys.reserve(values_.size());
  for (const auto& [key, value] : values_) keys.push_back(key);
  std::ranges::sort(keys);
  return keys;
}

bool StoreState::erase(const std::string& key) {
  former_.erase(key);
  return values_.erase(key) > 0;
}

bool StoreState::lose(const std::string& key) {
  if (!erase(key)) return false;
  note_change(key);
  return true;
}

const std::vector<std::uint8_t>* StoreState::former(const std::string& key) const {
  const auto found = former_.find(key);
  return found == former_.end() ? nullptr : &found->second;
}

void FakeStore::changed(const std::string& key) {
  state_->note_change(key);
  if (const auto waiting = state_->waiting_.find(key); waiting != state_->waiting_.end()) {
    waiting->second.notify_all();
  }
}

// Calls for several keys count as calls for the first one.
Access FakeStore::access_to(c10::ArrayRef<std::string> keys, bool writes) {
  return keys.empty() ? Access() : exec::this_rank::access_to("store key", keys.front(), writes);
}

// Other ranks may run before each call, because a rank's two calls are not one atomic step.
void FakeStore::begin_call(c10::ArrayRef<std::string> keys, bool writes) const {
  if (exec::this_rank::preempts()) exec::this_rank::preempt(access_to(keys, writes));
  if (state_->time_of_a_call_.count() > 0 && exec::this_rank::is_fiber())
    exec::this_rank::spend(state_->time_of_a_call_, "a call of the store");
}

class FakeStore::StorePollObserver final : public exec::Observer {
 public:
  StorePollObserver(const char* call, c10::ArrayRef<std::string> keys) : call_(call), keys_(keys) {}

 private:
  exec::Wait describe() const override { return StoreState::wait_in(call_, keys_); }

  const char* const call_;
  const c10::ArrayRef<std::string> keys_;
};

// A rank that reads every key once does not poll. If the rank goes on reading although nothing has changed, it polls.
void FakeStore::poll(const char* call, c10::ArrayRef<std::string> keys) {
  if (!exec::this_rank::is_fiber()) return;
  state_->note_poll(call, keys);
  if (polls_.count(state_->version_) <= state_->values_.size() + state_->queues_.size() + 1) return;
  const StorePollObserver polling(call, keys);
  exec::this_rank::poll(&polling, access_to(keys, false));
}

void FakeStore::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  begin_call(key, true);
  put(key, value);
}

void FakeStore::put(const std::string& key, const std::vector<std::uint8_t>& value) {
  state_->to_change(key) = value;
  changed(key);
}

void FakeStore::multiSet(const std::vector<std::string>& keys, const std::vector<std::vector<std::uint8_t>>& values) {
  exec::this_rank::make_store_call([&] {
    TORCH_CHECK_VALUE(keys.size() == values.size(), "multiSet: ", keys.size(), " keys and ", values.size(),
                      " values; each key needs one value");
  });
  begin_call(keys, true);
  for (std::size_t i = 0; i < keys.size(); ++i) put(keys[i], values[i]);
}

void FakeStore::append(const std::string& key, const std::vector<std::uint8_t>& value) {
  begin_call(key, true);
  auto& held = state_->to_change(key);
  held.insert(held.end(), value.begin(), value.end());
  changed(key);
}

std::vector<std::uint8_t> FakeStore::compareSet(const std::string& key, const std::vector<std::uint8_t>& expected,
                                                const std::vector<std::uint8_t>& desired) {
  begin_call(key, true);
  const auto may_set = [&] {
    const auto found = state_->values_.find(key);
    return found == state_->values_.end() ? expected.empty() : found->second == expected;
  };
  if (!may_set()) poll("compareSet of", key);
  state_->note_read(key);
  if (may_set()) {
    put(key, desired);
    return desired;
  }
  const auto found = state_->values_.find(key);
  return found == state_->values_.end() ? expected : found->second;
}

std::vector<std::uint8_t> FakeStore::get(const std::string& key) { return std::move(multiGet({key}).front()); }

std::vector<std::vector<std::uint8_t>> FakeStore::multiGet(const std::vector<std::string>& keys) {
  begin_call(keys, false);
  const Wish wish{keys, false, "wait for"};
  if (first_missing(wish) == nullptr) poll("get of", keys);
  // Another rank may have deleted a key during poll(), so wait in any case.
  wait_until_there(wish, timeout_);
  std::vector<std::vector<std::uint8_t>> values;
  values.reserve(keys.size());
  for (const std::string& key : keys) values.push_back(state_->values_.at(key));
  return values;
}

std::int64_t FakeStore::add(const std::string& key, std::int64_t amount) {
  begin_call(key, true);
  if (amount == 0) poll("add of 0 to", key);  // c10d's own code polls a counter in this way
  // number_at() throws if the value is no number. Other ranks may run, and change the value, before number_at() reads
  // it.
  std::int64_t held = 0;
  exec::this_rank::make_store_call([&] { held = number_at(key); });
  state_->note_read(key);
  const auto found = state_->values_.find(key);
  // Add as unsigned numbers, because c10d's counters wrap around.
  const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(held) + static_cast<std::uint64_t>(amount));
  const std::string text = std::to_string(sum);
  std::vector<std::uint8_t> value(text.begin(), text.end());
  if (found == state_->values_.end() || found->second != value) {
    put(key, value);
  }
  return sum;
}

std::int64_t FakeStore::number_at(const std::string& key) const {
  const auto found = state_->values_.find(key);
  if (found == state_->values_.end() || found->second.empty()) return 0;
  return std::stoll(std::string(found->second.begin(), found->second.end()));
}

bool FakeStore::deleteKey(const std::string& key) {
  begin_call(key, true);
  const bool deleted = state_->erase(key);
  if (!deleted) poll("deleteKey of", key);
  state_->note_read(key);
  if (deleted) changed(key);
  return deleted;
}

bool FakeStore::check(const std::vector<std::string>& keys) {
  constexpr const char* kCall = "check of";
  constexpr std::size_t kFindsFree = 1000;
  const StorePollObserver polling(kCall, keys);
  const auto is_there = [&] { return first_missing({keys, true, ""}) == nullptr; };
  if (exec::this_rank::is_fiber()) {
    const auto access = access_to(keys, false);
    // A rank may also wait until a key is deleted.
    const bool only_looks = is_there() && finds_.count(state_->version_) <= kFindsFree;
    only_looks ? exec::this_rank::look(access) : exec::this_rank::poll(&polling, access);
  }
  const bool there = is_there();
  state_->note_read(keys);
  if (there) {
    state_->forget_polls();
  } else {
    state_->note_poll(kCall, keys);
  }
  return there;
}

std::int64_t FakeStore::getNumKeys() {
  poll("getNumKeys");
  state_->note_read_of_all();
  return static_cast<std::int64_t>(state_->values_.size());
}

std::vector<std::string> FakeStore::listKeys() {
  poll("listKeys");
  state_->note_read_of_all();
  return state_->keys();
}

void FakeStore::queuePush(const std::string& key, const std::vector<std::uint8_t>& value) {
  begin_call(key, true);
  state_->queues_[key].push_back(value);
  changed(key);
}

std::vector<std::uint8_t> FakeStore::queuePop(const std::string& key, bool block) {
  begin_call(key, true);
  if (block) {
    const std::vector<std::string> keys{key};
    wait_until_there({keys, true, "queue pop from"}, timeout_);
  } else if (!state_->queues_.contains(key)) {
    poll("queuePop from", key);
  }
  state_->note_read(key);
  const auto queue = state_->queues_.find(key);
  TORCH_CHECK_WITH(DistQueueEmptyError, queue != state_->queues_.end(), "queue is empty: \"", key, '"');
  std::vector<std::uint8_t> value = std::move(queue->second.front());
  queue->second.pop_front();
  if (queue->second.empty()) state_->queues_.erase(queue);
  changed(key);
  return value;
}

std::int64_t FakeStore::queueLen(const std::string& key) {
  poll("queueLen of", key);
  state_->note_read(key);
  const auto queue = state_->queues_.find(key);
  return queue == state_->queues_.end() ? 0 : static_cast<std::int64_t>(queue->second.size());
}

}  // namespace rehearse::fakes
