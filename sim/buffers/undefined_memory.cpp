// SPDX-License-Identifier: BSD-3-Clause
#include "undefined_memory.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace rehearse::sim {

UndefinedMemory::Spans::iterator UndefinedMemory::first_that_ends_after(const std::byte* begin) {
  auto span = spans_.upper_bound(begin);
  if (span != spans_.begin() && std::less<>{}(begin, std::prev(span)->second.end)) --span;
  return span;
}

// Removes `bytes` from the spans. Keeps the parts of spans before and after `bytes`.
void UndefinedMemory::cut(const ByteSpan& bytes) {
  auto span = first_that_ends_after(bytes.begin);
  while (span != spans_.end() && std::less<>{}(span->first, bytes.end)) {
    const auto [begin, rest] = *span;
    span = spans_.erase(span);
    if (std::less<>{}(begin, bytes.begin)) spans_.emplace(begin, Span{bytes.begin, rest.memory});
    if (std::less<>{}(bytes.end, rest.end)) spans_.emplace(bytes.end, rest);
  }
}

void UndefinedMemory::write(const Footprint& bytes) {
  if (spans_.empty() || bytes.empty()) return;
  // If a tensor has too many runs (see Footprint), everything between its ends counts as written.
  if (bytes.runs().empty()) return cut(bytes.bounds());
  for (const auto& run : bytes.runs()) cut(run);
}

void UndefinedMemory::mark_undefined(const WatchedBuffer& buffer, const UndefiningCall& call) {
  drop_freed();
  const auto memory = std::make_shared<const Memory>(Memory{buffer, call});
  for (const auto& run : buffer.footprint.runs()) {
    cut(run);
    spans_.emplace(run.begin, Span{run.end, memory});
  }
}

const UndefiningCall* UndefinedMemory::find(const Footprint& bytes) {
  if (spans_.empty()) return nullptr;
  for (const auto& run : bytes.runs()) {
    auto span = first_that_ends_after(run.begin);
    while (span != spans_.end() && std::less<>{}(span->first, run.end)) {
      if (span->second.memory->storage.is_there()) return &span->second.memory->call;
      span = spans_.erase(span);
    }
  }
  return nullptr;
}

void UndefinedMemory::drop_freed() {
  if (spans_.size() < spans_most_) return;
  std::erase_if(spans_, [](const auto& span) { return !span.second.memory->storage.is_there(); });
  spans_most_ = std::max<std::size_t>(1'024, 2 * spans_.size());
}

}  // namespace rehearse::sim
