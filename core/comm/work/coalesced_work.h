// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <exception>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "comm/work/rank_work.h"

namespace rehearse::comm {

// What is called between startCoalescing() and endCoalescing(): one Work for all of it, complete when all of it is.
// Before launch() nothing can be asked of it but its type: it throws c10::Error. Otherwise as RankWork.
class CoalescedWork final : public c10d::Work {
 public:
  explicit CoalescedWork(int rank) : c10d::Work(rank, c10d::OpType::COALESCED) {}

  void add(c10::intrusive_ptr<RankWork> work) { works_.push_back(std::move(work)); }
  bool empty() const noexcept { return works_.empty(); }

  // What has been called becomes the collectives, as the parts of `collective`, then the sends and receives in order:
  // whatever there is of it, for whoever hands it to the group. From here on it may be asked.
  const Works& launch(c10::intrusive_ptr<RankWork> collective);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;  // the first one

  // The outputs of the collectives, then those of the receives, each in the order of the calls.
  std::vector<at::Tensor> result() override;

  // A given timeout is for all of it, in whole milliseconds.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override {}
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;
  float getDuration() const override;                // of the longest
  std::uint64_t getSequencenumber() const override;  // of the collective, or of the first send or receive

 private:
  class Waiting;

  const Works& launched() const;

  Works works_;  // as they were called; once launched, what they became
  bool launched_ = false;
};

}  // namespace rehearse::comm
