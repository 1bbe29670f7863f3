// SPDX-License-Identifier: BSD-3-Clause
#include "disk_faults.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <fnmatch.h>
#include <rehearse_internal/exec/this_rank.h>

#include "faults/text/fault_fields.h"

namespace rehearse::sim {

// The file's name within the rank's scratch folder; nothing: the file lies elsewhere.
std::optional<std::string> DiskFaults::name_in_scratch(int rank, int file) const {
  if (!folders_.made(rank)) return std::nullopt;
  std::error_code error;
  const auto path = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", file), error);
  if (error) return std::nullopt;
  const auto folder = std::filesystem::canonical(folders_.of(rank), error).string() + "/";
  if (error || !path.string().starts_with(folder)) return std::nullopt;
  return path.string().substr(folder.size());
}

auto DiskFaults::before_write(int rank, int file, std::size_t bytes) -> Answer {
  Answer answer{.bytes = bytes};
  const auto name = name_in_scratch(rank, file);
  if (!name) return other_ != nullptr ? other_->before_write(rank, file, bytes) : answer;
  const auto number = ++writes_[rank];
  ledger_.count_write(rank);
  const auto write = fmt::format("write #{} to \"{}\"", number, *name);
  for (auto& plan : ledger_.plans()) {
    if (fits(plan, rank, *name) && ledger_.draw(plan)) act(plan, rank, write, answer);
    if (answer.error != 0) break;
  }
  return answer;
}

bool DiskFaults::fits(const FaultPlan& plan, int rank, const std::string& name) const {
  const Fault& fault = *plan.fault;
  if (callee_of(fault) != Callee::disk || !ledger_.is_open(plan, rank)) return false;
  if (!fault.file.empty() && fnmatch(fault.file.c_str(), name.c_str(), 0) != 0) return false;
  const auto& point = fault.at ? fault.at : fault.call;
  return !point || point->number == 0 || point->number == writes_.at(rank);
}

void DiskFaults::act(FaultPlan& plan, int rank, const std::string& write, Answer& answer) {
  const auto verb = plan.fault->verb;
  switch (verb) {
    case Fault::Verb::disk_full:
    case Fault::Verb::fail_op:
      ledger_.note(plan, rank, write);
      answer.error = verb == Fault::Verb::disk_full ? ENOSPC : EIO;
      return;
    case Fault::Verb::slow_disk:
      ledger_.note(plan, rank, write);
      return exec::this_rank::sleep_for(plan.fault->amount, "an injected pause of the disk");
    case Fault::Verb::torn_write:
      // The first half reaches the disk, and then the process is gone.
      answer.bytes /= 2;
      answer.after = [this, &plan, rank, write] { at_write_(plan, rank, write); };
      return;
    default:
      return at_write_(plan, rank, write);
  }
}

}  // namespace rehearse::sim
