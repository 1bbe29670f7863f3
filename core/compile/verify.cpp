// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <rehearse/compile/errors.h>
#include <rehearse/graph/structural_hash.h>

#include "compile/callable_impl.h"
#include "compile/graph_difference.h"

namespace rehearse::compiler {
namespace {

// LibTorch makes a number such as that of `y.index_put_({0}, 1.0)` a tensor where no tracer sees it: a new object in
// each call.
bool is_number(const at::Tensor& tensor) {
  return tensor.dim() == 0 && tensor.device().is_cpu() && tensor.layout() == at::kStrided && !tensor.requires_grad();
}

bool same_tensor(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b)) return true;
  if (!is_number(a) || !is_number(b) || a.scalar_type() != b.scalar_type()) return false;
  return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.element_size()) == 0;  // NaN, too, is itself
}

bool same_tensors(const Capture& a, const Capture& b) {
  const auto& left = a.guards.captured();
  const auto& right = b.guards.captured();
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!same_tensor(left[i], right[i])) return false;
  }
  return true;
}

bool same_function(const Capture& a, const Capture& b) {
  return a.inputs == b.inputs && a.constants == b.constants && same_tensors(a, b) &&
         graph::structural_hash(*a.module) == graph::structural_hash(*b.module);
}

std::string first_difference(const Capture& before, const Capture& now) {
  if (std::string told = difference_of(*before.module, *now.module); !told.empty()) return told;
  if (!same_tensors(before, now)) return "a tensor that is no argument is another one now";
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
