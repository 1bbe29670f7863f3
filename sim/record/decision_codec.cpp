// SPDX-License-Identifier: BSD-3-Clause
#include "decision_codec.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace rehearse::sim {
namespace {

constexpr std::uint64_t kKinds = 16;  // room for kinds beside the number of options
constexpr unsigned kPayloadBits = 7;
constexpr std::uint8_t kMoreFollows = 0x80;

void put(std::string& bytes, std::uint64_t number) {
  while (number >= kMoreFollows) {
    bytes += static_cast<char>((number & (kMoreFollows - 1)) | kMoreFollows);
    number >>= kPayloadBits;
  }
  bytes += static_cast<char>(number);
}

// Takes a number off the front of `bytes`; nothing when they end within it or it is longer than 64 bits.
std::optional<std::uint64_t> take(std::string_view& bytes) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += kPayloadBits) {
    const auto byte = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    number |= static_cast<std::uint64_t>(byte & (kMoreFollows - 1)) << shift;
    if ((byte & kMoreFollows) == 0) return number;
  }
  return std::nullopt;
}

}  // namespace

std::string encoded(std::span<const Decision> decisions) {
  std::string bytes;
  bytes.reserve(decisions.size() * 2);
  for (const Decision& decision : decisions) {
    put(bytes, decision.options * kKinds + static_cast<std::uint64_t>(decision.kind));
    put(bytes, decision.answer);
  }
  return bytes;
}

std::optional<std::vector<Decision>> decoded(std::string_view bytes, std::size_t count) {
  std::vector<Decision> decisions;
  decisions.reserve(std::min(count, bytes.size()));  // `count` comes from a file and may be anything
  while (!bytes.empty()) {
    const auto question = take(bytes);
    const auto answer = question ? take(bytes) : std::nullopt;
    if (!answer) return std::nullopt;
    const std::uint64_t options = *question / kKinds;
    if (options > std::numeric_limits<std::uint32_t>::max() || *answer >= options) return std::nullopt;
    decisions.push_back({static_cast<ChoiceKind>(*question % kKinds), static_cast<std::uint32_t>(options),
                         static_cast<std::uint32_t>(*answer)});
  }
  if (decisions.size() != count) return std::nullopt;
  return decisions;
}

}  // namespace rehearse::sim
