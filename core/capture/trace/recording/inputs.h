// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <rehearse/capture/forward_capture.h>
#include <rehearse_internal/capture/fake_mode.h>

#include "capture/graph/expression_nodes.h"
#include "capture/trace/recording/graph_builder.h"
#include "capture/trace/recording/view_families.h"

namespace rehearse::capture {

// The state of real tensors besides their data: whether they require grad, their gradients and hooks. C++ code changes
// it immediately and without an operator, so no graph could repeat the change.
class TensorStates {
 public:
  // Saves the tensor's current state. `name` is for messages. Further calls for the same tensor do nothing.
  void note(const at::Tensor& tensor, const std::string& name);
  // Notes a tensor that the code reached without getting it as an argument. check() throws if it is the gradient of
  // another noted tensor.
  void note_found(const at::Tensor& tensor) { found_.insert(tensor.unsafeGetTensorImpl()); }

  // Throws NotCapturable for the first tensor whose state has changed or whose gradient the code uses.
  void check() const;
  // True if a tensor began or ceased to require grad. No graph can repeat that change between two of its nodes.
  bool requires_grad_changed() const;
  // Restores the saved state, because the code will run again. Hooks stay, and so do histories.
  void restore();
  // Saves the current state again: what ran in between was not captured code.
  void renew();

 private:
  struct State {
    at::Tensor tensor;
    std::string name;
    bool requires_grad = false;
    at::Tensor gradient = {};
    std::size_t hooks = 0;
  };
  static void renew(State& state);

  std::vector<State> states_;
  std::unordered_set<const c10::TensorImpl*> known_;
  std::unordered_set<const c10::TensorImpl*> found_;
};

// The tensors that the graph does not compute, each with its fake: the user's inputs, and real tensors that the code
// uses (parameters, buffers, others). Each gets a placeholder at its first use.
class Inputs {
 public:
  struct Source {
    GraphInput input;
    at::Tensor real;
    at::Tensor fake;
    bool ddp_ignored = false;
    bool is_parameter = false;
    bool is_found_elsewhere = false;  // the code has the real tensor, too
    bool requires_grad = false;       // when the capture first saw the tensor
    graph::Node* node = nullptr;      // null: not used yet
  };

  // `families`: gets one family for all inputs that have the same base in autograd.
  Inputs(GraphBuilder& graph, ExpressionNodes& symbols, ViewFamilies& families, std::vector<NamedTensor> of_module);

  at::Tensor add_tensor(FakeMode& mode, std::string source, const at::Tensor& real, std::vector<c10::SymInt> sizes);
  c10::SymInt add_int(std::string source, c10::SymInt value);

  // The source of a real tensor, with its fake; added if there is none. A tensor that is no parameter or buffer of the
  // module becomes a constant of the graph.
  const Source& source_of(FakeMode& mode, const at::Tensor& real);
  bool has(const at::Tensor& real) const { return by_real_.contains(real.unsafeGetTensorImpl()); }
  // True if recorded operators make the tensor require grad, although it did not when the capture first saw it.
  bool begins_to_require_grad(const c10::TensorImpl& real) const {
    const auto found = by_real_.find(&real);
    if (found == by_real_.end()) return false;
    const Source& source = sources_[found->second];
    return !source.requires_grad && source.fake.requires_grad();
  }
  // Name of a parameter or buffer of the module; null for other tensors.
  const std::string* name_of(const at::Tensor& real) const;
  // Null if no source has this fake.
  Source* find(std::uint64_t fake_id);
  // Returns the real tensor if this very fake object stands for one that is no argument (a parameter, a buffer, a
  // global). Undefined for the fakes of arguments, and for fakes that the code made.
  at::Tensor real_of(const at::Tensor& fake) const;

  // The arguments that the code also has from elsewhere: a global, a member.
  std::vector<at::Tensor> found_arguments() const;

  graph::Node& node_of(Source& source);
  // A placeholder for a symbol that is a size or value of an input.
  graph::Node& node_of_symbol(const std::string& symbol);

  // The inputs in the order of their placeholders.
  const std::vector<GraphInput>& placed() const noexcept { return placed_; }

  // The input of this placeholder; null for other nodes.
  const GraphInput* placed_at(const graph::Node& placeholder) const;

  template <class Visit>
  void for_each_placed(const Visit& visit) const {
    for (const Source& source : sources_) {
      if (source.node != nullptr) visit(*source.node, source.fake);
    }
  }

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Source& source : sources_) visit(source.fake, source.real);
  }

  // The state, apart from the data, of all sources and of the module's tensors.
  TensorStates& states() noexcept { return states_; }
  const TensorStates& states() const noexcept { return states_; }

 private:
  void place(const graph::Node& placeholder, const GraphInput& input);
  Source& add(GraphInput input, const at::Tensor& real, const at::Tensor& fake);

  GraphBuilder& graph_;
  ExpressionNodes& symbols_;
  ViewFamilies& families_;
  std::vector<NamedTensor> named_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> named_at_;
  std::vector<Source> sources_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> by_real_;
  std::unordered_map<std::uint64_t, std::size_t> by_id_;
  std::unordered_map<const c10::StorageImpl*, at::Tensor> storages_;  // by storage of a user's tensor: the first fake
  std::unordered_map<const c10::TensorImpl*, at::Tensor> bases_;      // by real tensor: the first fake of its family
  std::map<std::string, GraphInput> symbols_of_inputs_;               // the input that has the symbol
  std::size_t tensors_ = 0;
  std::size_t ints_ = 0;
  std::size_t constants_ = 0;
  std::vector<GraphInput> placed_;
  std::unordered_map<const graph::Node*, std::size_t> index_of_;  // index in placed_
  TensorStates states_;
};

}  // namespace rehearse::capture
