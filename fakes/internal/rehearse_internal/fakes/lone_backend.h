// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <rehearse_internal/comm/described_backend.h>

namespace rehearse::fakes {

// The back end of lone_group(). It writes to tensors what c10d::FakeProcessGroup writes to them. In addition, it checks
// and counts calls, and supports split(), merge() and shrink(). Nothing blocks.
class LoneBackend final : public comm::DescribedBackend {
 public:
  // Throws c10::ValueError for a rank that is not in the world.
  LoneBackend(int rank, int size, const std::string& name = "world");

  const std::string getBackendName() const override { return "fake"; }
  const comm::GroupIdentity& identity() const noexcept override { return identity_; }
  void name_payload(const at::Tensor&, const std::string&) override {}
  void forget_payload(const c10::TensorImpl*) noexcept override {}
  void extend_timeout_once(std::chrono::milliseconds) override {}
  BackendPtr companion(const std::string& name) override;

  void monitoredBarrier(const c10d::BarrierOptions&, bool) override { ++calls_; }

  // Each call completes separately; the Work that endCoalescing() returns represents all of them.
  void startCoalescing() override { is_coalescing_ = true; }
  WorkPtr endCoalescing() override;

  std::uint64_t getSequenceNumberForGroup() override { return calls_; }  // the number of collectives called
  void setSequenceNumberForGroup() override {}

  // Null if this rank is not among `ranks`.
  BackendPtr split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                   const c10::intrusive_ptr<Options>& options) override;
  BackendPtr merge(const c10::intrusive_ptr<c10d::Store>& store, const c10::intrusive_ptr<Options>& options,
                   const int& rank, const int& size) override;
  BackendPtr shrink(const std::vector<std::int64_t>& ranks_to_exclude, int flags,
                    const c10::intrusive_ptr<Options>& options) override;

  void abort() override {}
  void shutdown() override {}
  c10d::ErrorType getError() override { return c10d::ErrorType::SUCCESS; }
  void registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&& hook) override;
  void waitForPendingWorks() override {}
  void enableCollectivesTiming() override {}

 private:
  WorkPtr call(const Called& called, Describe describe, c10::function_ref<Replay()> replay) override;
  bool is_coalescing() const noexcept override { return is_coalescing_; }

  const comm::GroupIdentity identity_;
  std::uint64_t calls_ = 0;
  bool is_coalescing_ = false;
  std::map<std::string, BackendPtr> companions_;
};

}  // namespace rehearse::fakes
