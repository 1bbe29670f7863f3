// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/comm/connection_text.h>

#include <charconv>

#include <fmt/format.h>

namespace rehearse::comm {
namespace {

constexpr std::string_view kLost = "failed: rank ", kWhy = " closed the connection";

}  // namespace

std::string failed_as_closed_by(int rank) { return fmt::format("{}{}{}", kLost, rank, kWhy); }

std::optional<int> closed_by(std::string_view text) {
  const auto lost = text.find(kLost);
  if (lost == text.npos) return std::nullopt;
  const auto rest = text.substr(lost + kLost.size());
  int rank = -1;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), rank);
  const auto digits = static_cast<std::size_t>(end - rest.data());
  return error == std::errc() && rest.substr(digits).starts_with(kWhy) ? std::optional(rank) : std::nullopt;
}

}  // namespace rehearse::comm
