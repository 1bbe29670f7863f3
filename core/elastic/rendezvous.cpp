// SPDX-License-Identifier: BSD-3-Clause
// The keys in a job's store below "rendezvous/" (RendezvousOptions::name):
//   round          a round that was open at some time: the search for the open round starts here
//   <n>/joined     "3.1 0.0 ": the ranks that have joined round n, with their incarnations, in order of arrival
//   <n>/members    "0.0 3.1 ": round n is complete, with these members; "closed": there will be no more rounds
#include <rehearse/elastic/rendezvous.h>

#include <algorithm>
#include <sstream>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <rehearse/job/rank_context.h>
#include <rehearse_internal/formatting/rank_list.h>

namespace rehearse::elastic {
namespace {

using std::chrono::milliseconds;

constexpr const char* kClosed = "closed";
constexpr milliseconds kLeast{1};  // stores treat 0 as no limit
constexpr milliseconds kForEver = std::chrono::hours(24 * 365);

RendezvousOptions checked(RendezvousOptions options, const RankContext& context) {
  const auto refuse = [](const char* field, auto value, const std::string& takes) {
    throw std::invalid_argument(fmt::format("RendezvousOptions::{} is {}; it is {}", field, value, takes));
  };
  if (options.min_ranks < 0 || options.min_ranks > context.size()) {
    refuse("min_ranks", options.min_ranks, fmt::format("0 (all) to {}, the ranks of the job", context.size()));
  }
  if (options.last_call.count() < 0) refuse("last_call", options.last_call.count(), "0 ms or more");
  if (options.join.count() < 0) refuse("join", options.join.count(), "0 ms (by the store's timeout) or more");
  if (options.min_ranks == 0) options.min_ranks = context.size();
  options.last_call = std::max(options.last_call, kLeast);
  const auto of_store = context.store()->getTimeout();
  if (options.join.count() == 0) options.join = of_store.count() > 0 ? 2 * of_store : kForEver;
  return options;
}

std::vector<std::uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }

std::string key(int round, const char* what) { return fmt::format("{}/{}", round, what); }

std::string entry(int rank, int incarnation) { return fmt::format("{}.{} ", rank, incarnation); }

// The last entry of each rank counts; those of its previous incarnations come before it.
std::map<int, int> entries_of(const std::string& text) {
  std::map<int, int> entries;
  std::istringstream words(text);
  char dot = '.';
  for (int rank = 0, incarnation = 0; words >> rank >> dot >> incarnation;) entries[rank] = incarnation;
  return entries;
}

std::string text_of(const std::map<int, int>& entries) {
  std::string text;
  for (const auto& [rank, incarnation] : entries) text += entry(rank, incarnation);
  return text;
}

std::vector<int> ranks_of(const std::map<int, int>& entries) {
  std::vector<int> ranks;
  for (const auto& [rank, incarnation] : entries) ranks.push_back(rank);
  return ranks;
}

}  // namespace

Rendezvous::Rendezvous(RankContext& context, const RendezvousOptions& options)
    : context_(context),
      options_(checked(options, context)),
      store_(c10::make_intrusive<c10d::PrefixStore>(options_.name, context.store())) {}

// Returns the value or an empty text. A get() would wait, and a check() polls, which may let time pass.
std::string Rendezvous::read(const std::string& name) { return store_->compareSet(name, "", ""); }

int Rendezvous::open_round() {
  const auto round = store_->compareSet("round", "", "0");
  return std::stoi(round);
}

auto Rendezvous::joined(int round) -> Joined { return entries_of(read(key(round, "joined"))); }

// Decides the members of the round, unless another rank has already decided. Returns the members that were decided
// first.
std::string Rendezvous::complete(int round, const std::string& members) {
  return store_->compareSet(key(round, "members"), "", members);
}

// Blocks until the round is complete or the rendezvous is closed. Returns the members, or kClosed.
std::string Rendezvous::members_of(int round, std::chrono::nanoseconds until) {
  for (;;) {
    const auto here = joined(round);
    const auto size = static_cast<int>(here.size());
    if (size == context_.size()) return complete(round, text_of(here));
    const auto left = std::chrono::ceil<milliseconds>(until - context_.now().time_since_epoch());
    if (left.count() <= 0) {
      throw RendezvousTimeoutError(
          fmt::format("round {} of the rendezvous was not complete within {} ms: it needs {} of {} ranks, and {} came",
                      round, options_.join.count(), options_.min_ranks, context_.size(),
                      here.empty() ? std::string("none") : describe_ranks(ranks_of(here))));
    }
    const bool waits_for_any = options_.min_ranks < context_.size();
    try {
      store_->wait({key(round, "members")}, waits_for_any ? std::min(left, options_.last_call) : left);
      return read(key(round, "members"));
    } catch (const c10::DistStoreError&) {
      const auto now_here = joined(round);
      if (static_cast<int>(now_here.size()) >= options_.min_ranks) return complete(round, text_of(now_here));
    }
  }
}

Members Rendezvous::next() {
  const auto until = context_.now().time_since_epoch() + options_.join;
  const auto self = std::make_pair(context_.rank(), context_.incarnation());
  for (int round = open_round();; ++round) {
    store_->append(key(round, "joined"), bytes(entry(self.first, self.second)));
    const auto members = members_of(round, until);
    if (members == kClosed) {
      throw RendezvousClosedError(fmt::format("the rendezvous is closed after {} rounds: the job is over", round));
    }
    store_->set("round", std::to_string(round + 1));
    const auto entries = entries_of(members);
    const auto found = entries.find(self.first);
    if (found != entries.end() && found->second == self.second) return {round, ranks_of(entries)};
  }
}

int Rendezvous::num_waiting(int round) { return static_cast<int>(joined(round + 1).size()); }

void Rendezvous::close() {
  int round = open_round();
  while (complete(round, kClosed) != kClosed) ++round;
}

}  // namespace rehearse::elastic
