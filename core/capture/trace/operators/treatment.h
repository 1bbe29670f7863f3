// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

namespace rehearse::capture {

// The error text if captured code calls backward() or torch::autograd::grad(), and a cure that this error and others
// name.
inline constexpr const char* kGradientsInside = "backward() or grad() is called inside of a captured function";
inline constexpr const char* kCallOutside = "Call it outside of the captured function.";
// LibTorch's error about a gradient of a fake contains these words. Rehearse recognises the error by them.
inline constexpr const char* kNoHistoryMessage = "differentiated Tensors";

// How the tracer handles an operator.
struct Treatment {
  enum class Kind {
    Record,         // adds a node
    Evaluate,       // needs only sizes or types: answers without a node
    Read,           // reads data
    Equal,          // reads data, unless the answer is known without it
    Refuse,         // no graph can hold it
    Empty,          // adds a node, except if it makes a constant
    Opaque,         // a call of rehearse::opaque(): adds a node
    Communicate,    // a call of c10d's own operators, most of which return a Work
    FirstGradient,  // adds a node, except if autograd begins a backward with it
    StorageBytes,   // asks for the size of a storage: answers with a number or a symbol, without a node
    Version,        // adds a node that returns a number as a symbol
  };
  Kind kind = Kind::Record;
  std::string name;         // "item", without overload
  std::string target;       // target of its nodes
  std::string reason = {};  // for Refuse: what is wrong
  std::string cure = {};
  bool differentiable = true;                     // results require grad if an argument does
  bool sets_requires_grad = false;                // requires_grad_()
  std::vector<bool> differentiable_results = {};  // by position; empty: all
  std::vector<bool> gives_history = {};           // by argument: results require grad if this one does
  std::vector<bool> written = {};                 // by argument
  std::vector<bool> viewed = {};                  // by argument: autograd considers results to be views of it
  bool tells_aliases = false;                     // its schema tells which results alias which arguments
  bool is_mutable = false;
  bool communicates = false;
  bool resizes_storage = false;
  bool changes_geometry = false;  // t_(), squeeze_(), resize_(): sizes, strides or offset of the first argument
};

class Treatments {
 public:
  const Treatment& of(const c10::OperatorHandle& op);

 private:
  std::unordered_map<const c10::FunctionSchema*, Treatment> known_;
};

}  // namespace rehearse::capture
