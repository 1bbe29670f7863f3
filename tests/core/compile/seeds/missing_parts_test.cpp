// SPDX-License-Identifier: BSD-3-Clause
// These tests show why some rows of docs/SEEDS.md are only planned: their seed tests need something that LibTorch or
// Rehearse lacks. If a newer LibTorch has it, a test here fails, and the row may have become possible.
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/util/ScopeExit.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/dynamo/compiled_autograd.h>
#include <torch/csrc/jit/tensorexpr/codegen.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/capture/storage.h>
#include <rehearse/compile/backend.h>
#include <rehearse/compile/compile.h>
#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/libtorch/nodes.h>

namespace rehearse::compiler {
namespace {

namespace autograd = torch::autograd;
namespace compiled_autograd = torch::dynamo::autograd;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The texts of the exceptions that ask() has caught.
std::vector<std::string> refusals;

struct Asked : std::runtime_error {
  Asked() : std::runtime_error("the nodes have been asked") {}
};

template <class Described>
void ask(const Described& described, compiled_autograd::CompiledNodeArgs& arguments) {
  try {
    described.compiled_args(arguments);
  } catch (const std::exception& error) {
    refusals.emplace_back(error.what());
  }
}

// Replaces the compiler of compiled autograd. Asks each node, and each of the node's hooks, for its description.
autograd::variable_list ask_all(const libtorch::NodePtr& root, const autograd::GraphTask&, bool,
                                const autograd::edge_list&) {
  std::vector<libtorch::NodePtr> open{root};
  std::set<autograd::Node*> seen;
  while (!open.empty()) {
    const auto node = std::move(open.back());
    open.pop_back();
    if (!node || !seen.insert(node.get()).second) continue;
    compiled_autograd::AutogradCompilerCall compiler(compiled_autograd::SizeInput::STATIC);
    compiled_autograd::NodeCall call(0, node);
    compiled_autograd::CompiledNodeArgs arguments(compiler, call);
    ask(*node, arguments);
    for (const auto& hook : node->tensor_pre_hooks()) ask(*hook, arguments);
    for (const auto& hook : node->post_hooks()) ask(*hook, arguments);
    for (const auto& edge : node->next_edges()) open.push_back(edge.function);
  }
  throw Asked();
}

std::vector<std::string> refusals_in(const std::function<void()>& backward) {
  refusals.clear();
  autograd::Engine::set_compiled_autograd(&ask_all);
  const auto reset = c10::make_scope_exit([] { autograd::Engine::set_compiled_autograd(nullptr); });
  EXPECT_THROW(backward(), Asked);
  return std::exchange(refusals, {});
}

at::Tensor leaf() { return at::ones({2}).requires_grad_(); }

// test_fake_distributed_aot_eager and test_fake_distributed_inductor need compiled autograd.
TEST(MissingParts, CompiledAutograd_DescribesLibTorchsNodes) {
  EXPECT_THAT(refusals_in([] { leaf().sin().sum().backward(); }), IsEmpty());
}
TEST(MissingParts, CompiledAutograd_RefusesHooksOfTensors) {
  const auto found = refusals_in([] {
    const at::Tensor y = leaf().sin();
    y.register_hook([](const at::Tensor& gradient) { return gradient * 2; });
    y.sum().backward();
  });
  EXPECT_THAT(found, ElementsAre(AllOf(HasSubstr("compiled_args nyi"), HasSubstr("CppFunctionTensorPreHook"))));
}
TEST(MissingParts, CompiledAutograd_RefusesPostHooks) {
  const auto found = refusals_in([] {
    const at::Tensor y = leaf().sin();
    y.grad_fn()->add_post_hook(std::make_unique<autograd::utils::LambdaPostHook>(
        [](const autograd::variable_list& outputs, const autograd::variable_list&) { return outputs; }));
    y.sum().backward();
  });
  EXPECT_THAT(found, ElementsAre(AllOf(HasSubstr("compiled_args nyi"), HasSubstr("LambdaPostHook"))));
}
TEST(MissingParts, CompiledAutograd_RefusesNodesOfOnesOwn) {
  struct OwnNode final : autograd::Node {
    autograd::variable_list apply(autograd::variable_list&& gradients) override { return std::move(gradients); }
  };
  const auto found = refusals_in([] {
    const at::Tensor y = at::ones({2});
    const auto node = libtorch::make_node<OwnNode>();
    node->set_next_edges(autograd::collect_next_edges(leaf()));
    autograd::create_gradient_edge(const_cast<at::Tensor&>(y), node);
    y.sum().backward();
  });
  EXPECT_THAT(found, ElementsAre(HasSubstr("compiled_args not implemented")));
}
TEST(MissingParts, CompiledAutograd_RefusesTheReducer) {
  std::vector<std::string> found;
  World({.ranks = 1}).run([&](RankContext& ctx) {
    torch::nn::Linear net(2, 2);
    DistributedDataParallel ddp(net, ctx.group());
    const at::Tensor y = ddp(at::ones({1, 2})).sum();
    found = refusals_in([&] { y.backward(); });
  });
  EXPECT_THAT(found, Contains(HasSubstr("Compiled autograd is not compatible with C++ DDP Reducer")));
}

// The hooks of test_fake_distributed_aot_eager and test_fake_distributed_inductor free storages and set gradients in
// the backward. A captured hook can do neither.
TEST(MissingParts, CapturedHook_FreesNoStorage) {
  const at::Tensor weight = leaf();
  auto compiled = compile(
      [weight](const at::Tensor& x) {
        const at::Tensor y = x * weight;
        y.register_hook([weight](const at::Tensor& gradient) {
          resize_storage(weight, 0);
          return gradient;
        });
        return y.sum();
      },
      {.fullgraph = true});
  EXPECT_THAT([&] { compiled(leaf()); }, ::testing::ThrowsMessage<capture::NotCapturable>(HasSubstr("storage")));
}
TEST(MissingParts, CapturedHook_SetsNoGradient) {
  const at::Tensor weight = leaf();
  auto compiled = compile(
      [weight](const at::Tensor& x) {
        const at::Tensor y = x * weight;
        y.register_hook([weight](const at::Tensor& gradient) { weight.mutable_grad() = gradient; });
        return y.sum();
      },
      {.fullgraph = true});
  EXPECT_THAT([&] { compiled(leaf()); }, ::testing::ThrowsMessage<capture::NotCapturable>(HasSubstr("gradient")));
}

// test_multiproc_autotune and test_multiproc_autotune_dynamic_shapes choose between kernels. LibTorch's tensor
// expressions have an interpreter and a generator of C++ code, but no compiler.
TEST(MissingParts, LibTorch_MakesNoKernels) {
  auto& makers = torch::jit::tensorexpr::RegisterCodeGenList::GetInstance();
  EXPECT_NO_THROW(makers.FindStmtFactoryMethod("simple_ir_eval"));
  EXPECT_THAT([&] { makers.FindStmtFactoryMethod("llvm_codegen"); },
              ::testing::ThrowsMessage<std::exception>(HasSubstr("Invalid stmt codegen name: llvm_codegen")));
}
// test_ddp_optimizer_cudagraph counts the CUDA graphs that a back end has recorded.
TEST(MissingParts, BackEndsOfPyTorch_AreNotHere) {
  for (const char* const name : {"inductor", "cudagraphs"}) EXPECT_THROW(make_backend(name), std::exception) << name;
}

}  // namespace
}  // namespace rehearse::compiler
