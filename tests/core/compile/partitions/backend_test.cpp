// SPDX-License-Identifier: BSD-3-Clause
#include <stdexcept>

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/counting_backend.h>

#include "bit_equal.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using ::testing::Contains;
using ::testing::HasSubstr;

std::shared_ptr<graph::GraphModule> doubling_graph() {
  auto module = std::make_shared<graph::GraphModule>();
  graph::Node& x = module->graph().placeholder("x");
  graph::Node& twice = module->graph().call_function("torch.ops.aten.add.Tensor", {x, x});
  module->graph().output(graph::List{twice});
  return module;
}

std::string refusal_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Backend, EagerRunsTheGraph) {
  const CompiledGraph run = make_backend("eager")->compile({doubling_graph(), {}, nullptr, "forward"});
  const auto outputs = run({at::full({3}, 2.0)});
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_THAT(outputs[0].toTensor(), BitEqual(at::full({3}, 4.0)));
}

TEST(Backend, CountingCountsGraphsAndNodes) {
  CountingBackend counting;
  const CompiledGraph run = counting.compile({doubling_graph(), {}, nullptr, "forward"});
  counting.compile({doubling_graph(), {}, nullptr, "forward"});
  EXPECT_EQ(counting.graphs(), 2U);
  EXPECT_EQ(counting.nodes(), 2U);
  EXPECT_THAT(run({at::full({2}, 1.0)})[0].toTensor(), BitEqual(at::full({2}, 2.0)));
}

TEST(Backend, NamesAreUniqueAndUnknownOnesAreRefused) {
  register_backend("of_backend_test", [] { return std::make_shared<CountingBackend>(); });
  EXPECT_EQ(make_backend("of_backend_test")->name(), "counting");
  EXPECT_THAT(backend_names(), Contains("of_backend_test"));
  EXPECT_EQ(refusal_of([] { register_backend("of_backend_test", [] { return nullptr; }); }),
            "register_backend: there is a back end 'of_backend_test' already");
  EXPECT_EQ(refusal_of([] { register_backend("", nullptr); }), "register_backend: the name is empty");
  EXPECT_EQ(refusal_of([] { register_backend("empty", nullptr); }),
            "register_backend: the factory of 'empty' is empty");
  EXPECT_THAT(refusal_of([] { make_backend("inductor"); }), HasSubstr("there is no back end 'inductor'; there are "));
}

}  // namespace
}  // namespace rehearse::compiler
