// SPDX-License-Identifier: BSD-3-Clause
// Contract: a checkpoint in a compiled function is one node whose body the backward runs again. If its code cannot run
// again with the same outcome, its operators are nodes of the graph, and explain() says why. In both cases, results,
// gradients and random draws are those of eager mode, except if the code writes to a buffer: eager mode writes twice.
#include <rehearse/parallel/checkpoint.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/capture/forward_capture.h>
#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>

#include "core/compile/like_eager/like_eager.h"

namespace rehearse::compiler::checkpoints {
namespace {

using rehearse_test::expect_same;
using rehearse_test::observe;
using rehearse_test::Program;
using rehearse_test::Tensors;
using ::testing::HasSubstr;

class Autocast {
 public:
  Autocast() {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
};

at::Tensor dropped(const at::Tensor& x) { return at::dropout(x, 0.4, true); }

// Adds random numbers to the results, so that tests also compare the state in which the function leaves the generator.
Tensors and_draw(Tensors results) {
  results.push_back(at::rand({3}));
  return results;
}

// Inputs: g[0] of sizes [n, 4] and g[1] of sizes [4, 4] are leaves that require a gradient; g[2] of sizes [n, 4]
// requires none.
const Program kBodies[] = {
    {"a layer with dropout, twice",
     [](const Tensors& g) {
       const auto layer = [w = g[1]](const at::Tensor& h) { return dropped(h.matmul(w).relu()); };
       return and_draw({checkpoint(layer, checkpoint(layer, g[0])).square().sum()});
     }},
    {"a weight inside and outside",
     [](const Tensors& g) {
       const at::Tensor y = checkpoint([w = g[1]](const at::Tensor& h) { return h.matmul(w).tanh(); }, g[0]);
       return Tensors{y.matmul(g[1]).cos(), g[0] * y};
     }},
    {"three results, one of which is not differentiable and one unused",
     [](const Tensors& g) {
       const auto [a, b, c] = checkpoint(
           [](const at::Tensor& h) {
             const at::Tensor e = h.exp();
             return std::make_tuple(e * 2, e.argmax(1), dropped(e));
           },
           g[0]);
       return and_draw({a.sum(1), b});
     }},
    {"two inputs, and one that requires no gradient",
     [](const Tensors& g) {
       return Tensors{checkpoint(
           [](const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) { return a.matmul(b).sigmoid() * c; },
           g[0], g[1], g[2])};
     }},
    {"in another one",
     [](const Tensors& g) {
       const auto inner = [w = g[1]](const at::Tensor& h) { return dropped(h.matmul(w)).tanh(); };
       const auto outer = [inner, c = g[2]](const at::Tensor& h) {
         return dropped(checkpoint(inner, h * c) + checkpoint(inner, h.sin()));
       };
       return and_draw({checkpoint(outer, g[0]).exp()});
     }},
    {"views and changes in place of what it makes",
     [](const Tensors& g) {
       return and_draw({checkpoint(
           [w = g[1]](const at::Tensor& h) {
             at::Tensor y = h.matmul(w);
             y.select(0, 0).mul_(3);
             y.t()[1].copy_(h.select(1, 1).sigmoid());
             return dropped(y);
           },
           g[0])});
     }},
    {"its result is changed in place",
     [](const Tensors& g) {
       at::Tensor y = checkpoint([](const at::Tensor& h) { return h.exp(); }, g[0]);
       y.mul_(g[2]);
       return Tensors{y, y.sum()};
     }},
    {"without grad mode inside",
     [](const Tensors& g) {
       return Tensors{checkpoint(
           [](const at::Tensor& h) {
             at::Tensor scale;
             {
               const at::NoGradGuard no_grad;
               scale = h.abs().max();
             }
             return h.sin() * scale;
           },
           g[0])};
     }},
    {"without grad mode outside",
     [](const Tensors& g) {
       const at::NoGradGuard no_grad;
       return and_draw({checkpoint([](const at::Tensor& h) { return dropped(h.sin()); }, g[0])});
     }},
    {"autocast outside",
     [](const Tensors& g) {
       const Autocast cast;
       const auto layer = [w = g[1]](const at::Tensor& h) { return h.matmul(w).tanh().matmul(w).to(at::kFloat); };
       return Tensors{checkpoint(layer, g[0]).matmul(g[1]).sum().to(at::kFloat)};
     }},
    {"autocast inside",
     [](const Tensors& g) {
       return Tensors{checkpoint(
                          [w = g[1]](const at::Tensor& h) {
                            const Autocast cast;
                            return h.matmul(w).matmul(w).to(at::kFloat);
                          },
                          g[0])
                          .matmul(g[1])
                          .cos()};
     }},
    {"a draw alone",
     [](const Tensors& g) {
       return and_draw({checkpoint([](const at::Tensor& h) { return h * at::rand_like(h) + at::randn({4}); }, g[0])});
     }},
    {"nothing that requires a gradient",
     [](const Tensors& g) {
       return and_draw({checkpoint([](const at::Tensor& h) { return dropped(h); }, g[2]), g[0] * 2});
     }},
    {"sizes that vary",
     [](const Tensors& g) {
       const c10::SymInt rows = g[0].sym_size(0);
       const auto flat = [rows](const at::Tensor& h) { return h.tanh().view_symint({rows * 4}) * rows; };
       return Tensors{checkpoint(flat, g[0]).view_symint({rows, 4}) * rows};
     }},
    {"a constant that the code makes",
     [](const Tensors& g) {
       return Tensors{checkpoint([](const at::Tensor& h) { return h.sin() * at::tensor({1.F, 2.F, 3.F, 4.F}); }, g[0])};
     }},
};

Tensors given(std::int64_t rows) {
  at::manual_seed(7);
  return {at::randn({rows, 4}).requires_grad_(), at::randn({4, 4}).requires_grad_(), at::randn({rows, 4})};
}

std::string remarks_of(const Explanation& explanation) {
  std::string all;
  for (const auto& entry : explanation.entries) {
    for (const auto& remark : entry.remarks) all += remark + "\n";
  }
  return all;
}

std::string text_of(const Explanation& explanation) {
  std::string text;
  for (const auto& piece : explanation.pieces()) text += piece.text;
  return text;
}

template <class Compiled>
void expect_like_eager(Compiled& compiled, const Program& program, const std::string& what) {
  for (const std::int64_t rows : {3, 3, 5, 6}) {
    const Tensors arguments = given(rows);
    expect_same(observe(compiled, arguments), observe(program.run, arguments),
                what + " [" + std::to_string(rows) + "]");
  }
}

TEST(CompiledCheckpoints, Bodies_AreNodesWithEagerModesResults) {
  for (const Program& program : kBodies) {
    for (const char* const backend : {"eager", "aot_eager"}) {
      const std::string what = std::string(program.name) + ", " + backend;
      auto compiled = compile(program.run, {.backend = backend, .fullgraph = true});
      expect_like_eager(compiled, program, what);
      EXPECT_EQ(compiled.stats().compiles, 2) << what;
      const Explanation explanation = compiled.explain();
      const bool just_runs = std::string(program.name) == "without grad mode outside";
      EXPECT_EQ(text_of(explanation).find("tag_activation_checkpoint") != std::string::npos, !just_runs) << what;
      EXPECT_EQ(remarks_of(explanation).find("checkpoint"), std::string::npos) << what << remarks_of(explanation);
      for (const auto& entry : explanation.entries) {
        for (const auto& graph : entry.graphs) EXPECT_EQ(graph.eager_because, "") << what;
      }
    }
  }
}

struct Kept {
  Program program;
  const char* why;
};

const Kept kKept[] = {
    {{"writes to a buffer",
      [](const Tensors& g) {
        const auto counts = [c = g[2]](const at::Tensor& h) {
          c.add_(1);
          return h.exp();
        };
        return Tensors{checkpoint(counts, g[0])};
      }},
     "it writes to a tensor from outside (torch.ops.aten.add_.Scalar)"},
    {{"returns a view of its input",
      [](const Tensors& g) { return Tensors{checkpoint([](const at::Tensor& h) { return h.t(); }, g[0]).exp()}; }},
     "it returns the memory of a tensor from outside"},
    {{"asks for a number of data",
      [](const Tensors& g) {
        return Tensors{checkpoint(
            [](const at::Tensor& h) { return h.exp() * rehearse::sym_item(at::full({1}, 3, at::kLong)); }, g[0])};
      }},
     "it asks for a size or number that only data tells"},
    {{"what it makes is used outside",
      [](const Tensors& g) {
        const auto inside = std::make_shared<at::Tensor>();
        const at::Tensor y = checkpoint(
            [inside](const at::Tensor& h) {
              *inside = h.detach().exp();
              return h.sin();
            },
            g[0]);
        return Tensors{y + std::exchange(*inside, {})};
      }},
     "something that it makes is used outside and is no result (torch.ops.aten.exp.default)"},
};

TEST(CompiledCheckpoints, WhatCannotRunAgain_StaysInTheGraph) {
  for (const auto& [program, why] : kKept) {
    for (const char* const backend : {"eager", "aot_eager"}) {
      const std::string what = std::string(program.name) + ", " + backend;
      auto compiled = compile(program.run, {.backend = backend, .fullgraph = true});
      const Tensors arguments = given(3);
      const auto without = [&](const Tensors& g) { return program.run(g); };
      const auto found = observe(compiled, arguments);
      EXPECT_THAT(remarks_of(compiled.explain()), HasSubstr(why)) << what;
      EXPECT_EQ(text_of(compiled.explain()).find("tag_activation"), std::string::npos) << what;
      EXPECT_EQ(text_of(compiled.explain()).find("body_"), std::string::npos) << what;
      if (std::string(program.name) == "writes to a buffer") continue;  // eager mode writes twice
      expect_same(found, observe(without, arguments), what);
    }
  }
}

// A read inside a checkpoint cuts the graph, so the checkpoint has no body.
TEST(CompiledCheckpoints, AReadInside_EndsTheBody) {
  const auto reads = [](const Tensors& g) {
    const auto code = [](const at::Tensor& h) {
      const at::Tensor e = h.exp();
      return e.sum().item<double>() > 0 ? dropped(e.sin()) : e;
    };
    return and_draw({checkpoint(code, g[0]).cos()});
  };
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = compile(reads, {.backend = backend});
    for (int call = 0; call < 2; ++call) {
      expect_same(observe(compiled, given(3)), observe(reads, given(3)), backend);
    }
    EXPECT_EQ(text_of(compiled.explain()).find("body"), std::string::npos);
  }
}

TEST(CompiledCheckpoints, ReadsOutside_LeaveTheBodies) {
  const auto reads = [](const Tensors& g) {
    const auto code = [w = g[1]](const at::Tensor& h) { return dropped(h.matmul(w).tanh()); };
    const at::Tensor y = checkpoint(code, g[0]);
    return and_draw({y.sum().item<double>() > -1e9 ? checkpoint(code, y) * y : y});
  };
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = compile(reads, {.backend = backend});
    for (int call = 0; call < 3; ++call) {
      expect_same(observe(compiled, given(3)), observe(reads, given(3)), backend);
    }
    const std::string text = text_of(compiled.explain());
    const auto first = text.find("tag_activation_checkpoint");
    ASSERT_NE(first, std::string::npos);
    EXPECT_NE(text.find("tag_activation_checkpoint", first + 100), std::string::npos) << text;
  }
}

TEST(CompiledCheckpoints, AnExceptionInside_LeavesAsItIs) {
  bool throws = true;
  const auto thrown = [&](const Tensors& g) {
    at::Tensor y = g[0];
    try {
      y = checkpoint(
          [&](const at::Tensor& h) {
            const at::Tensor e = h.exp();
            if (throws) throw std::invalid_argument("midway");
            return e;
          },
          g[0]);
    } catch (const std::invalid_argument&) {
      y = checkpoint([](const at::Tensor& h) { return dropped(h.cos()); }, g[0]);
    }
    return Tensors{y.sin()};
  };
  auto compiled = compile(thrown, {.fullgraph = true});
  expect_same(observe(compiled, given(3)), observe(thrown, given(3)), "caught");
  EXPECT_THAT(text_of(compiled.explain()), HasSubstr("tag_activation_checkpoint"));
}

// An autograd node saves the checkpoint's input, and asks whether it is a leaf.
TEST(CompiledCheckpoints, BehindARefusal_TakeAChangedTensor) {
  const auto refused = [](const Tensors& g) {
    at::Tensor y = at::zeros_like(g[0]);
    y.select(0, 0).copy_(g[0].select(0, 0));
    if (g[0].sum().item<double>() < -1e9) return Tensors{y};
    g[0].register_hook([](const at::Tensor& gradient) { return gradient * 1.5; });
    return Tensors{checkpoint([](const at::Tensor& h) { return h.sin(); }, y) + g[0]};
  };
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = compile(refused, {.backend = backend});
    for (int call = 0; call < 2; ++call) {
      expect_same(observe(compiled, given(3)), observe(refused, given(3)), backend);
    }
  }
}

// In the second call, verification compares the whole graph with the cached one, including bodies.
TEST(CompiledCheckpoints, OtherCodeInside_IsFound) {
  bool cosine = false;
  auto compiled = compile([&](const at::Tensor& x) {
    return checkpoint([&](const at::Tensor& h) { return cosine ? h.cos() : h.sin(); }, x);
  });
  const auto x = at::ones({3}).requires_grad_();
  compiled(x);
  cosine = true;
  try {
    compiled(x);
    FAIL() << "the graph of before has served the call";
  } catch (const StaleCapture& error) {
    EXPECT_THAT(error.what(), HasSubstr("it was torch.ops.aten.sin.default at "));
    EXPECT_THAT(error.what(), HasSubstr("and is torch.ops.aten.cos.default at "));
  }
}

}  // namespace
}  // namespace rehearse::compiler::checkpoints
