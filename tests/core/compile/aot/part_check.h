// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse_internal/compile/aot_eager.h>
#include <rehearse_internal/shapes/shape_env.h>

namespace rehearse_test {

// A forward graph in short notation. `inputs`: names of placeholders. `steps`: lines `name = target [args]` in the
// notation of graph/text.h, with `aten.` for torch.ops.aten. `outputs`: a list.
//
//   part("x w", "t = aten.t.default [%w]\n y = aten.mm.default [%x, %t]", "[%y]")
std::shared_ptr<rehearse::graph::GraphModule> part(const std::string& inputs, const std::string& steps,
                                                   const std::string& outputs);

// Random numbers, as a leaf that requires a gradient.
at::Tensor leaf(at::IntArrayRef sizes);

// One input of a graph.
struct PartInput {
  c10::IValue value;      // the value in the compiled call
  bool batched = false;   // the first dimension of this tensor is a symbol; equal sizes share one symbol
  bool is_batch = false;  // this integer is that symbol
  bool through = false;   // the graph gets a product of the leaf with 1, not the leaf
};

// A graph that aot_eager has compiled.
class CompiledPart {
 public:
  CompiledPart(std::shared_ptr<rehearse::graph::GraphModule> part, std::vector<PartInput> inputs);

  // Runs the compiled graph, and the graph itself under eager autograd on copies of everything. Runs both twice, each
  // time with a backward from all results. Then does the same with the program that another back end restores from the
  // stored form. Adds a test failure if bits, requires_grad, sizes, gradients (of all inputs), the contents or versions
  // of inputs, or the state of the random generator differ. `inputs`: leaves.
  void expect_like_eager(const std::vector<c10::IValue>& inputs) const;
  // The same with the inputs of the compiled call.
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
