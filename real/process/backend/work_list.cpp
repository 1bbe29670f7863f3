// SPDX-License-Identifier: BSD-3-Clause
#include "work_list.h"

#include <algorithm>

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

namespace rehearse::real {

const WorkList::Works& WorkList::all() const {
  TORCH_CHECK(!works_.empty(),
              "this Work is of calls between startCoalescing() and endCoalescing(): nothing can be asked of it "
              "before endCoalescing() has launched them");
  return works_;
}

bool WorkList::isCompleted() {
  const auto& works = all();
  return std::all_of(works.begin(), works.end(), [](const auto& work) { return work->isCompleted(); });
}

std::exception_ptr WorkList::exception() const {
  for (const auto& work : all()) {
    if (const auto error = work->exception()) return error;
  }
  return nullptr;
}

std::vector<at::Tensor> WorkList::result() {
  std::vector<at::Tensor> tensors;
  for (const auto& work : all()) {
    const auto own = work->result();
    tensors.insert(tensors.end(), own.begin(), own.end());
  }
  return tensors;
}

bool WorkList::wait(std::chrono::milliseconds timeout) {
  bool whole = true;
  for (const auto& work : all()) whole = work->wait(timeout) && whole;
  return whole;
}

void WorkList::abort() {
  for (const auto& work : all()) work->abort();
}

c10::intrusive_ptr<c10::ivalue::Future> WorkList::getFuture() {
  c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(
      c10::FutureType::create(c10::ListType::create(c10::TensorType::get())));
  for (const auto& work : all()) futures.push_back(work->getFuture());
  return c10::collectAll(futures)->then(
      [](c10::ivalue::Future& all) {
        std::vector<at::Tensor> tensors;
        for (const auto& each : all.value().toList()) {
          const c10::IValue future = each;
          const auto own = future.toFuture()->value().toTensorVector();
          tensors.insert(tensors.end(), own.begin(), own.end());
        }
        return c10::IValue(std::move(tensors));
      },
      c10::ListType::create(c10::TensorType::get()));
}

}  // namespace rehearse::real
