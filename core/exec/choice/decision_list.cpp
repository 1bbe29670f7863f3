// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/exec/decision_list.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <rehearse_internal/exec/check.h>

namespace rehearse {
namespace {

constexpr std::size_t kRoomMin = 64;
constexpr std::size_t kRoomMax = std::size_t{64} << 10;  // limits how much is zeroed at once

}  // namespace

std::uint64_t DecisionList::take(const char*& at) noexcept {
  std::uint64_t number = 0;
  for (unsigned shift = 0;; shift += kPayloadBits) {
    const auto byte = static_cast<std::uint8_t>(*at++);
    number |= static_cast<std::uint64_t>(byte & (kMoreFollows - 1)) << shift;
    if ((byte & kMoreFollows) == 0) return number;
  }
}

// Like take(), for untrusted bytes. Returns nullopt if they end within the number, or if the number does not fit in 64
// bits.
std::optional<std::uint64_t> DecisionList::take_checked(std::string_view& bytes) noexcept {
  constexpr std::size_t kWhole = 64 / kPayloadBits;  // how many bytes 64 bits fill completely
  for (std::size_t length = 0; length < std::min(bytes.size(), kWhole + 1); ++length) {
    const auto byte = static_cast<std::uint8_t>(bytes[length]);
    if (length == kWhole && byte >= 1U << 64 % kPayloadBits) return std::nullopt;
    if ((byte & kMoreFollows) != 0) continue;
    const char* at = bytes.data();
    bytes.remove_prefix(length + 1);
    return take(at);
  }
  return std::nullopt;
}

void DecisionList::grow() { bytes_.resize(bytes_.size() + std::clamp(bytes_.size(), kRoomMin, kRoomMax)); }

void DecisionList::swap(DecisionList& other) noexcept {
  bytes_.swap(other.bytes_);
  std::swap(used_, other.used_);
  std::swap(size_, other.size_);
}

DecisionList::DecisionList(std::span<const Decision> decisions) {
  for (const Decision& decision : decisions) {
    REHEARSE_CHECK(decision.answer < decision.options, to_string(decision.kind), decision.answer, decision.options);
    push_back(decision);
  }
}

Decision DecisionList::Iterator::operator*() const {
  const char* at = at_;
  const std::uint64_t question = take(at);
  return {static_cast<ChoiceKind>(question % kKinds), static_cast<std::uint32_t>(question / kKinds),
          static_cast<std::uint32_t>(take(at))};
}

DecisionList::Iterator& DecisionList::Iterator::operator++() {
  take(at_);
  take(at_);
  return *this;
}

std::optional<DecisionList> DecisionList::from_bytes(std::string bytes, std::size_t count) {
  std::size_t found = 0;
  for (std::string_view rest = bytes; !rest.empty(); ++found) {
    const auto question = take_checked(rest);
    const auto answer = question ? take_checked(rest) : std::nullopt;
    if (!answer) return std::nullopt;
    const std::uint64_t options = *question / kKinds;
    if (options > std::numeric_limits<std::uint32_t>::max() || *answer >= options) return std::nullopt;
  }
  if (found != count) return std::nullopt;
  DecisionList list;
  list.bytes_ = std::move(bytes);
  list.used_ = list.bytes_.size();
  list.size_ = count;
  return list;
}

}  // namespace rehearse
