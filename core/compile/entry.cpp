// SPDX-License-Identifier: BSD-3-Clause
#include "compile/entry.h"

#include <algorithm>
#include <utility>

#include <c10/util/Exception.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/this_rank.h>

#include "compile/compiler_collectives/agreement.h"
#include "compile/segments/segment_tree.h"

namespace rehearse::compiler {

bool Entry::holds(const LeafList& leaves, const GlobalState& state, GuardFailure* failure) const {
  if (!capture.guards.holds(leaves, state, failure)) return false;
  return !segments || std::ranges::all_of(segments->guards,
                                          [&](const GuardSet& guards) { return guards.holds(leaves, state, failure); });
}

std::vector<c10::IValue> Entry::run(const LeafList& leaves) {
  std::vector<c10::IValue> values = inputs.take(capture.inputs, leaves);
  std::vector<c10::IValue> outputs = run_graph(values);
  inputs.give_back(std::move(values), capture.inputs);  // for the next call: the inputs that the run did not consume
  return outputs;
}

std::size_t Entry::paths() const { return 1 + (segments ? segments->guards.size() : 0); }

EntryCache::Lock::Lock(EntryCache& cache) : cache_(cache) {
  const exec::FixedObserver observer("compile: another fiber of the rank compiles the same function");
  while (cache_.locks_ > 0 && exec::this_rank::is_fiber()) cache_.waiting_.wait(observer);
  ++cache_.locks_;
}

EntryCache::Lock::~Lock() {
  REHEARSE_CHECK(cache_.locks_ > 0, cache_.locks_);
  --cache_.locks_;
  cache_.waiting_.notify_one();
}

void EntryCache::begin_call() noexcept {
  ++stats_.calls;
  stats_.compiles_in_last_call = 0;
}

void EntryCache::note_answer() {
  ++answers_;
  REHEARSE_CHECK(answers_ <= stats_.calls, options_.name, answers_, stats_.calls);
}

void EntryCache::note_hit() {
  note_answer();
  ++stats_.hits;
}

void EntryCache::note_eager() {
  note_answer();
  ++stats_.eager_calls;
}

Entry* EntryCache::find(const LeafList& leaves, const GlobalState& state) {
  for (std::size_t i = 0; i < by_use_.size(); ++i) {
    if (!by_use_[i]->holds(leaves, state)) continue;
    std::rotate(by_use_.begin(), by_use_.begin() + static_cast<std::ptrdiff_t>(i),
                by_use_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return by_use_.front();
  }
  return nullptr;
}

Entry* EntryCache::find_segmented(const LeafList& leaves, const GlobalState& state) const {
  for (Entry* entry : by_use_) {
    if (entry->segments && entry->holds(leaves, state)) return entry;
  }
  return nullptr;
}

Entry* EntryCache::find_graph(const LeafList& leaves, const GlobalState& state, const Capture& code) const {
  for (Entry* entry : by_use_) {
    if (entry->segments || !entry->holds(leaves, state)) continue;
    if (same_function(entry->capture, code)) return entry;
  }
  return nullptr;
}

std::size_t EntryCache::paths() const {
  std::size_t paths = 0;
  for (const Entry& entry : entries_) paths += entry.paths();
  return paths;
}

std::vector<GuardFailure> EntryCache::note_failures(const LeafList& leaves, const GlobalState& state, bool for_others) {
  if (entries_.empty() || warned_of_limit_) return {};
  Recompile& recompile = recompiles_.emplace_back();
  recompile.call = stats_.calls;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    GuardFailure failure;
    const bool holds = entry->holds(leaves, state, &failure);
    if (holds && for_others) continue;
    if (holds) failure = {kFunctionItself, "the graph that was compiled", "another one", ""};
    recompile.failures.push_back(failure);
  }
  return recompile.failures;
}

bool EntryCache::may_grow() {
  if (is_refused()) return false;
  if (!is_full()) return true;
  if (!std::exchange(warned_of_limit_, true)) {
    const bool has_failure = !recompiles_.empty() && !recompiles_.back().failures.empty();
    TORCH_WARN("rehearse::compile: '", options_.name, "' has been compiled ", paths(),
               " times, which is the limit. From now on, calls that no entry serves run uncompiled",
               has_failure ? ". Last: " + text_of(recompiles_.back().failures.front()) : "");
  }
  return false;
}

void EntryCache::note_compile(std::size_t graphs) {
  REHEARSE_CHECK(locks_ > 0, options_.name);
  note_answer();
  ++stats_.compiles;
  ++stats_.compiles_in_last_call;
  stats_.graphs += static_cast<std::int64_t>(graphs);
}

Entry& EntryCache::add(Entry entry) {
  REHEARSE_CHECK(by_use_.size() == entries_.size(), by_use_.size(), entries_.size());
  note_compile(entry.explanation.graphs.size());
  entry.number = entries_.size();
  entries_.push_back(std::move(entry));
  captures_that_kept_ = 0;
  by_use_.insert(by_use_.begin(), &entries_.back());
  return entries_.back();
}

void EntryCache::add_path(Entry& entry, GuardSet guards, std::vector<GraphExplanation> made) {
  REHEARSE_CHECK(entry.segments != nullptr && !made.empty(), options_.name, entry.number, made.size());
  note_compile(made.size());
  entry.segments->guards.push_back(std::move(guards));
  entry.explanation.graphs.insert(entry.explanation.graphs.end(), made.begin(), made.end());
}

void EntryCache::refuse(const std::string& why) {
  REHEARSE_CHECK(!why.empty(), options_.name);
  refusal_ = why;
  TORCH_WARN("rehearse::compile: '", options_.name, "' cannot be captured and runs as it is: ", why);
}

void EntryCache::explain(Explanation& explanation) const {
  explanation.stats = stats_;
  for (const Entry& entry : entries_) {
    EntryExplanation& explained = explanation.entries.emplace_back(entry.explanation);
    explained.guards = entry.capture.guards.symbols().texts();
    for (const capture::Remark& remark : entry.capture.remarks) {
      const std::string line = remark.where.describe();
      explained.remarks.push_back(remark.message + (line.empty() ? "" : " (" + line + ")"));
    }
  }
  explanation.recompiles = recompiles_;
  explanation.refusal = refusal_;
}

}  // namespace rehearse::compiler
