// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/traced_values.h"

#include <algorithm>
#include <map>
#include <string>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/libtorch/nodes.h>

#include "capture/fake/call/tensors_in.h"

namespace rehearse::capture {

using graph::Node;

namespace {

// Without grad mode, a view requires grad if its base does, and is a leaf. A region and code of the user may give
// leaves.
bool makes_step(const Node& node, const at::Tensor& fake) {
  return fake.requires_grad() && at::GradMode::is_enabled() && node.target().starts_with("torch.ops.aten.");
}

}  // namespace

void Values::add(const at::Tensor& fake, Node& node, std::vector<std::int64_t> path) {
  Value& value = values_[fake_id(fake)];
  const bool is_new = value.node == nullptr && value.producer == nullptr;
  if (is_new) {
    made_.push_back({c10::weak_intrusive_ptr<c10::TensorImpl>(fake.getIntrusivePtr()), &node});
  }
  // A change in place under no_grad does not change whether a tensor is a leaf.
  const bool is_leaf = value.is_leaf && fake.requires_grad();
  const bool has_step = is_new ? makes_step(node, fake) : value.has_step;
  value = {};
  value.is_leaf = is_leaf;
  value.has_step = has_step;
  if (path.empty()) {
    value.node = &node;
  } else {
    value.producer = &node;
    value.path = std::move(path);
  }
  value.requires_grad = fake.requires_grad();
  value.tensor.emplace(fake.getIntrusivePtr());
}

void Values::note_history(const at::Tensor& fake, std::size_t by) {
  const auto found = values_.find(fake_id(fake));
  if (found == values_.end()) {
    history_of_inputs_.emplace(fake_id(fake), by);
    return;
  }
  Value& value = found->second;
  value.requires_grad = true;
  value.history_from = by;
  if (value.node != nullptr) value.node->meta().history_from = by;
}

Values::Value& Values::value_of(const at::Tensor& fake) {
  const std::uint64_t id = fake_id(fake);
  if (const auto found = values_.find(id); found != values_.end()) return found->second;
  Inputs::Source* source = inputs_.find(id);
  if (source == nullptr) {
    throw NotCapturable("a tensor was made by another capture, or where this one could not see it",
                        "Make it with operators on tensors inside of the captured function.", graph_.site());
  }
  Value value;
  value.node = &inputs_.node_of(*source);
  value.requires_grad = source->requires_grad;
  value.tensor.emplace(source->fake.getIntrusivePtr());
  if (const auto history = history_of_inputs_.find(id); history != history_of_inputs_.end()) {
    value.requires_grad = true;
    value.node->meta().history_from = history->second;
  }
  return values_.emplace(id, std::move(value)).first->second;
}

Node& Values::item(Value& value) {
  if (value.node == nullptr) {
    value.node = value.producer;
    for (const std::int64_t index : value.path) value.node = &graph_.item(*value.node, index);
    value.node->meta().history_from = value.history_from;
  }
  return *value.node;
}

Node& Values::node_of(const at::Tensor& fake) {
  check_history(fake);
  Value& value = value_of(fake);
  const bool is_switched = fake.requires_grad() && !is_own(value, fake);  // a result of data() must not require grad
  if (fake.requires_grad() == value.requires_grad && !is_switched) return item(value);
  return with_requires_grad(fake, value);
}

// True if `fake` is the object that got the value, or the only one left. False for results of data().
bool Values::is_own(const Value& value, const at::Tensor& fake) {
  return value.tensor->_unsafe_get_target() == fake.unsafeGetTensorImpl() || value.tensor->expired();
}

bool Values::is_from_data(const at::Tensor& fake) const {
  const std::uint64_t id = fake_id(fake);
  if (const auto found = values_.find(id); found != values_.end()) return !is_own(found->second, fake);
  const Inputs::Source* const source = inputs_.find(id);
  return source != nullptr && !source->fake.is_same(fake);
}

void Values::check_written(const std::vector<bool>& written, const torch::jit::Stack& arguments) const {
  const auto check = [this](const at::Tensor& tensor) {
    if (!is_fake(tensor) || !is_from_data(tensor)) return;
    throw NotCapturable("what data() gave is changed in place, inside of a captured function",
                        "Use detach() in place of data().", graph_.site());
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (written[i]) for_each_tensor(arguments[i], check);
  }
}

// Handles what C++ does without an operator: tensor.data() returns the same value without its history, and
// set_requires_grad() makes the tensor a leaf.
Node& Values::with_requires_grad(const at::Tensor& fake, Value& value) {
  if (fake.requires_grad()) {
    if (is_own(value, fake)) return begin_leaf(fake, value);
    throw NotCapturable("set_requires_grad(true) is called on what data() gave, inside of a captured function",
                        "Use detach() in place of data().", graph_.site());
  }
  // In eager mode, set_requires_grad(false) does not remove the history of a tensor.
  if (is_own(value, fake) && !value.is_leaf) {
    throw NotCapturable("set_requires_grad(false) changes a tensor inside of a captured function", "Use detach().",
                        graph_.site());
  }
  Node& node = item(value);
  if (value.detached == nullptr) {
    value.detached = &graph_.call("torch.ops.aten.detach.default", {node});
    value.detached->meta().set_value(meta_of(fake));
  }
  return *value.detached;
}

Node& Values::begin_leaf(const at::Tensor& fake, Value& value) {
  if (families_.family_of(fake).size() > 1) {
    throw NotCapturable("a tensor that has views, or is one, is told to require grad inside of a captured function",
                        "In eager mode its views require grad from then on. Use detach() first, and make views of "
                        "what it gives.",
                        graph_.site());
  }
  Node& begun = graph_.call("torch.ops.aten.requires_grad_.default", {item(value)});
  begun.meta().set_value(meta_of(fake));
  value.node = &begun;
  value.requires_grad = true;
  value.is_leaf = true;
  value.detached = nullptr;
  return begun;
}

void Values::record_switched_inputs() {
  std::vector<at::Tensor> switched;
  inputs_.for_each([&](const at::Tensor& fake, const at::Tensor&) {
    const std::uint64_t id = fake_id(fake);
    const auto found = values_.find(id);
    const bool recorded = found != values_.end() ? found->second.requires_grad
                                                 : inputs_.find(id)->requires_grad || history_of_inputs_.contains(id);
    if (fake.requires_grad() != recorded) switched.push_back(fake);
  });
  for (const at::Tensor& fake : switched) node_of(fake);
}

bool Values::is_made_leaf(const at::Tensor& fake) const {
  const auto found = values_.find(fake_id(fake));
  return found != values_.end() && found->second.is_leaf;
}

bool Values::has_step(std::uint64_t id, const at::Tensor& tensor) const {
  const auto found = values_.find(id);
  return found != values_.end() && found->second.has_step && tensor.requires_grad() && inputs_.find(id) == nullptr &&
         found->second.tensor->_unsafe_get_target() == tensor.unsafeGetTensorImpl();
}

const Node* Values::maker_of(const at::Tensor& fake) const {
  const auto made = std::ranges::find_if(
      made_, [&](const Made& each) { return each.tensor._unsafe_get_target() == fake.unsafeGetTensorImpl(); });
  return made != made_.end() ? made->node : nullptr;
}

// The call site of the operator that is being recorded. At the end of the capture, no operator is being recorded; then
// returns the call site of the operator that made the tensor.
const exec::CallSite& Values::site_of(const at::Tensor& fake) const {
  const auto found = values_.find(fake_id(fake));
  if (!graph_.site().empty() || found == values_.end()) return graph_.site();
  const Node* const node = found->second.node ? found->second.node : found->second.producer;
  return node->meta().origin ? node->meta().origin->site : graph_.site();
}

void Values::check_history(const at::Tensor& fake) const {
  const auto* autograd = torch::autograd::impl::get_autograd_meta(fake);
  if (autograd == nullptr) return;
  const exec::CallSite& where = site_of(fake);
  if (autograd->grad_fn_) {
    throw NotCapturable("the custom autograd function " + autograd->grad_fn_->name() + " gave a tensor",
                        "Its backward would be lost: wrap it in rehearse::opaque().", where);
  }
  if (!autograd->hooks_.empty() || autograd->cpp_hooks_list_ || autograd->post_acc_grad_hooks_) {
    throw NotCapturable("a hook was registered on a tensor that is being captured",
                        "It would never run: register it on a result, outside of the captured function.", where);
  }
  if (!autograd->grad_.defined() && !libtorch::was_ever_set(autograd->grad_accumulator_)) return;
  throw NotCapturable("a custom autograd function, backward() or grad() is called on a tensor that is being captured",
                      "The backward of the function would be lost: wrap it in rehearse::opaque(). Call backward() and "
                      "grad() outside of "
                      "the captured function.",
                      where);
}

std::vector<at::Tensor> Values::alive() {
  std::map<std::uint64_t, at::Tensor> alive;
  for (const Made& made : made_) {
    if (auto tensor = made.tensor.lock()) {
      at::Tensor fake(std::move(tensor));
      const std::uint64_t id = fake_id(fake);
      alive.emplace(id, std::move(fake));
    }
  }
  for (const auto& [id, value] : values_) {
    const Inputs::Source* source = inputs_.find(id);
    if (source && value.node != source->node) alive.emplace(id, source->fake);
  }
  std::vector<at::Tensor> fakes;
  for (auto& [id, fake] : alive) fakes.push_back(std::move(fake));
  return fakes;
}

Values::Snapshot Values::snapshot() const { return {values_, made_.size()}; }

bool Values::is_alive_since(const Snapshot& before) const {
  return std::any_of(made_.begin() + static_cast<std::ptrdiff_t>(before.made), made_.end(),
                     [](const Made& made) { return !made.tensor.expired(); });
}

void Values::restore(const Snapshot& before) {
  made_.erase(made_.begin() + static_cast<std::ptrdiff_t>(before.made), made_.end());
  std::erase_if(values_, [&](const auto& each) {
    return !before.values.contains(each.first) && inputs_.find(each.first) == nullptr;
  });
  for (auto& [id, value] : values_) {
    const auto found = before.values.find(id);
    restore(id, value, found != before.values.end() ? &found->second : nullptr);
  }
}

// Keeps the nodes of items: each lies right after its producer, not between the marks of the hook.
void Values::restore(std::uint64_t id, Value& value, const Value* before) {
  if (before == nullptr) {
    const Inputs::Source& source = *inputs_.find(id);
    value = {.node = source.node, .requires_grad = value.requires_grad, .tensor = value.tensor};
    return;
  }
  Node* const item = value.producer == before->producer && value.producer != nullptr ? value.node : nullptr;
  value = *before;
  if (value.node == nullptr) value.node = item;
}

void Values::disown(const at::Tensor& fake) {
  std::erase_if(made_, [&](const Made& made) { return made.tensor.lock().get() == fake.unsafeGetTensorImpl(); });
}

bool Values::have_used(std::uint64_t id) const {
  const auto used = values_.find(id);
  if (used == values_.end() || used->second.node == nullptr) return false;
  std::vector<const Node*> users = {used->second.node};
  for (std::size_t i = 0; i < users.size(); ++i) {
    for (const Node* user : users[i]->users()) {
      if (std::find(users.begin(), users.end(), user) == users.end()) users.push_back(user);
    }
  }
  return std::any_of(values_.begin(), values_.end(), [&](const auto& each) {
    const Value& value = each.second;
    const Node* const node = value.node != nullptr ? value.node : value.producer;
    return each.first != id && value.requires_grad && !value.tensor->expired() &&
           std::find(users.begin(), users.end(), node) != users.end();
  });
}

const exec::CallSite* Values::find_outlived(const std::vector<at::Tensor>& results) const {
  for (const Made& made : made_) {
    const auto alive = made.tensor.lock();
    if (!alive) continue;
    const bool is_result = std::any_of(results.begin(), results.end(), [&](const at::Tensor& result) {
      return result.defined() && result.unsafeGetTensorImpl() == alive.get();
    });
    if (!is_result) return &made.node->meta().origin->site;
  }
  return nullptr;
}

}  // namespace rehearse::capture
