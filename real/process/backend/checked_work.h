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

// Passes a call to the back end below, and returns that back end's Work; null: the call has already ended. `source`:
// for a receive from any rank, the sender's rank within the group; -1: as the call says.
using CarryOut = std::function<c10::intrusive_ptr<c10d::Work>(int source)>;

// One rank's call from beginning to end; it is carried out when its peers are there. If the world ends, waits throw
// RankAborted. If the back end below throws, waits throw the same exception.
class CheckedWork final : public c10d::Work {
 public:
  // All references must outlive this object.
  CheckedWork(Session& session, CallJournal& journal, int rank, comm::Operation call, std::string title,
              CallJournal::Entry entry, std::uint64_t sequence, CarryOut carry_out);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override { wait(); }
  // A given timeout counts from now. Otherwise the call's own timeout counts, from the beginning of the call.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void abort() override;
  // Holds the list of output tensors. Gloo's Works of sends and receives have no futures. So once gloo has such a call,
  // the future completes only when somebody calls wait() or isCompleted().
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;
  std::uint64_t getSequencenumber() const override { return sequence_; }

  bool incomplete() const;
  // Like wait(), but without a time limit.
  void wait_for_end() { wait_for(std::nullopt, std::chrono::milliseconds(0)); }

  // awaited() returns an object through which the session calls the other three functions. If a call does not wait for
  // peers, CheckedBackend calls go() itself.
  AwaitedCallPtr awaited();
  void go(int source);
  void fail(const std::exception_ptr& error);
  void stop(const std::exception_ptr& why);  // the job has ended; the call itself has not failed

 private:
  bool over() const noexcept { return over_; }
  // `is_own`: true if `error` is an error of this call; false if the job has ended before the call did.
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
  bool gone_ = false;          // passed to the back end below
  bool follows_inner_ = true;  // the Work below reports its end; false: only wait() and isCompleted() notice it
  bool over_ = false;
  std::exception_ptr error_;
  int source_ = -1;
  comm::WorkFutures futures_;
  std::atomic_flag outputs_are_marked_, result_is_marked_;
};

}  // namespace rehearse::real
