// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <rehearse_internal/comm/operation.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "comm/work/work_futures.h"
#include "process/backend/call_journal.h"
#include "process/session/session.h"

namespace rehearse::real {

// Hands a call on to the back end below, once its peers are there; null: nothing is below. `source`: of a receive from
// any rank, whose message it takes (within the group); -1: as the call says.
using CarryOut = std::function<c10::intrusive_ptr<c10d::Work>(int source)>;

// One rank's call from its making to its end: it is carried out when its peers are there. Waits end with the world:
// RankAborted. What the back end below throws, waits throw.
class CheckedWork final : public c10d::Work {
 public:
  // What is given outlives it, but for the call.
  CheckedWork(Session& session, CallJournal& journal, int rank, comm::Operation call, std::string title,
              CallJournal::Entry entry, std::uint64_t sequence, CarryOut carry_out);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override { wait(); }
  // A given timeout counts from now; without one the call's own does, from the call on.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void abort() override;
  // The list of output tensors. Of sends and receives over gloo: none, as gloo's.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;
  std::uint64_t getSequencenumber() const override { return sequence_; }

  bool incomplete() const;
  // wait() without a time limit.
  void wait_for_end() { wait_for(std::nullopt, std::chrono::milliseconds(0)); }

  // For the session.
  AwaitedCallPtr awaited();
  void go(int source);
  void fail(const std::exception_ptr& error);
  void stop(const std::exception_ptr& why);  // the job has ended: the call itself has not failed

 private:
  bool over() const noexcept { return over_; }
  // `is_own`: the error, if any, is that of the call.
  void complete(const std::exception_ptr& error, bool is_own = true);
  void follow(const c10::intrusive_ptr<c10d::Work>& inner);
  void mark();
  bool wait_for(std::optional<VirtualDuration> left, std::chrono::milliseconds limit);
  [[noreturn]] void throw_timeout(std::chrono::milliseconds limit) const;

  Session& session_;
  CallJournal& journal_;
  const comm::Operation call_;
  const std::string title_;
  const CallJournal::Entry entry_;
  const std::uint64_t sequence_;
  CarryOut carry_out_;
  // Guarded by the session's lock.
  c10::intrusive_ptr<c10d::Work> inner_;
  bool gone_ = false;          // handed on
  bool follows_inner_ = true;  // the one below tells its end; else it is known to those who wait
  bool over_ = false;
  std::exception_ptr error_;
  int source_ = -1;
  comm::WorkFutures futures_;
  std::atomic_flag outputs_are_marked_, result_is_marked_;
};

}  // namespace rehearse::real
