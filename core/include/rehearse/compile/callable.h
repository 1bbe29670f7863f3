// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>

#include <rehearse/compile/compile_options.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/compile/leaf.h>
#include <rehearse/compile/user_code.h>

namespace torch::nn {
class Module;
}

namespace rehearse::compiler {

// The part of a compiled function that does not depend on types. Each rank that calls it has its own cache. Programs
// use rehearse::compile(), which documents the behaviour.
class Callable {
 public:
  // `module`: null for a function.
  Callable(CompileOptions options, std::shared_ptr<torch::nn::Module> module);
  ~Callable();
  Callable(const Callable&) = delete;
  Callable& operator=(const Callable&) = delete;

  // Serves the call with an entry from the cache, or with a new entry that it compiles. nullopt: the caller must run
  // the function eagerly.
  std::optional<CallResult> call(const LeafList& leaves, UserCode& code);

  Explanation explain() const;
  CompileStats stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::compiler
