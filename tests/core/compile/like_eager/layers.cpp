// SPDX-License-Identifier: BSD-3-Clause
#include "core/compile/like_eager/layers.h"

#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/fakes/fake_ddp.h>

#include "bit_equal.h"
#include "core/compile/like_eager/like_eager.h"

namespace rehearse_test {
namespace {

using rehearse::test::BitEqual;

Layers layers_of(const LayersProgram& program) {
  at::manual_seed(11);
  return Layers(program.body);
}

std::vector<at::Tensor> input(int call) {
  at::manual_seed(5 + static_cast<std::uint64_t>(call));
  return {at::randn({4, 6})};
}

template <class Forward>
auto with_next_draw(Forward& forward) {
  return [&forward](const std::vector<at::Tensor>& given) {
    const at::Tensor result = forward(given[0]);
    return std::vector<at::Tensor>{result, at::rand({2})};
  };
}

template <class Compiled>
void expect_like_eager(Layers& net, Compiled& compiled, const std::string& what) {
  const auto eager = [&](const at::Tensor& x) { return net->forward(x); };
  for (int call = 0; call < 3; ++call) {
    const at::Tensor buffer = net->buffer.clone();
    const auto expected = observe(with_next_draw(eager), input(call), net->parameters());
    const at::Tensor expected_buffer = net->buffer.clone();
    EXPECT_TRUE(expected.gradients.at(2).defined());  // of the second layer
    net->buffer.copy_(buffer);
    expect_same(observe(with_next_draw(compiled), input(call), net->parameters()), expected, what);
    EXPECT_THAT(net->buffer, BitEqual(expected_buffer)) << what;
  }
  EXPECT_EQ(compiled.stats().eager_calls, 0) << what << "\n" << compiled.explain().text();
}

template <class Check>
void for_each_setting(std::span<const LayersProgram> programs, const Check& check) {
  for (const LayersProgram& program : programs) {
    for (const char* const backend : {"aot_eager", "eager"}) {
      SCOPED_TRACE(std::string(program.name) + " by " + backend);
      Layers net = layers_of(program);
      check(net, backend, program.name);
    }
  }
}

}  // namespace

void expect_like_eager_in_pieces(std::span<const LayersProgram> programs) {
  for_each_setting(programs, [](Layers& net, const char* backend, const char* name) {
    rehearse::fakes::FakeDDP<Layers> ddp(net, 0.0001);
    auto compiled = rehearse::compile(ddp, {.backend = backend});
    expect_like_eager(net, compiled, name);
    EXPECT_GT(compiled.stats().graphs, 1);
  });
}

void expect_like_eager_in_one_piece(std::span<const LayersProgram> programs) {
  for_each_setting(programs, [](Layers& net, const char* backend, const char* name) {
    auto compiled = rehearse::compile(net, {.backend = backend});
    expect_like_eager(net, compiled, name);
  });
}

}  // namespace rehearse_test
