// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace rehearse::bench {

// The least that a reducer needs: the n-th call of each rank matches the n-th call of the others. If the calls are
// all-reduces, the last rank to arrive adds all tensors into the tensor of the first rank that arrived, and copies the
// sum to the other tensors. This back end checks, records and schedules nothing.
class UncheckedBackend : public c10d::Backend {
 public:
  struct Match {
    std::vector<at::Tensor> tensors;
    std::vector<c10::intrusive_ptr<c10::ivalue::Future>> futures;
  };
  struct World {
    int ranks;
    std::deque<Match> matches = {};
    std::size_t first = 0;  // number of calls that are over
  };

  UncheckedBackend(int rank, std::shared_ptr<World> world) : Backend(rank, world->ranks), world_(std::move(world)) {}

  const std::string getBackendName() const override { return "unchecked"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions&) override {
    return join(tensors[0], [](std::vector<at::Tensor>& all) {
      for (std::size_t i = 1; i < all.size(); ++i) all[0].add_(all[i]);
      for (std::size_t i = 1; i < all.size(); ++i) all[i].copy_(all[0]);
    });
  }
  // The reducer broadcasts its new bucket layout here. All ranks decide the same, so each already has the right values.
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions&) override {
    return join(tensors[0], [](std::vector<at::Tensor>&) {});
  }

 private:
  struct DoneLater : c10d::Work {
    DoneLater(int rank, c10::intrusive_ptr<c10::ivalue::Future> future)
        : Work(rank, c10d::OpType::ALLREDUCE), future(std::move(future)) {}
    bool wait(std::chrono::milliseconds) override {
      future->waitAndThrow();
      return true;
    }
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future; }
    c10::intrusive_ptr<c10::ivalue::Future> future;
  };

  template <class Finish>
  c10::intrusive_ptr<c10d::Work> join(at::Tensor& tensor, Finish finish) {
    if (world_->matches.size() <= calls_ - world_->first) world_->matches.emplace_back();
    auto& match = world_->matches[calls_++ - world_->first];
    match.tensors.push_back(tensor);
    match.futures.push_back(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get())));
    auto work = c10::make_intrusive<DoneLater>(rank_, match.futures.back());
    if (match.tensors.size() == static_cast<std::size_t>(size_)) {
      const at::NoGradGuard no_grad;
      auto done = std::move(match);
      world_->matches.pop_front();
      ++world_->first;
      finish(done.tensors);
      for (std::size_t i = 0; i < done.futures.size(); ++i) {
        done.futures[i]->markCompleted(c10::List<at::Tensor>({done.tensors[i]}));
      }
    }
    return work;
  }

  std::shared_ptr<World> world_;
  std::size_t calls_ = 0;
};

inline c10::intrusive_ptr<c10d::ProcessGroup> unchecked_group(int rank,
                                                              const std::shared_ptr<UncheckedBackend::World>& world) {
  auto group = c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), rank, world->ranks);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::CUSTOM,
                    c10::make_intrusive<UncheckedBackend>(rank, world));
  group->setDefaultBackend(c10d::ProcessGroup::CUSTOM);
  return group;
}

}  // namespace rehearse::bench
