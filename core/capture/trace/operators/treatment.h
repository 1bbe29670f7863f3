// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

namespace rehearse::capture {

// What is said of backward() and torch::autograd::grad(), wherever they are seen.
inline constexpr const char* kGradientsInside = "backward() or grad() is called inside of a captured function";
inline constexpr const char* kCallOutside = "Call it outside of the captured function.";
// The words of LibTorch's error about a gradient of a fake: how it is known again.
inline constexpr const char* kNoHistoryMessage = "differentiated Tensors";

// What the tracer does with an operator.
struct Treatment {
  enum class Kind {
    Record,         // a node of the graph
    Evaluate,       // asks about sizes or types alone: answered, no node
    Read,           // asks for data
    Equal,          // asks for data, and is answered where it is known without
    Refuse,         // no graph can hold it
    Empty,          // a node, but where it makes a constant
    Opaque,         // a node of rehearse::opaque()
    Communicate,    // a call of c10d's that gives a Work
    FirstGradient,  // a node, but where autograd begins a backward with it
    StorageBytes,   // asks how large a storage is: answered by what is known of it, no node
    Version,        // a node that gives a number as a symbol
  };
  Kind kind = Kind::Record;
  std::string name;         // "item", without overload
  std::string target;       // of its nodes
  std::string reason = {};  // of Refuse: what is wrong and what to do
  std::string cure = {};
  bool differentiable = true;                     // results require grad where an argument does
  bool sets_requires_grad = false;                // requires_grad_(), detach_()
  std::vector<bool> differentiable_results = {};  // by place; empty: all
  std::vector<bool> gives_history = {};           // by argument: results require grad where it does
  std::vector<bool> written = {};                 // by argument
  std::vector<bool> viewed = {};                  // by argument: autograd takes results for views of it
  bool tells_aliases = false;                     // its schema says whose memory results have
  bool is_mutable = false;
  bool communicates = false;
  bool resizes_storage = false;
};

// The treatments of the operators that a capture has met.
class Treatments {
 public:
  const Treatment& of(const c10::OperatorHandle& op);

 private:
  std::unordered_map<const c10::FunctionSchema*, Treatment> known_;
};

}  // namespace rehearse::capture
