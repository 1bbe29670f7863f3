// SPDX-License-Identifier: BSD-3-Clause
#include "work_futures.h"

#include <cstdint>
#include <vector>

#include <ATen/core/jit_type.h>

#include "comm/call/host_view.h"

namespace rehearse::comm {
namespace {

// Futures synchronise with streams of devices; the host has none.
std::vector<c10::Device> devices_of(const Operation& call) {
  if (call.end != nullptr && !call.end->stream().device().is_cpu()) return {call.end->stream().device()};
  for (const auto* const list : {&call.inputs, &call.outputs}) {
    for (const auto& tensor : *list) {
      if (!tensor.device().is_cpu()) return {tensor.device()};
    }
  }
  return {};
}

bool is_open(const WorkFutures::Future& future) noexcept { return future != nullptr && !future->completed(); }

}  // namespace

WorkFutures::Future WorkFutures::outputs(const Operation& call) {
  static const c10::TypePtr type = c10::ListType::create(c10::TensorType::get());
  if (outputs_ == nullptr) outputs_ = c10::make_intrusive<c10::ivalue::Future>(type, devices_of(call));
  return outputs_;
}

WorkFutures::Future WorkFutures::result() {
  if (result_ == nullptr) result_ = c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get());
  return result_;
}

bool WorkFutures::to_mark() const noexcept { return is_open(outputs_) || is_open(result_); }

void WorkFutures::mark_outputs(const Operation& call, const std::exception_ptr& error) {
  if (!is_open(outputs_)) return;
  if (error != nullptr) {
    outputs_->setError(error);
  } else {
    outputs_->markCompleted(c10::IValue(of_caller(call.outputs)));
  }
}

void WorkFutures::mark_result(c10d::WorkResult result) {
  if (is_open(result_)) result_->markCompleted(c10::IValue(static_cast<std::int64_t>(result)));
}

}  // namespace rehearse::comm
