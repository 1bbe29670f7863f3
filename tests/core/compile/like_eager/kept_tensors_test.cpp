// SPDX-License-Identifier: BSD-3-Clause
// Tensors that a function keeps, for example in members. After each call, whether its code was captured or refused,
// these tensors must have the contents that eager mode gives them. The first call must run the code exactly once.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/eager_region.h>
#include <rehearse/compile/errors.h>

#include "kept_state.h"
#include "like_eager.h"

namespace rehearse::compiler::kept_tensors {
namespace {

using rehearse_test::expect_same;
using rehearse_test::observe;
using rehearse_test::Observed;
using testing::HasSubstr;

struct Program {
  const char* name;
  at::Tensor (*run)(State& state, const at::Tensor& x);
  std::int64_t compiles;     // in the six calls; -1: not checked
  const char* refusal = "";  // part of explain()'s refusal after the last call
  bool is_refused_by_an_exception = false;
};

struct Twice : torch::autograd::Function<Twice> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x * 2; }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {gradients[0] * 2};
  }
};

const Program kPrograms[] = {
    {"a mask that the first call makes",
     [](State& state, const at::Tensor& x) {
       if (!state.cache.defined()) state.cache = at::ones({4, 4}).tril();
       return x.matmul(state.cache);
     },
     2},
    {"a mask with a history",
     [](State& state, const at::Tensor& x) {
       if (!state.cache.defined()) state.cache = state.layer->weight.tril().detach();
       return x.matmul(state.cache);
     },
     2},
    {"a mask and a view of it",
     [](State& state, const at::Tensor& x) {
       if (!state.cache.defined()) {
         state.cache = at::arange(16).view({4, 4}).to(x.dtype());
         state.other = state.cache.select(0, 1);
         state.other.mul_(2);
       }
       return x.matmul(state.cache) + state.other;
     },
     2},
    {"a mask beside draws, in front of what is refused",
     [](State& state, const at::Tensor& x) {
       const at::Tensor y = x * at::rand_like(x);
       if (!state.cache.defined()) state.cache = at::arange(1, 5).to(x.dtype()) / 4;
       write_down(y.detach());
       return y * state.cache + state.cache.sum();
     },
     0, "memory", true},
    {"an average in a member, in front of seeding",
     [](State& state, const at::Tensor& x) {
       const at::Tensor mean = x.detach().mean(0);
       state.cache = state.cache.defined() ? state.cache * 0.5 + mean * 0.5 : mean;
       at::manual_seed(7);
       return x - state.cache + at::rand_like(x);
     },
     0, "seeded"},
    {"a mask drawn once",
     [](State& state, const at::Tensor& x) {
       if (!state.cache.defined()) state.cache = at::bernoulli(at::full({4}, 0.5));
       return x * state.cache + at::rand_like(x);
     },
     2},
    {"a table by size",
     [](State& state, const at::Tensor& x) {
       at::Tensor& entry = state.by_size[x.size(0)];
       if (!entry.defined()) entry = at::arange(x.size(0)).to(x.dtype()).unsqueeze(1);
       return x + entry;
     },
     2},
    {"an average in a member",
     [](State& state, const at::Tensor& x) {
       const at::Tensor mean = x.detach().mean(0);
       state.cache = state.cache.defined() ? state.cache * 0.5 + mean * 0.5 : mean;
       return x - state.cache;
     },
     0, "outlives"},
    {"the argument of the call before",
     [](State& state, const at::Tensor& x) {
       const at::Tensor before = state.cache.defined() ? state.cache : at::zeros({1});
       state.cache = x.detach();
       return x * 2 - before.sum();
     },
     0, "outlives"},
    {"keys that grow",
     [](State& state, const at::Tensor& x) {
       const at::Tensor key = state.layer(x).detach();
       state.cache = state.cache.defined() ? at::cat({state.cache, key}) : key;
       return x.matmul(state.cache.t());
     },
     0, "outlives"},
    {"a list that grows",
     [](State& state, const at::Tensor& x) {
       state.list.push_back((x * 2).detach());
       return state.list.front().sum() + x;
     },
     0, "outlives"},
    {"a result that is kept, too",
     [](State& state, const at::Tensor& x) {
       const at::Tensor before = state.cache.defined() ? state.cache.detach() : at::zeros({1});
       state.cache = state.layer(x).sum();
       state.other = state.cache;
       return state.cache + before;
     },
     0, "outlives"},
    {"a parameter that the first call makes",
     [](State& state, const at::Tensor& x) {
       if (!state.cache.defined()) state.cache = at::full({4}, 2., at::requires_grad());
       const at::Tensor result = x * state.cache;
       return result;
     },
     2},
    {"a mask, behind a read",
     [](State& state, const at::Tensor& x) {
       const bool is_positive = x.detach().sum().item<float>() > 0;
       if (!state.cache.defined()) state.cache = at::ones({4, 4}).tril();
       return is_positive ? x.matmul(state.cache) : x;
     },
     -1},
    {"a mask, before a read",
     [](State& state, const at::Tensor& x) {
       if (!state.cache.defined()) state.cache = at::ones({4, 4}).tril();
       const at::Tensor y = x.matmul(state.cache);
       return y.detach().sum().item<float>() > 0 ? y * 2 : y;
     },
     -1},
    {"a mask, and a refused operator",
     [](State& state, const at::Tensor& x) {
       ++state.calls;
       if (!state.cache.defined()) state.cache = at::ones({4, 4}).tril();
       const at::Tensor y = x.matmul(state.cache);
       return y.to_sparse().to_dense();
     },
     0, "sparse"},
    {"an average, and a refused operator",
     [](State& state, const at::Tensor& x) {
       const at::Tensor mean = x.detach().mean(0);
       state.cache = state.cache.defined() ? state.cache * 0.5 + mean * 0.5 : mean;
       return (x - state.cache).to_sparse().to_dense();
     },
     0, "sparse"},
    {"an average, and a hook that reads data",
     [](State& state, const at::Tensor& x) {
       const at::Tensor mean = x.detach().mean(0);
       state.cache = state.cache.defined() ? state.cache * 0.5 + mean * 0.5 : mean;
       const at::Tensor y = state.layer(x);
       if (y.requires_grad()) {
         y.register_hook([](const at::Tensor& g) { return g.isfinite().all().item<bool>() ? g * 3 : g; });
       }
       return y - state.cache;
     },
     0, "hook"},
    {"an average, and the gradient of a loss",
     [](State& state, const at::Tensor& x) {
       const at::Tensor loss = state.layer(x.detach()).square().sum();
       if (at::GradMode::is_enabled()) loss.backward();
       state.cache = state.cache.defined() ? state.cache * 0.5 + loss.detach() * 0.5 : loss.detach();
       state.layer->zero_grad();
       return x * state.cache;
     },
     0, "backward()"},
    {"a base and a view that is changed behind a refused operator",
     [](State& state, const at::Tensor& x) {
       const at::Tensor base = state.layer(x);
       const at::Tensor row = base.select(0, 1);
       const at::Tensor y = base.detach().to_sparse().to_dense();
       row.mul_(2);
       return base * base + row + y;
     },
     0, "sparse"},
    {"two names of one tensor, changed behind a refused operator",
     [](State& state, const at::Tensor& x) {
       const at::Tensor a = state.layer(x).sigmoid();
       const at::Tensor b = a.contiguous();
       const at::Tensor y = a.detach().to_sparse().to_dense();
       at::Tensor c = a * 1;
       const at::Tensor d = c.contiguous();
       d.mul_(2);
       return b + c * y;
     },
     0, "sparse"},
    {"a parameter made, and used on both sides of a refused operator",
     [](State& state, const at::Tensor& x) {
       if (!state.cache.defined()) state.cache = at::full({4}, 2., at::requires_grad());
       const at::Tensor y = x * state.cache;
       return y + state.cache * y.detach().to_sparse().to_dense();
     },
     0, "sparse"},
    {"an argument by another name, on both sides of a refused operator",
     [](State& state, const at::Tensor& x) {
       const at::Tensor same = at::dropout(x, 0.5, false);
       const at::Tensor y = same.detach().to_sparse().to_dense();
       state.cache = same.contiguous() * y;
       return same + y;
     },
     0, "sparse"},
    {"data() behind a refused operator",
     [](State& state, const at::Tensor& x) {
       const at::Tensor y = state.layer(x) * 2;
       const at::Tensor z = y.detach().to_sparse().to_dense();
       return y * y.data() + x.data() * x + z;
     },
     0, "sparse"},
    {"an argument changed behind a refused operator",
     [](State& state, const at::Tensor& x) {
       state.cache = x.detach().to_sparse().to_dense();
       at::Tensor inside = x.detach();
       inside.mul_(2).unsqueeze_(0);
       return state.layer(inside.squeeze(0)) * static_cast<double>(inside.dim());
     },
     0, "sparse"},
    {"a view of an argument",
     [](State& state, const at::Tensor& x) {
       const at::Tensor before = state.cache.defined() ? state.cache.detach().sum() : at::zeros({});
       state.cache = x.t();
       return x * before;
     },
     0, "outlives"},
    {"a mask, and a look at memory",
     [](State& state, const at::Tensor& x) {
       if (!state.cache.defined()) state.cache = at::ones({4, 4}).tril();
       write_down(x.detach());
       return x.matmul(state.cache);
     },
     0, "memory", true},
    {"an average, and a look at memory",
     [](State& state, const at::Tensor& x) {
       const at::Tensor mean = x.detach().mean(0);
       state.cache = state.cache.defined() ? state.cache * 0.5 + mean * 0.5 : mean;
       write_down(x.detach());
       return x - state.cache;
     },
     0, "memory", true},
    {"an average, and a look at memory that is caught",
     [](State& state, const at::Tensor& x) {
       try_to_write_down(x.detach());
       const at::Tensor mean = x.detach().mean(0);
       state.cache = state.cache.defined() ? state.cache * 0.5 + mean * 0.5 : mean;
       return x - state.cache;
     },
     0, "memory", true},
    {"a list, and a look at memory",
     [](State& state, const at::Tensor& x) {
       state.list.push_back(x.detach() * 2);
       write_down(x.detach());
       return x - state.list.front().sum();
     },
     0, "memory", true},
    {"a mask, and a look at memory that is caught in front of a read",
     [](State& state, const at::Tensor& x) {
       if (!state.cache.defined()) state.cache = at::arange(4) / 4.0;
       try_to_write_down(x.detach());
       return (x.abs().sum() >= 0).item<bool>() ? x * state.cache : x;
     },
     0, "memory", true},
    {"a mask that is made in front of regions, and another behind a read, in front of what is caught",
     [](State& state, const at::Tensor& x) {
       if (!state.cache.defined()) state.cache = at::arange(4) / 4.0;
       eager_region([](const at::Tensor& given) { EXPECT_EQ(given.dim(), 2); }, x);
       const bool is_positive = (x.abs().sum() >= 0).item<bool>();
       if (!state.other.defined()) state.other = state.cache * (is_positive ? 2 : 3);
       try_to_write_down(x.detach());
       return x * state.cache + state.other.sum();
     },
     0, "memory", true},
    {"a mask, and a custom function",
     [](State& state, const at::Tensor& x) {
       if (!state.cache.defined()) state.cache = at::ones({4, 4}).tril();
       return Twice::apply(state.layer(x)).matmul(state.cache) * 2;
     },
     0, "custom autograd function", true},
    {"a custom function of an argument",
     [](State& state, const at::Tensor& x) {
       if (!state.cache.defined()) state.cache = at::ones({4, 4}).tril();
       return Twice::apply(x) + x.matmul(state.cache);
     },
     0, "custom autograd function", true},
    {"SGD",
     [](State& state, const at::Tensor& x) {
       if (!state.optimizer) {
         state.optimizer = std::make_unique<torch::optim::SGD>(state.layer->parameters(),
                                                               torch::optim::SGDOptions(0.1).momentum(0.9));
       }
       {
         const at::AutoGradMode with_gradients(true);
         state.layer(x.detach()).square().mean().backward();
       }
       state.optimizer->step();
       state.optimizer->zero_grad();
       return x * 2;
     },
     0, "backward()"},
    {"Adam",
     [](State& state, const at::Tensor& x) {
       if (!state.optimizer) state.optimizer = std::make_unique<torch::optim::Adam>(state.layer->parameters());
       for (const at::Tensor& parameter : state.layer->parameters())
         parameter.mutable_grad() = at::ones_like(parameter);
       state.optimizer->step();
       return x * 2;
     },
     0, "gradient"},
};

