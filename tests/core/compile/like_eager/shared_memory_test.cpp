// SPDX-License-Identifier: BSD-3-Clause
// The code writes to one of several tensors that share memory: arguments, results, values before and after a read.
#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"
#include "core/compile/like_eager/layers.h"
#include "core/compile/like_eager/like_eager.h"

namespace rehearse::compiler::shared_memory {
namespace {

using rehearse::test::BitEqual;
using rehearse_test::expect_same;
using rehearse_test::observe;
using rehearse_test::Program;
using rehearse_test::Tensors;

bool is_positive(const at::Tensor& x) { return (x.sum() > -1e9).item<bool>(); }

// Inputs: a leaf that requires a gradient, and two tensors that do not.
const Program kPrograms[] = {
    {"detach() of a leaf, changed and returned",
     [](const Tensors& g) {
       const at::Tensor v = g[0].detach();
       v.sub_(g[1], 2);
       return Tensors{v};
     }},
    {"changed, and detach() returned",
     [](const Tensors& g) {
       g[1].copy_(g[0] * 2);
       return Tensors{g[1].detach(), g[0] * 3};
     }},
    {"detach() before a change without grad mode",
     [](const Tensors& g) {
       const at::Tensor v = g[0].detach();
       {
         const at::NoGradGuard no_grad;
         g[0].add_(0.75);
       }
       return Tensors{v, g[1] * 2};
     }},
    {"the same view of a detached changed argument, twice",
     [](const Tensors& g) {
       g[1].copy_(g[0] * 2);
       const at::Tensor v = g[1].detach().t();
       return Tensors{v, v, g[0] * 3};
     }},
    {"t_() behind operators that give their argument",
     [](const Tensors& g) {
       at::Tensor h = g[0] * 2;
       const at::Tensor same = h.contiguous().to(h.scalar_type());
       h.t_();
       return Tensors{same * 3, same, g[1] * 2};
     }},
    {"t_() of what an operator gave that gives its argument",
     [](const Tensors& g) {
       const at::Tensor h = g[1] * 2;
       at::Tensor same = at::dropout(h, 0.5, false);
       same.t_();
       return Tensors{h, same.contiguous()};
     }},
    {"t_() of an argument that gets a gradient",
     [](const Tensors& g) {
       g[1].mul_(g[0]);
       g[1].t_();
       return Tensors{g[1] * 2};
     }},
    {"t_() of a detached leaf",
     [](const Tensors& g) {
       at::Tensor v = g[0].detach();
       v.t_();
       return Tensors{v, g[0] + 1};
     }},
    {"t_() behind views of an argument that are returned",
     [](const Tensors& g) {
       const at::Tensor columns = g[1].chunk(2, 1)[0];
       const at::Tensor row = g[1].select(0, 1);
       g[1].t_();
       return Tensors{columns, row, g[0] * 2};
     }},
    {"transpose_() of a view of an argument that is returned",
     [](const Tensors& g) {
       at::Tensor rows = g[1].narrow(0, 0, 2);
       rows.transpose_(0, 1);
       at::Tensor square = g[1].chunk(2, 1)[1].narrow(0, 1, 2);
       square.t_();
       return Tensors{rows, square, rows.select(0, 1), g[0] * 2};
     }},
    {"t_() between two views of an argument that are returned",
     [](const Tensors& g) {
       const at::Tensor rows = g[1].narrow(0, 0, 2);
       g[1].t_();
       return Tensors{g[1].narrow(0, 0, 2), rows, g[0] * 2};
     }},
    {"t_() behind views of a value that are returned",
     [](const Tensors& g) {
       at::Tensor v = g[0] * 2;
       const at::Tensor rows = v.narrow(0, 0, 2);
       v.t_();
       return Tensors{v, rows, v.narrow(0, 0, 2)};
     }},
    {"two aliases behind a read",
     [](const Tensors& g) {
       const at::Tensor v = at::alias(g[1]);
       const at::Tensor w = is_positive(g[2]) ? g[0] * 2 : g[0];
       g[1].slice(1, 2).sin_();
       v.diagonal().fill_(1.5);
       return Tensors{g[1], w};
     }},
    {"a view from before a read",
     [](const Tensors& g) {
       const at::Tensor row = g[1].select(0, 0);
       const at::Tensor w = is_positive(g[2]) ? g[0] * 2 : g[0];
       row.slice(0, 0).sin_();
       return Tensors{g[1] * w};
     }},
    {"a detached leaf behind a read",
     [](const Tensors& g) {
       const at::Tensor v = g[0].detach();
       v.select(1, 0).mul_(2);
       const at::Tensor w = is_positive(g[2]) ? g[1] * 2 : g[1];
       v.add_(w);
       return Tensors{g[0] * 1};
     }},
    {"t_() behind a read",
     [](const Tensors& g) {
       at::Tensor v = g[0] * 2;
       const bool positive = is_positive(g[2]);
       v.t_();
       return Tensors{positive ? v : v + 1};
     }},
    {"t_() of an argument, and sizes behind a read",
     [](const Tensors& g) {
       g[1].t_();
       const at::Tensor w = is_positive(g[2]) ? g[0] * 2 : g[0];
       return Tensors{g[1].mul_(2).sum(0), w};
     }},
    {"an argument written with a gradient",
     [](const Tensors& g) {
       g[1].lerp_(g[0], 0.5);
       return Tensors{g[2].logsumexp(0)};
     }},
    {"draws into what a read divides",
     [](const Tensors& g) {
       const at::Tensor z = g[1] * 2;
       z.narrow(1, 2, 1).copy_(g[0].narrow(1, 0, 1));
       const at::Tensor w = is_positive(g[2]) ? g[0] * 2 : g[0];
       z.uniform_();
       return Tensors{z, w};
     }},
};

// Returns for each result which arguments share its memory.
std::vector<bool> sharing(const Tensors& results, const Tensors& given) {
  std::vector<bool> shares;
  for (const at::Tensor& result : results) {
    for (const at::Tensor& each : given) shares.push_back(result.is_alias_of(each));
  }
  return shares;
}

// If `shared`, the second argument has the memory of the third one; otherwise it has its own.
Tensors arguments(int call, bool shared) {
  at::manual_seed(5 + static_cast<std::uint64_t>(call));
  const at::Tensor base = at::randn({4, 4});
  return {at::randn({4, 4}).requires_grad_(), shared ? base.view({16}).view({4, 4}) : at::randn({4, 4}), base};
}

template <class Function>
std::pair<rehearse_test::Observed, std::vector<bool>> seen(Function& function, int call, bool shared) {
  const Tensors given = arguments(call, shared);
  at::manual_seed(3);
  Tensors results = function(given);
  std::vector<bool> shares = sharing(results, given);
  Tensors strides;
  for (const at::Tensor& each : results) strides.push_back(at::tensor(each.strides(), at::kLong));
  for (const at::Tensor& each : given) strides.push_back(at::tensor(each.strides(), at::kLong));
  auto observed = rehearse_test::differentiate(std::move(results), given, {given[0]});
  observed.arguments.insert(observed.arguments.end(), strides.begin(), strides.end());
  return {std::move(observed), std::move(shares)};
}

// Every third call passes arguments that share memory. The entry for one kind of call must not serve the other.
TEST(SharedMemory, LikeEager) {
  for (const Program& program : kPrograms) {
    for (const char* const backend : {"aot_eager", "eager"}) {
      auto compiled = compile(program.run, {.backend = backend});
      for (int call = 0; call < 6; ++call) {
        const std::string what = std::string(program.name) + " by " + backend + ", call " + std::to_string(call);
        SCOPED_TRACE(what);
        const auto found = seen(compiled, call, call % 3 == 2);
        const auto expected = seen(program.run, call, call % 3 == 2);
        expect_same(found.first, expected.first, what);
        EXPECT_EQ(found.second, expected.second);
      }
    }
  }
}

// The code transposes an argument in place. The graph must take the argument's sizes from the start of the call.
TEST(SharedMemory, SizesBehindATransposition) {
  const auto function = [](const at::Tensor& x, const at::Tensor& y) {
    x.t_();
    return is_positive(x) ? at::linear(y, x) + y.sum() : y;
  };
  auto compiled = compile(function, {.dynamic = true});
  for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 3}, {4, 5}, {5, 4}}) {
    const at::Tensor x = at::randn({rows, columns}), y = at::randn({columns, rows});
    const at::Tensor mine = x.clone(), eagers = x.clone();
    EXPECT_THAT(compiled(mine, y), BitEqual(function(eagers, y)));
    EXPECT_EQ(mine.sizes(), eagers.sizes());
  }
}

