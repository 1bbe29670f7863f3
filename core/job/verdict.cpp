// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/verdict.h>

#include <array>

namespace rehearse {
namespace {

struct Row {
  Verdict verdict;
  std::string_view name;
  int exit_code;
  bool of_waits = false;
};

// Exit codes are part of the command's interface: scripts compare them.
constexpr std::array kTable{
    Row{Verdict::ok, "OK", 0},
    Row{Verdict::rank_failed, "RANK FAILED", 1},
    Row{Verdict::mismatch, "MISMATCH", 2},
    Row{Verdict::deadlock, "DEADLOCK", 3, true},
    Row{Verdict::nondeterminism, "NONDETERMINISM", 4},
    Row{Verdict::livelock, "LIVELOCK", 5, true},
    Row{Verdict::step_budget, "STEP BUDGET", 5},
    Row{Verdict::check_failed, "CHECK FAILED", 6},
    Row{Verdict::timeout, "TIMEOUT", 8, true},
    Row{Verdict::interrupted, "INTERRUPTED", 130},
    Row{Verdict::crashed, "CRASHED", 9},
    Row{Verdict::fault_not_fired, "FAULT NOT FIRED", 7},
    Row{Verdict::out_of_memory, "OUT OF MEMORY", 10},
};

constexpr bool rows_follow_enum() {
  for (std::size_t row = 0; row < kTable.size(); ++row) {
    if (static_cast<std::size_t>(kTable[row].verdict) != row) return false;
  }
  return true;
}
static_assert(rows_follow_enum(), "a verdict is its row's index");

}  // namespace

std::string_view to_string(Verdict verdict) noexcept { return kTable[static_cast<std::size_t>(verdict)].name; }

int exit_code(Verdict verdict) noexcept { return kTable[static_cast<std::size_t>(verdict)].exit_code; }

bool is_of_waits(Verdict verdict) noexcept { return kTable[static_cast<std::size_t>(verdict)].of_waits; }

std::vector<Verdict> all_verdicts() {
  std::vector<Verdict> verdicts;
  for (const Row& row : kTable) verdicts.push_back(row.verdict);
  return verdicts;
}

std::optional<Verdict> verdict_from_string(std::string_view name) noexcept {
  for (const Row& row : kTable) {
    if (row.name == name) return row.verdict;
  }
  return std::nullopt;
}

}  // namespace rehearse