std::vector<at::Tensor> inputs_of_calls() {
  at::manual_seed(11);
  std::vector<at::Tensor> inputs;
  for (const int rows : {3, 3, 3, 3, 5, 5}) inputs.push_back(at::randn({rows, 4}).requires_grad_());
  return inputs;
}

Observed observe_call(const std::function<at::Tensor(const at::Tensor&)>& function, State& state, const at::Tensor& x) {
  Observed seen = observe([&](std::vector<at::Tensor>& mine) { return std::vector{function(mine[0])}; }, {x},
                          state.layer->parameters());
  for (const at::Tensor& tensor : state.tensors()) {
    seen.results.push_back(tensor.defined() ? tensor.detach().clone() : at::Tensor());
  }
  if (state.cache.defined() && state.cache.is_leaf()) seen.gradients.push_back(state.cache.grad());
  return seen;
}

class KeptTensors : public testing::TestWithParam<Program> {};
std::string name_of(const testing::TestParamInfo<Program>& info) {
  std::string name = info.param.name;
  for (char& letter : name) {
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  }
  return name;
}
void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

TEST_P(KeptTensors, AreThoseOfEagerMode) {
  const Program program = GetParam();
  for (const char* backend : {"aot_eager", "eager"}) {
    State eager, compiled_state;
    auto compiled = compile([&](const at::Tensor& x) { return program.run(compiled_state, x); },
                            {.backend = backend, .dynamic = false});
    int call = 0;
    for (const at::Tensor& x : inputs_of_calls()) {
      const std::string what = std::string(backend) + ", call " + std::to_string(++call);
      const Observed expected = observe_call([&](const at::Tensor& y) { return program.run(eager, y); }, eager, x);
      if (call == 1 && program.is_refused_by_an_exception) {
        // The first call throws. What the code has kept by then stays.
        EXPECT_THROW(observe_call(compiled, compiled_state, x), CompileError) << what;
        continue;
      }
      Observed found;
      ASSERT_NO_THROW(found = observe_call(compiled, compiled_state, x)) << what;
      expect_same(found, expected, what);
      if (call == 1 && eager.calls > 0) {
        EXPECT_EQ(compiled_state.calls, 1) << what;
      }
    }
    if (program.compiles >= 0) {
      EXPECT_EQ(compiled.stats().compiles, program.compiles) << backend;
    }
    EXPECT_THAT(compiled.explain().refusal, HasSubstr(program.refusal));
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, KeptTensors, testing::ValuesIn(kPrograms), name_of);

}  // namespace
}  // namespace rehearse::compiler::kept_tensors
