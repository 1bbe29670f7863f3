// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/cause.h>

#include <array>
#include <cstddef>

namespace rehearse {
namespace {

struct KindRow {
  Cause::Kind kind;
  std::string_view name;
};

// The names are part of the JSON report's format.
constexpr std::array kKinds{
    KindRow{Cause::Kind::threw, "threw"},
    KindRow{Cause::Kind::crashed, "crashed"},
    KindRow{Cause::Kind::compiles, "compiles"},
    KindRow{Cause::Kind::out_of_step, "out_of_step"},
    KindRow{Cause::Kind::ended_without, "ended_without"},
    KindRow{Cause::Kind::found_at_fault, "found_at_fault"},
    KindRow{Cause::Kind::held_up, "held_up"},
    KindRow{Cause::Kind::cut, "cut"},
    KindRow{Cause::Kind::left_out, "left_out"},
    KindRow{Cause::Kind::unmatched, "unmatched"},
    KindRow{Cause::Kind::ended, "ended"},
    KindRow{Cause::Kind::ring, "ring"},
    KindRow{Cause::Kind::stuck, "stuck"},
    KindRow{Cause::Kind::polls, "polls"},
    KindRow{Cause::Kind::late, "late"},
    KindRow{Cause::Kind::failed, "failed"},
};

constexpr bool kinds_follow_enum() {
  for (std::size_t row = 0; row < kKinds.size(); ++row) {
    if (static_cast<std::size_t>(kKinds[row].kind) != row) return false;
  }
  return true;
}
static_assert(kinds_follow_enum(), "a kind is its row's index");

}  // namespace

std::string_view to_string(Cause::Kind kind) noexcept { return kKinds[static_cast<std::size_t>(kind)].name; }

std::optional<Cause::Kind> cause_kind_from_string(std::string_view name) noexcept {
  for (const KindRow& row : kKinds) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

}  // namespace rehearse
