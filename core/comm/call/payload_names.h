// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// The names that the ranks of a world give to their payloads. A label applies to all calls of a thread of a rank until
// the thread sets another label. `thread`: see this_rank::thread_of_rank(). A payload's name applies to one tensor. See
// Communicators::set_label() and Communicators::name_payload().
class PayloadNames {
 public:
  explicit PayloadNames(std::size_t ranks) : labels_(ranks), named_(ranks) {}

  void set_label(int rank, std::uint32_t thread, const std::string* label);
  const std::string* label(int rank, std::uint32_t thread) const noexcept { return label_of(rank, thread).text; }
  void forget_labels(int rank) noexcept;
  // A label with that text, which lives as long as this object.
  const std::string* keep(const std::string& text) { return &*kept_labels_.insert(text).first; }
  void name(int rank, const at::Tensor& tensor, const std::string& name);
  void forget(int rank, const c10::TensorImpl* tensor) noexcept;

  // Sets the label and the payload's name in `rank`'s call. Returns the hash of the label; 0: the call has no label.
  std::uint64_t note_in(Operation& call, int rank, std::uint32_t thread) const noexcept {
    const Label& label = label_of(rank, thread);
    call.label = label.text;
    const auto index = static_cast<std::size_t>(rank);
    call.payload = names_.empty() || call.inputs.size() != 1 ? nullptr : find(named_[index], call);
    return label.hash;
  }

 private:
  struct Label {
    const std::string* text = nullptr;
    std::uint64_t hash = 0;
  };

  const Label& label_of(int rank, std::uint32_t thread) const noexcept {
    return thread == 0 ? labels_[static_cast<std::size_t>(rank)] : label_of_thread(rank, thread);
  }
  const Label& label_of_thread(int rank, std::uint32_t thread) const noexcept;

  // The weak reference keeps other tensors from getting the address.
  struct NamedTensor {
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor;
    const PayloadName* name;
  };
  using NamedTensors = std::unordered_map<const c10::TensorImpl*, NamedTensor>;  // looked up; never iterated
  static const PayloadName* find(const NamedTensors& named, const Operation& call) noexcept;

  std::set<std::string> kept_labels_;
  std::vector<Label> labels_;                                         // of main threads, by rank
  std::map<std::pair<int, std::uint32_t>, Label> labels_of_threads_;  // by rank and thread
  std::vector<NamedTensors> named_;                                   // by rank
  std::map<std::string, PayloadName> names_;
};

}  // namespace rehearse::comm
