// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/rank_note.h>

#include <algorithm>

#include <unistd.h>

namespace rehearse {
namespace {

std::atomic<RankNote*> g_lent = nullptr;

bool is_first_thread() noexcept { return ::gettid() == ::getpid(); }

}  // namespace

// Never writes to the copy that readers see.
void SharedText::set(std::string_view text) noexcept {
  const auto next = 1 - current_.load(std::memory_order_relaxed);
  auto& copy = copies_[next];
  const auto bytes = text.copy(copy.data(), copy.size() - 1);
  copy[bytes] = '\0';
  current_.store(next, std::memory_order_release);
}

std::string SharedText::get() const { return copies_[current_.load(std::memory_order_acquire)].data(); }

void RankNote::begin(VirtualDuration began) noexcept {
  calls_ = 0;
  for (auto* const text : {&completed_last_, &waits_in_, &waits_on_, &what_}) text->set("");
  world_ends_ = false;
  waits_for_count_ = 0;
  ended_ = kNotEnded;
  began_ns_ = began.count();
}

void RankNote::completed(std::string_view call) noexcept {
  const std::lock_guard lock(completing_);
  completed_last_.set(call);
}

RankNote::Wait::Wait(std::string_view call) noexcept : noted_(is_first_thread()) {
  if (noted_) rank_note().waits_in_.set(call);
}

RankNote::Wait::~Wait() {
  if (noted_ && !rank_note().world_ends_) rank_note().waits_in_.set("");
}

void RankNote::world_ends(std::string_view waits_on, std::span<const int> waits_for) noexcept {
  const auto count = std::min(waits_for.size(), waits_for_.size());
  std::copy_n(waits_for.begin(), count, waits_for_.begin());
  waits_for_count_ = count;
  waits_on_.set(waits_on);
  world_ends_ = true;
}

void RankNote::body_ended(RankOutcome how, std::string_view what, VirtualTime at) noexcept {
  what_.set(what);
  ended_at_ns_ = at.time_since_epoch().count();
  ended_ = static_cast<int>(how);
}

RankNote::Known RankNote::known() const {
  Known known;
  if (began_ns_ != kNotBegun) known.began = VirtualDuration(began_ns_);
  known.calls = calls_;
  known.completed_last = completed_last_.get();
  known.waits_in = waits_in_.get();
  // The coordinator's text is about the oldest open call; the rank may have waited in another one.
  if (const auto by_coordinator = waits_on_.get();
      !known.waits_in.empty() && by_coordinator.starts_with(known.waits_in)) {
    known.waits_in = by_coordinator;
    known.waits_for.assign(waits_for_.begin(), waits_for_.begin() + static_cast<std::ptrdiff_t>(waits_for_count_));
  }
  if (ended_ == kNotEnded) return known;
  known.ended = static_cast<RankOutcome>(ended_.load());
  known.what = what_.get();
  known.ended_at = kTimeZero + VirtualDuration(ended_at_ns_);
  return known;
}

RankNote& rank_note() noexcept {
  static RankNote own;
  auto* const lent = g_lent.load();
  return lent != nullptr ? *lent : own;
}

LentRankNote::LentRankNote(RankNote& note) noexcept { g_lent = &note; }
LentRankNote::~LentRankNote() { g_lent = nullptr; }

}  // namespace rehearse
