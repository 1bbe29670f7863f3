// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace rehearse::real {

// Several works as one, complete when all are. Nothing can be asked of it before it has them: throws c10::Error.
class WorkList final : public c10d::Work {
 public:
  using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

  WorkList() : c10d::Work(-1, c10d::OpType::COALESCED) {}
  explicit WorkList(Works works) : WorkList() { take(std::move(works)); }

  void take(Works works) { works_ = std::move(works); }

  bool isCompleted() override;
  bool isSuccess() const override { return exception() == nullptr; }
  std::exception_ptr exception() const override;  // the first one
  std::vector<at::Tensor> result() override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  void abort() override;
  // The tensors of all.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override { return all().front()->getSequencenumber(); }

 private:
  const Works& all() const;

  Works works_;
};

}  // namespace rehearse::real
