// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// The names that the ranks of a world give to their payloads. A label applies to all calls of a rank until the rank
// sets another label. A payload's name applies to one tensor. See Communicators::set_label() and
// Communicators::name_payload().
class PayloadNames {
 public:
  explicit PayloadNames(std::size_t ranks) : labels_(ranks), named_(ranks) {}

  void set_label(int rank, const std::string* label) noexcept;
  const std::string* label(int rank) const noexcept { return labels_[static_cast<std::size_t>(rank)].text; }
  // A label with that text, which lives as long as this object.
  const std::string* keep(const std::string& text) { return &*kept_labels_.insert(text).first; }
  void name(int rank, const at::Tensor& tensor, const std::string& name);
  void forget(int rank, const c10::TensorImpl* tensor) noexcept;

  // Sets the label and the payload's name in `rank`'s call. Returns the hash of the label; 0: the call has no label.
  std::uint64_t note_in(Operation& call, int rank) const noexcept {
    const auto index = static_cast<std::size_t>(rank);
    const Label& label = labels_[index];
    call.label = label.text;
    call.payload = names_.empty() || call.inputs.size() != 1 ? nullptr : find(named_[index], call);
    return label.hash;
  }

 private:
  struct Label {
    const std::string* text = nullptr;
    std::uint64_t hash = 0;
  };

  // The weak reference keeps other tensors from getting the address.
  struct NamedTensor {
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor;
    const PayloadName* name;
  };
  using NamedTensors = std::unordered_map<const c10::TensorImpl*, NamedTensor>;  // looked up; never iterated
  static const PayloadName* find(const NamedTensors& named, const Operation& call) noexcept;

  std::set<std::string> kept_labels_;
  std::vector<Label> labels_;        // by rank
  std::vector<NamedTensors> named_;  // by rank
  std::map<std::string, PayloadName> names_;
};

}  // namespace rehearse::comm
