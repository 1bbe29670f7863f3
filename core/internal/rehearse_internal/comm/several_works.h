// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <rehearse_internal/exec/check.h>

namespace rehearse::comm {

using WorkFuture = c10::intrusive_ptr<c10::ivalue::Future>;

// Both functions return a future that completes when all of `futures` have completed. The future of tensors_of_all()
// has the tensors of all `futures`, in order. That of result_of_all() has the first c10d::WorkResult that is not
// SUCCESS; SUCCESS if there is none.
WorkFuture tensors_of_all(const std::vector<WorkFuture>& futures);
WorkFuture result_of_all(const std::vector<WorkFuture>& futures);

// Several works as one, which completes when all have. Before take(), queries and waits throw c10::Error.
template <class Each>
class SeveralWorks : public c10d::Work {
 public:
  using Works = std::vector<c10::intrusive_ptr<Each>>;

  explicit SeveralWorks(int rank) : c10d::Work(rank, c10d::OpType::COALESCED) {}

  // May be called once.
  void take(Works works) {
    REHEARSE_CHECK(works_.empty() && !works.empty(), rank_, works_.size(), works.size());
    works_ = std::move(works);
  }

  bool isCompleted() override {
    return std::all_of(all().begin(), all().end(), [](const auto& work) { return work->isCompleted(); });
  }
  bool isSuccess() const override {
    return std::all_of(all().begin(), all().end(), [](const auto& work) { return work->isSuccess(); });
  }
  std::exception_ptr exception() const override {
    for (const auto& work : all()) {
      if (const auto error = work->exception()) return error;
    }
    return nullptr;
  }
  std::vector<at::Tensor> result() override {
    std::vector<at::Tensor> tensors;
    for (const auto& work : all()) {
      const auto own = work->result();
      tensors.insert(tensors.end(), own.begin(), own.end());
    }
    return tensors;
  }
  // A given timeout applies to each work.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override {
    bool whole = true;
    for (const auto& work : all()) whole = work->wait(timeout) && whole;
    return whole;
  }
  void synchronize() override { wait(); }
  void abort() override {
    for (const auto& work : all()) work->abort();
  }
  WorkFuture getFuture() override {
    std::vector<WorkFuture> futures;
    for (const auto& work : all()) futures.push_back(work->getFuture());
    return tensors_of_all(futures);
  }
  WorkFuture getFutureResult() override {
    std::vector<WorkFuture> futures;
    for (const auto& work : all()) futures.push_back(work->getFutureResult());
    return result_of_all(futures);
  }
  float getDuration() const override {
    float longest = 0;
    for (const auto& work : all()) longest = std::max(longest, work->getDuration());
    return longest;
  }
  std::uint64_t getSequencenumber() const override { return all().front()->getSequencenumber(); }

 protected:
  const Works& all() const {
    TORCH_CHECK(!works_.empty(),
                "this Work is of calls between startCoalescing() and endCoalescing(): nothing can be asked of it "
                "before endCoalescing() has launched them");
    return works_;
  }

 private:
  Works works_;
};

}  // namespace rehearse::comm
