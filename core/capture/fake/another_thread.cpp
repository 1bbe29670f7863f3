// SPDX-License-Identifier: BSD-3-Clause
// Calls operators on fakes outside the capture's own thread.
#include <exception>
#include <memory>
#include <utility>

#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/capture/fake_mode.h>
#include "capture/fake/call/tensors_in.h"
#include "capture/fake/fake_impl.h"
#include "capture/fake/fallback.h"

namespace rehearse::capture {
namespace {

using torch::jit::Stack;

std::shared_ptr<CaptureThread> other_capture_of(const at::Tensor& tensor) {
  const FakeImpl* const fake = fake_impl(tensor);
  const bool is_another = fake && fake->capture_thread() && fake->capture_thread()->is_another();
  return is_another ? fake->capture_thread() : nullptr;
}

struct FirstFake {
  at::Tensor tensor;
  std::shared_ptr<CaptureThread> capture;
};

FirstFake first_fake(const Stack& stack, std::size_t arguments) {
  FirstFake first;
  for (std::size_t i = stack.size() - arguments; i < stack.size(); ++i) {
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (first.capture) return;
      first.capture = other_capture_of(tensor);
      if (first.capture) first.tensor = tensor;
    });
  }
  return first;
}

// A dummy value of the return type, so that the operator's caller can go on.
c10::IValue some_result(const c10::Type& type, const at::Tensor& like) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return make_fake(spec_of(like), like);
    case c10::TypeKind::ListType:
      if (type.castRaw<c10::ListType>()->getElementType()->kind() != c10::TypeKind::TensorType) return {};
      return c10::List<at::Tensor>({make_fake(spec_of(like), like)});
    case c10::TypeKind::BoolType:
      return false;
    case c10::TypeKind::FloatType:
      return 0.0;
    case c10::TypeKind::NumberType:
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return 0;
    default:
      return {};
  }
}

void own_results(const Stack& stack, std::size_t first, const std::shared_ptr<CaptureThread>& capture) {
  for (std::size_t i = first; i < stack.size(); ++i) {
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (FakeImpl* const fake = fake_impl(tensor)) fake->set_capture_thread(capture);
    });
  }
}

// The capture's own thread will refuse the capture, so errors and results here do not matter.
void call_in_another_thread(const FirstFake& fake, const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                            Stack& stack) {
  const std::size_t first = stack.size() - op.schema().arguments().size();
  FakeMode apart(nullptr);
  try {
    call_on_fakes(apart, op, keys, stack);
  } catch (const std::exception&) {
    stack.resize(first);
    for (const c10::Argument& result : op.schema().returns()) {
      stack.push_back(some_result(*result.type(), fake.tensor));
    }
  }
  own_results(stack, first, fake.capture);
}

}  // namespace

void call_without_mode(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack& stack) {
  const FirstFake fake = first_fake(stack, op.schema().arguments().size());
  const std::string name = c10::toString(op.operator_name());
  if (!fake.capture) throw FakeOutsideMode(name, exec::CallSite::capture());
  fake.capture->note(name, exec::CallSite::capture());
  call_in_another_thread(fake, op, keys, stack);
}

}  // namespace rehearse::capture
