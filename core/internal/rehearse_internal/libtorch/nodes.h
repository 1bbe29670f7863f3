// SPDX-License-Identifier: BSD-3-Clause
//
// Pointers to nodes of autograd's graph, for every LibTorch that Rehearse builds with. LibTorch counts the references
// to nodes in a std::shared_ptr until 2.12, and in a c10::intrusive_ptr since 2.13.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

namespace rehearse::libtorch {

using NodePtr = decltype(torch::autograd::Edge::function);
inline constexpr bool kNodesAreIntrusive = !std::is_same_v<NodePtr, std::shared_ptr<torch::autograd::Node>>;

template <class Node>
using PtrTo = std::conditional_t<kNodesAreIntrusive, c10::intrusive_ptr<Node>, std::shared_ptr<Node>>;
using WeakNodePtr = std::conditional_t<kNodesAreIntrusive, c10::weak_intrusive_ptr<torch::autograd::Node>,
                                       std::weak_ptr<torch::autograd::Node>>;

// Makes a node that LibTorch deletes without recursion, however long the graph behind it is.
template <class Node, class... Arguments>
PtrTo<Node> make_node(Arguments&&... arguments) {
  if constexpr (kNodesAreIntrusive) {
    return c10::make_intrusive<Node>(std::forward<Arguments>(arguments)...);
  } else {
    // The argument's type finds torch::autograd::deleteNode(), which exists only in these versions.
    return PtrTo<Node>(new Node(std::forward<Arguments>(arguments)...), [](auto* node) { deleteNode(node); });
  }
}

template <class Node>
PtrTo<Node> pointer_to(Node& node) {
  if constexpr (kNodesAreIntrusive) {
    return PtrTo<Node>::reclaim_copy(&node);
  } else {
    return std::static_pointer_cast<Node>(node.getptr());
  }
}

// A node whose members keep tensors, and with them other nodes, alive. It must drop these members in drop_members().
// While weak pointers to an intrusive node live, the last strong pointer calls release_resources() and not the
// destructor. Its members would live on, and with them the graph behind them.
template <class Base, bool intrusive = kNodesAreIntrusive>
class OwningNode : public Base {
 public:
  using Base::Base;

 protected:
  virtual void drop_members() noexcept = 0;
};

template <class Base>
class OwningNode<Base, true> : public Base {
 public:
  using Base::Base;
  void release_resources() override {
    drop_members();
    Base::release_resources();
  }

 protected:
  virtual void drop_members() noexcept = 0;
};

// True if the pointer was ever set, even if its object has been destroyed since.
template <class Weak>
bool was_ever_set(const Weak& pointer) {
  if constexpr (kNodesAreIntrusive) {
    return pointer.weak_use_count() != 0;
  } else {
    return pointer.owner_before(Weak()) || Weak().owner_before(pointer);
  }
}

}  // namespace rehearse::libtorch
