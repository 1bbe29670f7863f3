// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <rehearse_internal/comm/described_backend.h>
#include <rehearse_internal/comm/operation.h>
#include <rehearse_internal/comm/several_works.h>

#include "comm/backend/timeout_extension.h"
#include "process/backend/call_journal.h"
#include "process/backend/checked_work.h"
#include "process/session/session.h"

namespace rehearse::real {

// The back ends that carry out a group's calls: one for tensors of the host and, if the rank has a device, one for
// tensors of the device.
struct BackendsBelow {
  c10::intrusive_ptr<c10d::Backend> host, device;
};
using MakeBelow = std::function<BackendsBelow(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size)>;

// The services that the back ends of one rank share. `session` and `journal` must outlive these back ends.
struct RankServices {
  Session& session;
  CallJournal& journal;
  const MakeBelow make_below;
  const bool checks;  // calls wait for their peers' calls and are compared with them
  const std::chrono::milliseconds timeout;
  const c10::intrusive_ptr<c10d::Store> store;
  std::map<std::string, std::uint64_t> derived{};  // how often next_derived() was called, by name and ranks
  std::map<std::string, std::uint64_t> named{};    // by name: how often new_group() and new_local_group() used it

  // The message about a group that only its members make. `call`: the function that makes it. `ranks`: of the world.
  GroupMade next_derived(std::string call, const std::string& name, const std::vector<int>& ranks);

  // Blocks until this rank is connected to the other members. On NCCL, the group connects only at its first call. An
  // exception counts as a failure of communication, because a peer may have ended.
  BackendsBelow connect(const c10::intrusive_ptr<c10d::Store>& group_store, int rank, int size) const;
};

// The back end of a rank that is a process. It describes and records each call as RankBackend does. The coordinator
// compares the call with those of its peers, and then the call goes to the back end below.
// Blocking: monitoredBarrier(), split(), shrink() and companion(). Other calls do not wait for other ranks, with one
// exception: if calls are not checked, the first call on a group's NCCL waits until the ranks are connected.
// Errors: c10::Error for arguments that make no sense; RankAborted once the world ends.
class CheckedBackend final : public comm::DescribedBackend {
 public:
  // `rank` within the group. `key`: the group's name for the coordinator.
  CheckedBackend(RankServices& services, comm::GroupIdentity group, std::string key, int rank, BackendsBelow below,
                 std::chrono::milliseconds timeout);
  ~CheckedBackend() override;

  const comm::GroupIdentity& identity() const noexcept override { return group_; }
  void name_payload(const at::Tensor& tensor, const std::string& name) override;
  void forget_payload(const c10::TensorImpl* tensor) noexcept override;
  BackendPtr companion(const std::string& name) override;
  void extend_timeout_once(std::chrono::milliseconds duration) override;

  // Works like RankBackend's monitoredBarrier(). Waits for the coordinator even if calls are not checked, because rank
  // 0 learns from the coordinator which ranks are missing.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  // As in RankBackend, the collectives between startCoalescing() and endCoalescing() count as one collective. Each send
  // and receive between them counts as one message.
  void startCoalescing() override;
  WorkPtr endCoalescing() override;

  std::uint64_t getSequenceNumberForGroup() override { return collectives_; }
  void setSequenceNumberForGroup() override {}

  BackendPtr split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                   const c10::intrusive_ptr<Options>& options) override;
  BackendPtr shrink(const std::vector<std::int64_t>& ranks_to_exclude, int flags,
                    const c10::intrusive_ptr<Options>& options) override;

 private:
  struct Gathered {
    comm::Operation call;
    CarryOut carry_out;
  };

  WorkPtr call(const Called& called, Describe describe, c10::function_ref<Replay()> replay) override;
  bool is_coalescing() const noexcept override { return coalesced_ != nullptr; }
  comm::Operation make(const Called& called);
  BackendPtr below(const comm::Operation& call) const;
  // `waits_for_peers`: the call is carried out when the coordinator says that its peers are there; otherwise at once.
  c10::intrusive_ptr<CheckedWork> begin(comm::Operation call, CarryOut carry_out, bool waits_for_peers);
  BackendPtr derive(const char* call, const std::vector<int>& ranks, const Options& options);

  RankServices& services_;
  const comm::GroupIdentity group_;
  const std::string key_;
  const BackendsBelow below_;
  comm::TimeoutExtension<CheckedWork> extension_;
  std::uint64_t collectives_ = 0, messages_ = 0;
  std::map<std::string, BackendPtr> companions_;
  // Between startCoalescing() and endCoalescing(): the calls in order, and the Work that all of them return.
  std::vector<Gathered> gathered_;
  c10::intrusive_ptr<comm::SeveralWorks<c10d::Work>> coalesced_;
};

}  // namespace rehearse::real
