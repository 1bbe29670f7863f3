// SPDX-License-Identifier: BSD-3-Clause
// Contract: values that share memory cross the border of two pieces in the layout of the capture, or the call fails.
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>
#include <rehearse/fakes/fake_ddp.h>

#include "core/compile/partitions/layout_backend.h"

namespace rehearse::compiler {
namespace {

using test::LayoutBackend;
using test::OutputLayout;
using test::Statement;
using ::testing::HasSubstr;

// The first piece returns a tensor and a view of it. The second piece uses both.
struct SharedAtTheBorderImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = first(x), row = y.select(0, 0);
    return second(y * scale) + y + row;
  }

  torch::nn::Linear first = register_module("first", torch::nn::Linear(torch::nn::LinearOptions(4, 4).bias(false)));
  at::Tensor scale = register_parameter("scale", at::ones({4}));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(torch::nn::LinearOptions(4, 4).bias(false)));
};
TORCH_MODULE(SharedAtTheBorder);

// compile() must not copy the tensor into the right layout, because the copy would not share memory with the view.
TEST(BackendStatement, AFalseOneOfSharedMemoryIsFoundByTheNextPiece) {
  constexpr double kSecondLinear = 64 / 1024.0 / 1024.0;
  const auto lying = std::make_shared<LayoutBackend>(OutputLayout::Reversed, Statement::False);
  lying->obeys = false;
  SharedAtTheBorder net;
  fakes::FakeDDP<SharedAtTheBorder> ddp(net, kSecondLinear);
  auto compiled = compile(ddp, {.backend = lying});
  try {
    compiled(at::arange(8, at::kFloat).view({2, 4}));
    ADD_FAILURE() << "no error";
  } catch (const BorderMismatch& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("reaches piece submod_1 of a compiled function in another form than at the capture"));
    EXPECT_THAT(error.what(), HasSubstr("has strides [4, 1] from 0 on, and has strides [1, 2] from 0 on now"));
  }
}

}  // namespace
}  // namespace rehearse::compiler
