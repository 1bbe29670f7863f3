// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include <fmt/format.h>

#include <rehearse/compile/errors.h>
#include <rehearse/graph/structural_hash.h>

#include "compile/callable_impl.h"
#include "compile/graph_difference.h"

namespace rehearse::compiler {
namespace {

bool same_function(const Capture& a, const Capture& b) {
  return a.inputs == b.inputs && a.constants == b.constants &&
         graph::structural_hash(*a.module) == graph::structural_hash(*b.module);
}

std::string first_difference(const Capture& before, const Capture& now) {
  if (std::string told = difference_of(*before.module, *now.module); !told.empty()) return told;
  if (before.inputs != now.inputs) return "a tensor that is no argument is another one now";
  return "what it returns beside tensors is another value now";
}

}  // namespace

bool Callable::Impl::is_to_be_verified(const Entry& entry) const {
  return options_.verify == Verify::Always || (options_.verify == Verify::FirstHit && !entry.verified);
}

const Entry* Callable::Impl::verify_first(Call& call, Entry& hit) {
  ++call.cache.stats.verifications;
  hit.verified = true;
  const Capture now = capture(call, hit.capture.shape);
  if (!same_function(hit.capture, now)) {
    hit.verified = false;
    throw StaleCapture(
        fmt::format("'{}' no longer gives the graph that was compiled, although all its guards hold: {}. It reads "
                    "something that is "
                    "no argument: make it one, name it with rehearse::watch(), or compile with Verify::Always",
                    options_.name, first_difference(hit.capture, now)));
  }
  ++call.cache.stats.hits;
  call.cache.agreement.note_hit(hit.number);
  return &hit;
}

// With Verify::Always, before ranks compare what they have: null where no entry is what the code gives now.
Entry* Callable::Impl::look_again(Call& call) {
  const RankCache::Lock lock(call.cache);
  ++call.cache.stats.verifications;
  return find_as_now(call);
}

// The entry that stands for what the code does now; of several shapes each is tried.
Entry* Callable::Impl::find_as_now(Call& call) {
  for (Entry* entry : call.cache.by_use) {
    if (entry->segments || !entry->capture.guards.holds(call.leaves, call.state)) continue;
    auto shape = with_sizes_of(entry->capture.shape, call.leaves);
    if (!call.now || !(call.now->shape == shape)) {
      call.now = std::make_unique<Capture>(capture(call, std::move(shape)));
    }
    if (same_function(entry->capture, *call.now)) return entry;
  }
  return nullptr;
}

}  // namespace rehearse::compiler
