// SPDX-License-Identifier: BSD-3-Clause
#include "coalesced_work.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <rehearse_internal/exec/this_rank.h>

namespace rehearse::comm {
namespace {

using Future = c10::ivalue::Future;
using FuturePtr = c10::intrusive_ptr<Future>;
using Futures = std::vector<FuturePtr>;
using Combine = c10::IValue (*)(const Futures& came);

void complete(Future& all, const Futures& came, Combine combine) {
  c10::IValue value;
  try {
    value = combine(came);
  } catch (...) {
    return all.setError(std::current_exception());
  }
  all.markCompleted(std::move(value));
}

// Complete when all are, with what `combine` makes of them or throws. Of those that have not come it holds none: they
// hold what is gathered, and where the world ends before them, neither would ever be freed (c10::collectAll holds all
// of its futures from the start).
FuturePtr all_of(const Futures& futures, const c10::TypePtr& type, Combine combine) {
  struct Gathering {
    FuturePtr all;
    Futures came;
    std::size_t missing;
  };
  auto all = c10::make_intrusive<Future>(type);
  const auto gathering = std::make_shared<Gathering>(Gathering{all, Futures(futures.size()), futures.size()});
  for (std::size_t i = 0; i < futures.size(); ++i) {
    futures[i]->addCallback([gathering, combine, i](Future& future) {
      gathering->came[i] = FuturePtr::reclaim_copy(&future);
      if (--gathering->missing == 0) complete(*gathering->all, gathering->came, combine);
    });
  }
  return all;
}

template <class List>
void append(List& to, const List& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

// What is blocked in a wait for all of it: whatever is not there yet, not only the part whose turn it is.
class CoalescedWork::Waiting final : public exec::Observer {
 public:
  Waiting(const Works& works, const RankWork& awaited) : works_(works), awaited_(awaited) {}

  std::string describe() const override {
    return join([](const RankWork& work) { return work.describe(); });
  }
  std::string call() const override {
    return join([](const RankWork& work) { return title_of(work); });
  }
  std::uint64_t fingerprint() const override { return awaited_.fingerprint; }

  std::vector<int> waits_for() const override {
    std::set<int> ranks;
    for (const auto& work : works_) {
      if (!work->incomplete()) continue;
      const auto missing = work->waits_for();
      ranks.insert(missing.begin(), missing.end());
    }
    return {ranks.begin(), ranks.end()};
  }

 private:
  template <class TextOf>
  std::string join(TextOf&& text_of) const {
    std::string text;
    for (const auto& work : works_) {
      if (work->incomplete()) text += (text.empty() ? "" : " and ") + text_of(*work);
    }
    return text;
  }

  const Works& works_;
  const RankWork& awaited_;
};

const Works& CoalescedWork::launch(c10::intrusive_ptr<RankWork> collective) {
  Works gathered = std::exchange(works_, {});
  auto& call = collective->operation;
  for (const auto& work : gathered) {
    auto& part = work->operation;
    if (is_point_to_point(part.type)) continue;
    append(call.inputs, part.inputs);
    append(call.outputs, part.outputs);
    if (part.parts.empty()) {
      part.timeout = std::chrono::milliseconds(0);
      call.parts.push_back(std::move(part));
    } else {
      append(call.parts, part.parts);
    }
  }
  if (!call.parts.empty()) works_.push_back(std::move(collective));
  for (auto& work : gathered) {
    if (is_point_to_point(work->retrieveOpType())) works_.push_back(std::move(work));
  }
  launched_ = true;
  return works_;
}

const Works& CoalescedWork::launched() const {
  TORCH_CHECK(launched_,
              "this Work is of calls between startCoalescing() and endCoalescing(): nothing can be asked of it "
              "before endCoalescing() has launched them");
  return works_;
}

bool CoalescedWork::isCompleted() {
  const auto& works = launched();
  return std::all_of(works.begin(), works.end(), [](const auto& work) { return work->isCompleted(); });
}

bool CoalescedWork::isSuccess() const {
  const auto& works = launched();
  return std::all_of(works.begin(), works.end(), [](const auto& work) { return work->isSuccess(); });
}

std::exception_ptr CoalescedWork::exception() const {
  for (const auto& work : launched()) {
    if (work->exception() != nullptr) return work->exception();
  }
  return nullptr;
}

std::vector<at::Tensor> CoalescedWork::result() {
  std::vector<at::Tensor> tensors;
  for (const auto& work : launched()) append(tensors, work->result());
  return tensors;
}

bool CoalescedWork::wait(std::chrono::milliseconds timeout) {
  const auto& works = launched();
  const bool limited = timeout.count() > 0;
  const auto until = limited ? exec::this_rank::now() + timeout : VirtualTime::max();
  exec::this_rank::begin_call();
  bool whole = true;
  for (const auto& work : works) {
    if (limited && work->incomplete()) {
      timeout = std::max(std::chrono::ceil<std::chrono::milliseconds>(until - exec::this_rank::now()),
                         std::chrono::milliseconds(1));
    }
    whole = work->wait_as_part(timeout, Waiting(works, *work)) && whole;
  }
  exec::this_rank::end_call();
  return whole;
}

void CoalescedWork::abort() {
  for (const auto& work : launched()) work->abort();
}

FuturePtr CoalescedWork::getFuture() {
  Futures futures;
  for (const auto& work : launched()) futures.push_back(work->getFuture());
  return all_of(futures, c10::ListType::create(c10::TensorType::get()), [](const Futures& came) {
    std::vector<at::Tensor> tensors;
    for (const auto& future : came) append(tensors, future->value().toTensorVector());
    return c10::IValue(std::move(tensors));
  });
}

FuturePtr CoalescedWork::getFutureResult() {
  Futures futures;
  for (const auto& work : launched()) futures.push_back(work->getFutureResult());
  return all_of(futures, c10::IntType::get(), [](const Futures& came) {
    constexpr auto success = static_cast<std::int64_t>(c10d::WorkResult::SUCCESS);
    for (const auto& future : came) {
      if (future->value().toInt() != success) return future->value();
    }
    return c10::IValue(success);
  });
}

float CoalescedWork::getDuration() const {
  float longest = 0;
  for (const auto& work : launched()) longest = std::max(longest, work->getDuration());
  return longest;
}

std::uint64_t CoalescedWork::getSequencenumber() const { return launched().front()->getSequencenumber(); }

}  // namespace rehearse::comm
