// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <rehearse_internal/exec/file_interceptor.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/job/scratch_folders.h>

#include "faults/fault_ledger.h"

namespace rehearse::sim {

// Applies disk faults to the files in each rank's scratch folder. The constructor's arguments must outlive it.
class DiskFaults final : public exec::FileInterceptor {
 public:
  // Carries out a fault that fires at a write but is not about the disk alone, such as a crash. `write`: for example
  // "write #3 to "model.pt"".
  using AtWrite = std::function<void(FaultPlan& plan, int rank, const std::string& write)>;

  DiskFaults(ScratchFolders& folders, FaultLedger& ledger, AtWrite at_write)
      : folders_(folders), ledger_(ledger), at_write_(std::move(at_write)) {}

  Answer before_write(int rank, int file, std::size_t bytes) override;

 private:
  std::optional<std::string> name_in_scratch(int rank, int file) const;
  bool fits(const FaultPlan& plan, int rank, const std::string& name) const;
  void act(FaultPlan& plan, int rank, const std::string& write, Answer& answer);

  ScratchFolders& folders_;
  FaultLedger& ledger_;
  const AtWrite at_write_;
  exec::FileInterceptor* const other_ =
      exec::WorldLocal<exec::FileInterceptor>::find();  // the interceptor that was there before; null: none
  std::map<int, std::uint64_t> writes_;                 // by rank
};

}  // namespace rehearse::sim
