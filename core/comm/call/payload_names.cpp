// SPDX-License-Identifier: BSD-3-Clause
#include "payload_names.h"

#include "fingerprint.h"

namespace rehearse::comm {

void PayloadNames::set_label(int rank, const std::string* label) noexcept {
  labels_[static_cast<std::size_t>(rank)] = {label, label != nullptr ? text_hash(*label) : 0};
}

void PayloadNames::name(int rank, const at::Tensor& tensor, const std::string& name) {
  const auto [entry, is_new] = names_.try_emplace(name);
  if (is_new) entry->second = {name, text_hash(name)};
  const NamedTensor named{decltype(NamedTensor::tensor)(tensor.getIntrusivePtr()), &entry->second};
  named_[static_cast<std::size_t>(rank)].insert_or_assign(tensor.unsafeGetTensorImpl(), named);
}

void PayloadNames::forget(int rank, const c10::TensorImpl* tensor) noexcept {
  named_[static_cast<std::size_t>(rank)].erase(tensor);
}

const PayloadName* PayloadNames::find(const NamedTensors& named, const Operation& call) noexcept {
  const auto found = named.find(call.inputs.front().unsafeGetTensorImpl());
  return found != named.end() ? found->second.name : nullptr;
}

}  // namespace rehearse::comm
