// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <string>

#include <rehearse_internal/exec/world_local.h>

#include "faults/disk/disk_faults.h"
#include "faults/injector.h"
#include "faults/store/store_faults.h"
#include "faults/transfers/faulty_fabric.h"
#include "faults/transfers/partitions.h"
#include "layers/layers.h"

namespace rehearse::sim {
namespace {

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
