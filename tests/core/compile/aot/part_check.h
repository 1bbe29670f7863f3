// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse_internal/compile/aot_eager.h>
#include <rehearse_internal/shapes/shape_env.h>

namespace rehearse_test {

// Parses a forward graph. `inputs`: the names of the placeholders, with spaces between them. `steps`: lines `name =
// target [args]` in the notation of graph/text.h, in which `aten.` is short for `torch.ops.aten.`. `outputs`: a list of
// values in the same notation.
//
//   part("x w", "t = aten.t.default [%w]\n y = aten.mm.default [%x, %t]", "[%y]")
std::shared_ptr<rehearse::graph::GraphModule> part(const std::string& inputs, const std::string& steps,
                                                   const std::string& outputs);

// Random numbers, as a leaf that requires a gradient.
at::Tensor leaf(at::IntArrayRef sizes);

struct PartInput {
  c10::IValue value;      // the example for which the graph is compiled
  bool batched = false;   // the first dimension of this tensor is a symbol; equal sizes share one symbol
  bool is_batch = false;  // this integer is the symbol of the batched tensors
  bool through = false;   // the graph gets a product of the leaf with 1, not the leaf
};

// A graph that aot_eager has compiled.
class CompiledPart {
 public:
  CompiledPart(std::shared_ptr<rehearse::graph::GraphModule> part, std::vector<PartInput> inputs);

  // Runs the compiled graph, and interprets the original graph under eager autograd. Each of these two graphs gets its
  // own copies of `inputs`, and runs twice, each time with a backward from all results that require a gradient. If
  // there is a stored form, does the same with the graph that another back end object has restored from it. Adds a test
  // failure if anything differs: the values, dtypes, sizes, strides or requires_grad of results; the gradients,
  // contents, versions or requires_grad of inputs; the state of the random generator. `inputs`: one value for each
  // placeholder; tensors must be leaves.
  void expect_like_eager(const std::vector<c10::IValue>& inputs) const;
  // The same with the examples for which the graph was compiled.
  void expect_like_eager() const;

  // The reason why there is no stored form; empty if there is one.
  const std::string& not_stored() const { return not_stored_; }

  std::vector<c10::IValue> call(std::vector<c10::IValue> inputs) const { return run_(std::move(inputs)); }
  const rehearse::compiler::AotEagerBackend::Compiled& compiled() const { return *backend_.graphs().front(); }
  const rehearse::shapes::ShapeEnv& shapes() const { return *shapes_; }

 private:
  struct Run {
    std::vector<c10::IValue> leaves, inputs, outputs;
    at::Tensor generator_state;
  };
  void restore(const rehearse::compiler::BackendInput& input);
  void expect_like(const Run& eager, const rehearse::compiler::CompiledGraph& graph,
                   const std::vector<c10::IValue>& inputs) const;
  Run run_and_differentiate(const rehearse::compiler::CompiledGraph& graph,
                            const std::vector<c10::IValue>& inputs) const;

  std::shared_ptr<rehearse::graph::GraphModule> part_;
  std::vector<PartInput> inputs_;
  std::shared_ptr<rehearse::shapes::ShapeEnv> shapes_ = rehearse::shapes::ShapeEnv::make();
  rehearse::compiler::AotEagerBackend backend_;
  rehearse::compiler::CompiledGraph run_;
  rehearse::compiler::AotEagerBackend second_backend_;
  rehearse::compiler::CompiledGraph restored_;
  std::string not_stored_;
};

}  // namespace rehearse_test
