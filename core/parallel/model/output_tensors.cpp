// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/parallel/output_tensors.h>

#include <utility>
#include <vector>

#include <ATen/core/ivalue_inl.h>
#include <ATen/core/jit_type.h>

namespace rehearse::parallel {
namespace {

void visit_list(c10::IValue& value, const std::function<void(at::Tensor&)>& visit) {
  const auto list = value.toList();
  c10::impl::GenericList copy(list.elementType());
  copy.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    c10::IValue element = list.get(i);
    visit_ivalue_tensors(element, visit);
    copy.push_back(std::move(element));
  }
  value = copy;
}

void visit_tuple(c10::IValue& value, const std::function<void(at::Tensor&)>& visit) {
  const auto tuple = value.toTuple();
  std::vector<c10::IValue> elements(tuple->elements().begin(), tuple->elements().end());
  for (auto& element : elements) visit_ivalue_tensors(element, visit);
  // The type contains the field names of a named tuple.
  value = c10::ivalue::Tuple::createNamed(std::move(elements), tuple->type());
}

void visit_dict(c10::IValue& value, const std::function<void(at::Tensor&)>& visit) {
  const auto dict = value.toGenericDict();
  c10::impl::GenericDict copy(dict.keyType(), dict.valueType());
  for (const auto& item : dict) {
    c10::IValue element = item.value();
    visit_ivalue_tensors(element, visit);
    copy.insert(item.key(), std::move(element));
  }
  value = copy;
}

}  // namespace

void visit_ivalue_tensors(c10::IValue& value, const std::function<void(at::Tensor&)>& visit) {
  if (value.isTensor()) {
    at::Tensor tensor = value.toTensor();
    visit(tensor);
    value = std::move(tensor);
  } else if (value.isList()) {
    visit_list(value, visit);
  } else if (value.isTuple()) {
    visit_tuple(value, visit);
  } else if (value.isGenericDict()) {
    visit_dict(value, visit);
  }
}

}  // namespace rehearse::parallel