// Operators that return a list or a tuple, at the point where a bucket ends.
const rehearse_test::LayersProgram kLists[] = {
    {"unbind()",
     [](rehearse_test::LayersImpl& net, const at::Tensor& x) {
       const at::Tensor h = net.a->forward(x);
       at::Tensor sum = at::zeros({6});
       for (const at::Tensor& row : net.b->forward(x).unbind(0)) sum = sum + row;
       return net.c->forward(h) + sum;
     }},
    {"split() whose items are used in different pieces",
     [](rehearse_test::LayersImpl& net, const at::Tensor& x) {
       const std::vector<at::Tensor> parts = x.split(2, 0);
       const at::Tensor p = net.a->forward(parts[0]);
       const at::Tensor q = net.b->forward(parts[1]);
       return net.c->forward(p + q);
     }},
    {"max() and sort()",
     [](rehearse_test::LayersImpl& net, const at::Tensor& x) {
       const auto [values, indices] = net.a->forward(x).sort(1);
       const auto [largest, at] = net.b->forward(values).max(1);
       return net.c->forward(values) + largest.unsqueeze(1) + indices + at.unsqueeze(1);
     }},
};

// Calls an operator that returns its argument, or a view of it, although the operator's schema says otherwise. Then
// changes the result in place.
template <at::Tensor (*gives)(const at::Tensor&)>
at::Tensor changed_behind(rehearse_test::LayersImpl& net, const at::Tensor& x) {
  const at::Tensor h = net.a->forward(x);
  const at::Tensor same = gives(h);
  same.select(0, 1).mul_(0.5);
  const at::Tensor p = net.b->forward(x);
  h.mul_(2);
  return net.c->forward(same.clone()) + p;
}

