// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

namespace rehearse::parallel {

// The result of a communication hook that has already waited for its tensor.
inline c10::intrusive_ptr<c10::ivalue::Future> completed_future(at::Tensor tensor) {
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
  future->markCompleted(std::move(tensor));
  return future;
}

}  // namespace rehearse::parallel
