// SPDX-License-Identifier: BSD-3-Clause
// How often the code of a compiled function runs in a call, and thus how often its side effects happen. COMPILE.md has
// the table.
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>

namespace rehearse::compiler {
namespace {

using Counts = std::vector<int>;  // number of runs of the code in each call

struct Function {
  const char* name;
  at::Tensor (*run)(const at::Tensor& x);
  CompileOptions options;
  Counts counts;  // for calls with 1, 1, 1, -1 and 1
};

at::Tensor read(const at::Tensor& x) { return x.sum().item<float>() > 0 ? x * 2 : x * 3; }
at::Tensor print(const at::Tensor& x) {
  std::ostringstream out;
  out << x;
  return x * 2;
}

TEST(HowOften, TheCodeRuns) {
  const Function functions[] = {
      {"one graph", [](const at::Tensor& x) { return x * 2; }, {}, {1, 1, 0, 0, 0}},
      {"one graph, never verified",
       [](const at::Tensor& x) { return x * 2; },
       {.verify = Verify::Never},
       {1, 0, 0, 0, 0}},
      {"one graph, always verified",
       [](const at::Tensor& x) { return x * 2; },
       {.verify = Verify::Always},
       {1, 1, 1, 1, 1}},
      {"a read: once more for each new value", &read, {}, {1, 1, 0, 1, 0}},
      {"a refused operator", [](const at::Tensor& x) { return x.to_sparse().to_dense(); }, {}, {1, 1, 1, 1, 1}},
      {"a look at memory", &print, {}, {2, 1, 1, 1, 1}},
  };
  for (const Function& function : functions) {
    int runs = 0;
    auto compiled = compile(
        [&](const at::Tensor& x) {
          ++runs;
          return function.run(x);
        },
        function.options);
    Counts counts;
    for (const int sign : {1, 1, 1, -1, 1}) {
      compiled(at::ones({3}) * sign);
      counts.push_back(std::exchange(runs, 0));
    }
    EXPECT_EQ(counts, function.counts) << function.name;
  }
}

}  // namespace
}  // namespace rehearse::compiler