at::Tensor dropped(const at::Tensor& h) { return at::dropout(h, 0.5, false); }
at::Tensor dropped_features(const at::Tensor& h) { return at::feature_dropout(h, 0.5, false); }
at::Tensor made_2d(const at::Tensor& h) { return at::atleast_2d(h); }
at::Tensor multiplied(const at::Tensor& h) { return at::chain_matmul({h}); }
at::Tensor broadcast(const at::Tensor& h) { return at::broadcast_tensors({h, h.detach().select(0, 0)})[0]; }

const rehearse_test::LayersProgram kHidden[] = {
    {"dropout() without training", changed_behind<dropped>},
    {"feature_dropout() without training", changed_behind<dropped_features>},
    {"atleast_2d() of a matrix", changed_behind<made_2d>},
    {"chain_matmul() of one matrix", changed_behind<multiplied>},
    {"broadcast_tensors()", changed_behind<broadcast>},
};

TEST(SharedMemory, HiddenByASchema) {
  rehearse_test::expect_like_eager_in_pieces(kHidden);
  rehearse_test::expect_like_eager_in_one_piece(kHidden);
}

TEST(SharedMemory, ListsAcrossPieces) {
  rehearse_test::expect_like_eager_in_pieces(kLists);
  rehearse_test::expect_like_eager_in_one_piece(kLists);
}

// In some calls an argument is a tensor that the code also has from elsewhere. `body` takes that tensor and the
// argument.
void expect_same_with_own_tensor_as_argument(const std::function<at::Tensor(at::Tensor, const at::Tensor&)>& body,
                                             bool requires_grad) {
  const auto made = [&](double value) { return at::full({2}, value).requires_grad_(requires_grad); };
  for (const std::string calls : {"oox", "oxo", "xo", "xxoo", "oxxvo"}) {
    for (const char* const backend : {"eager", "aot_eager"}) {
      const at::Tensor mine = made(1), eagers = made(1);
      auto compiled = compile([&body, mine](const at::Tensor& y) { return body(mine, y); }, {.backend = backend});
      double value = 10;
      for (const char call : calls) {
        const at::Tensor other = made(++value), others = made(value);
        const auto argument = [&](const at::Tensor& own, const at::Tensor& not_own) {
          return call == 'o' ? own : call == 'v' ? own.view({2}) : not_own;
        };
        const at::Tensor result = compiled(argument(mine, other)), expected = body(eagers, argument(eagers, others));
        EXPECT_THAT(result, BitEqual(expected)) << calls << call << backend;
        if (!requires_grad) continue;
        result.sum().backward();
        expected.sum().backward();
        EXPECT_THAT(mine.grad(), BitEqual(eagers.grad())) << calls << call << backend;
        EXPECT_EQ(other.grad().defined(), others.grad().defined()) << calls << call << backend;
      }
      EXPECT_THAT(mine, BitEqual(eagers)) << calls << backend;
    }
  }
}

TEST(SharedMemory, OfAnArgumentThatTheCodeAlsoHasFromElsewhere) {
  const auto computes = [](const at::Tensor& own, const at::Tensor& y) { return own * 3 + y.sin(); };
  expect_same_with_own_tensor_as_argument(computes, false);
  expect_same_with_own_tensor_as_argument(computes, true);
  expect_same_with_own_tensor_as_argument(
      [](const at::Tensor& own, const at::Tensor& y) {
        own.add_(1);
        return y * 2;
      },
      false);
  expect_same_with_own_tensor_as_argument(
      [](const at::Tensor& own, const at::Tensor& y) {
        y.mul_(2);
        return own + 1;
      },
      false);
  expect_same_with_own_tensor_as_argument(
      [](const at::Tensor& own, const at::Tensor& y) {
        return is_positive(y) ? own * y : own;  // a read
      },
      true);
}

}  // namespace
}  // namespace rehearse::compiler::shared_memory
