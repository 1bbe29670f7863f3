// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/compile/compile_options.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/compile/leaf.h>
#include <rehearse/compile/user_code.h>

namespace torch::nn {
class Module;
}

namespace rehearse::compiler {

struct Entry;  // one compiled form of a function, and what it takes for granted

// The part of a compiled function that does not depend on types: for each rank that calls it a cache of its own. Use
// rehearse::compile(), which documents what it does.
class Callable {
 public:
  // `module`: null for a function.
  Callable(CompileOptions options, std::shared_ptr<torch::nn::Module> module);
  ~Callable();
  Callable(const Callable&) = delete;
  Callable& operator=(const Callable&) = delete;

  // The entry that serves the call, compiled now where there is none. Null: the function is to be run
  // as it is. In both cases the call may have been served already (code.served). The entry lives as long as this
  // object.
  const Entry* prepare(const LeafList& leaves, UserCode& code);

  // Runs the entry's graph on the leaves: the values of the result, in order.
  static std::vector<c10::IValue> run(const Entry& entry, const LeafList& leaves);
  // The result without its values, as UserCode::take_frame() gave it.
  static const std::shared_ptr<const void>& frame(const Entry& entry) noexcept;

  Explanation explain() const;
  CompileStats stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::compiler
