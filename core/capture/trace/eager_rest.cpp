// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/eager_rest.h"

#include <utility>

#include <ATen/core/List.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "capture/trace/caller/call_stack.h"

namespace rehearse::capture {

EagerRest::EagerRest(Inputs& inputs, const std::vector<LiveValue>& alive, ValueOf value_of) : inputs_(inputs) {
  for (const LiveValue& live : alive) {
    c10::IValue value = value_of(live.source);
    if (value.isTensor()) real_.emplace(live.fake_id, std::move(value).toTensor());
  }
}

at::Tensor EagerRest::real_tensor(const at::Tensor& tensor) const {
  if (!tensor.defined() || !is_fake(tensor)) return tensor;
  const std::uint64_t id = fake_id(tensor);
  if (const auto found = real_.find(id); found != real_.end()) return found->second;
  if (const Inputs::Source* source = inputs_.find(id)) return source->real;
  throw NotCapturable("a tensor was made by another capture, or where this one could not see it",
                      "Make it with operators on tensors inside of the captured function.", call_stack());
}

c10::IValue EagerRest::real_value(const c10::IValue& value) const {
  if (value.isTensor()) return real_tensor(value.toTensor());
  if (value.isSymInt()) {
    const c10::SymInt number = value.toSymInt();
    const bool is_plain = !number.is_symbolic();
    if (!is_plain) {
      for (const std::string& symbol : shapes::expr_of(number).symbols()) {
        if (!shapes::is_unbacked_name(symbol)) continue;
        throw NotCapturable("the number " + symbol +
                                ", read from data by sym_item() or the like, is used after the "
                                "limit of recompilations was reached",
                            "Raise CompileOptions::recompile_limit.", call_stack());
      }
    }
    return is_plain ? number.as_int_unchecked() : number.guard_int(__FILE__, __LINE__);
  }
  if (!value.isList()) return value;
  const auto list = value.toList();
  c10::impl::GenericList real(list.elementType());
  for (const c10::IValue& item : value.toListRef()) real.push_back(real_value(item));
  return real;
}

void EagerRest::call(const c10::OperatorHandle& op, torch::jit::Stack& arguments) const {
  for (c10::IValue& argument : arguments) argument = real_value(argument);
  const FakeMode::Pause real;
  op.callBoxed(arguments);
}

}  // namespace rehearse::capture
