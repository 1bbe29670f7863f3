// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/checks/model_state.h>

#include <unordered_set>

#include <torch/nn/module.h>

namespace rehearse::checks {
namespace {

// Each tensor once that has a name which is not left out. `items`: an OrderedDict of names and tensors.
template <class Items>
void add_tensors(const Items& items, const std::vector<std::string>& left_out, bool are_buffers,
                 std::unordered_set<const c10::TensorImpl*>& seen, std::vector<NamedTensor>& tensors) {
  for (const auto& item : items) {
    const bool wanted = std::find(left_out.begin(), left_out.end(), item.key()) == left_out.end();
    if (!wanted || !item.value().defined() || !seen.insert(item.value().unsafeGetTensorImpl()).second) continue;
    tensors.push_back({item.key(), item.value(), are_buffers});
  }
}

}  // namespace

ModelState::ModelState(const torch::nn::Module& module) : ModelState(module, {}) {}

ModelState::ModelState(const torch::nn::Module& module, const std::vector<std::string>& left_out) {
  std::unordered_set<const c10::TensorImpl*> seen;  // looked up, never walked
  add_tensors(module.named_parameters(), left_out, false, seen, tensors_);
  add_tensors(module.named_buffers(), left_out, true, seen, tensors_);
}

ModelState ModelState::with_buffers(std::optional<bool> wanted) const {
  if (wanted.value_or(!rebroadcast_)) return *this;
  ModelState state = *this;
  std::erase_if(state.tensors_, [](const NamedTensor& each) { return each.is_buffer; });
  return state;
}

}  // namespace rehearse::checks
