// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/comm/title.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fingerprint.h"
#include "label.h"

namespace rehearse::comm {
namespace {

// " to rank 3 with tag 5" for sends and receives; empty for collectives.
std::string peer_text(const Operation& call, const GroupIdentity& group) {
  if (!is_point_to_point(call.type)) return {};
  std::string text;
  if (call.peer >= 0) {
    const auto* const direction = call.type == c10d::OpType::SEND ? "to" : "from";
    text = fmt::format(" {} rank {}", direction, group.global_rank(call.peer));
  }
  if (call.tag != 0) text += fmt::format(" with tag {}", call.tag);
  return text;
}

}  // namespace

std::string title_of(const Operation& call, std::uint64_t sequence, const GroupIdentity& group) {
  const auto label = label_of(call);
  return fmt::format("{} #{}{}{} on group \"{}\"", name_of(call), sequence, peer_text(call, group),
                     label.empty() ? "" : fmt::format(" of \"{}\"", label), group.name);
}

std::string short_title(std::string_view name, std::uint64_t sequence, std::string_view group) {
  return fmt::format("{} #{} on group \"{}\"", name, sequence, group);
}

std::string without_own_number(const std::string& title) {
  const auto number = title.find(" #");
  const bool is_message = title.starts_with("send ") || title.starts_with("recv ");
  if (!is_message || number == std::string::npos) return title;
  return title.substr(0, number) + title.substr(std::min(title.find(' ', number + 1), title.size()));
}

Mismatch::Side side_of(const Operation& call, int rank, const GroupIdentity& group, exec::CallSite where) {
  Mismatch::Side side;
  side.rank = group.global_rank(rank);
  side.fingerprint = fingerprint_text(call) + peer_text(call, group);
  side.where = std::move(where);
  side.alike = {side.rank};
  return side;
}

}  // namespace rehearse::comm
