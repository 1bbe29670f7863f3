// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <fnmatch.h>
#include <rehearse_internal/exec/file_interceptor.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/job/scratch_folders.h>

#include "faults/fault_ledger.h"
#include "faults/injector.h"
#include "faults/store/store_faults.h"
#include "faults/text/fault_fields.h"
#include "faults/transfers/faulty_fabric.h"
#include "faults/transfers/partitions.h"
#include "layers/layers.h"

namespace rehearse::sim {
namespace {

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

class FaultLayer final : public Layer {
 public:
  explicit FaultLayer(const Ground& ground)
      : ledger_(ground.options.faults, ground.executor),
        partitions_(ground.executor.timers(), ground.executor.clock(), ground.options.ranks),
        store_(std::make_shared<StoreFaults>(ground.keys, ledger_, partitions_)),
        fabric_(*ground.fabric, ground.executor.timers(), ground.executor.clock(), partitions_),
        injector_(ground.executor, ledger_, fabric_, partitions_, *store_, ground.memory),
        disk_(ground.scratch, ledger_,
              [this](FaultPlan& plan, int rank, const std::string& write) {
                injector_.act_outside_groups(plan, rank, write);
              }),
        lent_disk_(disk_) {}
  ~FaultLayer() override { store_->close(); }

  comm::CallInterceptor* interceptor() noexcept override { return &injector_; }
  comm::Fabric* fabric() noexcept override { return &fabric_; }
  std::shared_ptr<StoreInterceptor> store_interceptor() override { return store_; }
  void begin(comm::Communicators& communicators) override { injector_.begin(communicators); }
  void leave(RunRecord& record) override {
    record.faults = ledger_.lines(record.outcome, record.events.groups());
    record.fired_hash = ledger_.hash();
    record.crashed = injector_.crashed();
  }

 private:
  FaultLedger ledger_;
  Partitions partitions_;
  std::shared_ptr<StoreFaults> store_;
  FaultyFabric fabric_;
  FaultInjector injector_;
  DiskFaults disk_;
  const exec::WorldLocal<exec::FileInterceptor>::Lent lent_disk_;
};

}  // namespace

std::unique_ptr<Layer> make_faults(const Ground& ground) {
  return ground.options.faults.empty() ? nullptr : std::make_unique<FaultLayer>(ground);
}

}  // namespace rehearse::sim
