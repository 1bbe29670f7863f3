// SPDX-License-Identifier: BSD-3-Clause
#include "payload_names.h"

#include "fingerprint.h"

namespace rehearse::comm {

void PayloadNames::set_label(int rank, std::uint32_t thread, const std::string* label) {
  Label& of_thread = thread == 0 ? labels_[static_cast<std::size_t>(rank)] : labels_of_threads_[{rank, thread}];
  of_thread = {label, label != nullptr ? text_hash(*label) : 0};
}

auto PayloadNames::label_of_thread(int rank, std::uint32_t thread) const noexcept -> const Label& {
  static const Label none;
  const auto found = labels_of_threads_.find({rank, thread});
  return found == labels_of_threads_.end() ? none : found->second;
}

void PayloadNames::forget_labels(int rank) noexcept {
  labels_[static_cast<std::size_t>(rank)] = {};
  std::erase_if(labels_of_threads_, [rank](const auto& label) { return label.first.first == rank; });
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
