// SPDX-License-Identifier: BSD-3-Clause
// Compiled graphs that outlive the callable and its process. A graph that is read from the folder gives the same bits
// as a graph that was just compiled.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/counting_backend.h>
#include <rehearse/fakes/fake_ddp.h>

#include "bit_equal.h"
#include "models/custom.h"
#include "models/transformer.h"
#include "own_process.h"

namespace rehearse::compiler {
namespace {

namespace fs = std::filesystem;
using rehearse::test::BitEqual;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::int64_t> counts(const CompileStats& stats) {
  return {stats.cache_hits, stats.cache_misses, stats.cache_bypasses};
}

std::vector<std::string> reasons(const Explanation& told) {
  std::vector<std::string> reasons;
  for (const EntryExplanation& entry : told.entries) {
    for (const GraphExplanation& graph : entry.graphs) reasons.push_back(graph.cache_reason);
  }
  return reasons;
}

class Cache : public ::testing::Test {
 protected:
  CompileOptions options() const { return {.fullgraph = true, .verify = Verify::Never, .cache_dir = path_.string()}; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    for (const auto& each : fs::directory_iterator(path_)) files.push_back(each.path());
    return files;
  }

  test::TemporaryFolder temporary_;
  fs::path path_ = temporary_.path() / "graphs";
};

// Runs one training step. Returns the output, then the gradients of all parameters.
std::vector<at::Tensor> train(torch::nn::Module& net, const std::function<at::Tensor()>& forward) {
  at::manual_seed(5);
  std::vector<at::Tensor> bits{forward()};
  const at::Tensor tangent = at::arange(bits[0].numel(), at::kDouble).mul(0.37).sin().view(bits[0].sizes());
  bits[0].backward(tangent.to(bits[0].scalar_type()));
  for (at::Tensor& parameter : net.parameters()) {
    bits.push_back(parameter.grad());
    parameter.mutable_grad().reset();
  }
  return bits;
}

// The net itself, a callable that compiles it, and a callable that reads the compiled graphs from the folder must give
// the same bits for each input. `handle`: the net, or the wrapper around it, to compile. `graphs`: the expected number
// of graphs.
template <class Net, class Handle, class... Inputs>
void expect_same_bits(Net& net, Handle& handle, const CompileOptions& options, std::int64_t graphs,
                      const std::vector<std::tuple<Inputs...>>& calls) {
  auto made = compile(handle, options);
  auto read = compile(handle, options);
  const auto forward = [&](const Inputs&... inputs) { return net->forward(inputs...); };
  for (const auto& inputs : calls) {
    const auto eager = train(*net, [&] { return std::apply(forward, inputs); });
    const auto first = train(*net, [&] { return std::apply(made, inputs); });
    const auto second = train(*net, [&] { return std::apply(read, inputs); });
    ASSERT_EQ(first.size(), eager.size());
    ASSERT_EQ(second.size(), eager.size());
    for (std::size_t i = 0; i < eager.size(); ++i) {
      EXPECT_THAT(first[i], BitEqual(eager[i])) << "compiled, tensor " << i;
      EXPECT_THAT(second[i], BitEqual(eager[i])) << "read, tensor " << i;
      EXPECT_EQ(second[i].strides(), eager[i].strides()) << "read, tensor " << i;
    }
  }
  EXPECT_THAT(counts(made.stats()), ElementsAre(0, graphs, 0)) << made.explain().text();
  EXPECT_THAT(counts(read.stats()), ElementsAre(graphs, 0, 0)) << read.explain().text();
}

struct MlpImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return last(dropout(at::gelu(first(x)))) * 1.5; }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(6, 16));
  torch::nn::Dropout dropout = register_module("dropout", torch::nn::Dropout(0.3));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(16, 4));
};
TORCH_MODULE(Mlp);

using One = std::tuple<at::Tensor>;
using Two = std::tuple<at::Tensor, at::Tensor>;

TEST_F(Cache, GraphsThatAreReadGiveTheSameBits) {
  Mlp net;
  expect_same_bits(net, net, options(), 1, std::vector{One(at::randn({4, 6})), One(at::randn({4, 6}))});
}

// A recompilation with symbols makes another graph, which gets a file of its own.
TEST_F(Cache, GraphsWithSymbolsServeOtherSizes) {
  Mlp net;
  CompileOptions with_symbols = options();
  expect_same_bits(net, net, with_symbols, 2,
                   std::vector{One(at::randn({4, 6})), One(at::randn({7, 6})), One(at::randn({3, 6}))});
  with_symbols.dynamic = true;
  test::Transformer transformer;
  expect_same_bits(transformer, transformer, with_symbols, 1,
                   std::vector{One(at::randint(50, {3, 8})), One(at::randint(50, {2, 5}))});
}

TEST_F(Cache, EachPieceOfASplitGraphIsRead) {
  test::Custom net(64);
  fakes::FakeDDP ddp(net, 0.01);
  const auto two = [](std::int64_t rows) { return Two(at::randn({rows, 64}), at::randn({rows, 64})); };
  expect_same_bits(net, ddp, options(), 6, std::vector{two(5), two(8), two(2)});
}

// Recording the backward of trace() fixes a size. The graph from the folder must fix this size, too.
TEST_F(Cache, GuardsOfTheBackwardAreReadToo) {
  const auto f = [](const at::Tensor& x) { return x.trace(); };
  CompileOptions dynamic = options();
  dynamic.dynamic = true;
  auto made = compile(f, dynamic), read = compile(f, dynamic);
  for (const std::int64_t length : {3, 5, 4}) {
    const at::Tensor x = at::randn({length, length}).requires_grad_(), y = x.detach().clone().requires_grad_();
    made(x).backward();
    read(y).backward();
    EXPECT_THAT(y.grad(), BitEqual(x.grad()));
    ASSERT_EQ(read.stats().compiles_in_last_call, made.stats().compiles_in_last_call) << length;
  }
  ASSERT_EQ(made.explain().entries.size(), read.explain().entries.size());
  const auto without_lines = [](const Explanation& told) {
    std::vector<std::string> guards;
    for (const EntryExplanation& entry : told.entries) {
      for (const std::string& guard : entry.guards) guards.push_back(guard.substr(0, guard.find(" (")));
    }
    return guards;
  };
  EXPECT_EQ(without_lines(read.explain()), without_lines(made.explain()));
  EXPECT_THAT(counts(made.stats()), ElementsAre(0, 3, 0)) << "one of each size: " << made.explain().text();
  EXPECT_THAT(counts(read.stats()), ElementsAre(3, 0, 0)) << read.explain().text();
}

TEST_F(Cache, WithoutAFolderThereIsNone) {
  const auto f = [](const at::Tensor& x) { return x * 2; };
  auto compiled = compile(f);
  compiled(at::ones({3}));
  EXPECT_THAT(counts(compiled.stats()), ElementsAre(0, 0, 0));
  EXPECT_EQ(compiled.explain().entries.at(0).graphs.at(0).cache, CacheUse::Off);
  EXPECT_EQ(compiled.explain().text().find("read from the cache"), std::string::npos);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(Cache, ExplainTellsWhatBecameOfEachGraph) {
  const auto f = [](const at::Tensor& x) { return x * 2; };
  auto made = compile(f, options()), read = compile(f, options());
  made(at::ones({3}));
  read(at::ones({3}));
  ASSERT_EQ(files().size(), 1U);
  EXPECT_THAT(reasons(made.explain()), ElementsAre("there is no " + files()[0].string()));
  EXPECT_THAT(made.explain().text(), HasSubstr("    not read from the cache: there is no " + files()[0].string()));
  EXPECT_THAT(reasons(read.explain()), ElementsAre(""));
  EXPECT_THAT(read.explain().text(), HasSubstr("    read from the cache\n"));
}

TEST_F(Cache, TheEnvironmentNamesAFolderWhereTheOptionsNameNone) {
  const auto f = [](const at::Tensor& x) { return x * 2; };
  ASSERT_EQ(setenv("REHEARSE_CACHE_DIR", path_.c_str(), 1), 0);
  CompileOptions named = options(), off = options();
  named.cache_dir.reset();
  off.cache_dir = "";
  auto made = compile(f, named), uncached = compile(f, off), read = compile(f, options());
  for (auto* each : {&made, &uncached, &read}) (*each)(at::ones({3}));
  unsetenv("REHEARSE_CACHE_DIR");
  EXPECT_THAT(counts(made.stats()), ElementsAre(0, 1, 0));
  EXPECT_THAT(counts(uncached.stats()), ElementsAre(0, 0, 0));
  EXPECT_THAT(counts(read.stats()), ElementsAre(1, 0, 0));
}

TEST_F(Cache, ADamagedFileIsAMissAndIsWrittenAnew) {
  const auto f = [](const at::Tensor& x) { return x * 2; };
  auto made = compile(f, options()), damaged = compile(f, options()), read = compile(f, options());
  made(at::ones({3}));
  std::ofstream(files().at(0), std::ios::app) << "x";
  testing::internal::CaptureStderr();
  EXPECT_THAT(damaged(at::ones({3})), BitEqual(at::full({3}, 2.F)));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("rehearse::compile: " + files()[0].string() + " is damaged: its checksum is another"));
  EXPECT_THAT(damaged.explain().cache_warnings,
              ElementsAre(files()[0].string() + " is damaged: its checksum is another"));
  EXPECT_THAT(counts(damaged.stats()), ElementsAre(0, 1, 0));
  EXPECT_THAT(reasons(damaged.explain()), ElementsAre(files()[0].string() + " is damaged: its checksum is another"));
  EXPECT_THAT(read(at::ones({3})), BitEqual(at::full({3}, 2.F)));
  EXPECT_THAT(counts(read.stats()), ElementsAre(1, 0, 0));
}

TEST_F(Cache, WhatCannotBeWrittenIsReportedAndCompiled) {
  std::ofstream(path_) << "a file in the way";
  const auto f = [](const at::Tensor& x) { return x * 2; };
  auto compiled = compile(f, options());
  EXPECT_THAT(compiled(at::ones({3})), BitEqual(at::full({3}, 2.F)));
  EXPECT_THAT(counts(compiled.stats()), ElementsAre(0, 1, 0));
  ASSERT_EQ(compiled.explain().cache_warnings.size(), 1U);
  EXPECT_THAT(compiled.explain().text(),
              HasSubstr("cache of compiled graphs: a compiled graph is not stored: the folder " + path_.string() +
                        " cannot be made: "));
}

TEST_F(Cache, BypassesSayWhy) {
  const auto f = [](const at::Tensor& x) { return x * 2; };
  const auto reason_of = [&](const BackendChoice& backend, const auto& function, const at::Tensor& x) {
    CompileOptions chosen = options();
    chosen.backend = backend;
    auto compiled = compile(function, chosen);
    compiled(x);
    EXPECT_THAT(counts(compiled.stats()), ElementsAre(0, 0, 1));
    return reasons(compiled.explain()).at(0);
  };
  EXPECT_EQ(reason_of("eager", f, at::ones({3})),
            "the back end 'eager' does not say how its graphs are stored (Backend::cache_key())");
  EXPECT_EQ(reason_of(std::make_shared<CountingBackend>(), f, at::ones({3})),
            "the back end 'counting' does not say how its graphs are stored (Backend::cache_key())");
  EXPECT_THAT(reason_of(
                  "aot_eager", [](const at::Tensor& x) { return x.prod(); }, at::ones({3}).requires_grad_()),
              StartsWith("it runs under eager autograd: "));
  EXPECT_EQ(reason_of(
                "aot_eager", [](const at::Tensor& x) { return x.nonzero() * 2; }, at::ones({3})),
            "it has sizes that are known only at run time");
  EXPECT_FALSE(fs::exists(path_));
}

// A user's back end that can store its graphs.
class Doubling final : public Backend {
 public:
  explicit Doubling(std::string version) : version_(std::move(version)) {}
  std::string name() const override { return "doubling"; }
  std::optional<std::string> cache_key() const override { return version_; }
  CompiledGraph compile(const BackendInput&) override {
    ++compiled;
    return times("2");
  }
  CompiledGraph restore(const BackendInput&, const std::string& stored) override {
    if (version_ == "fails") throw std::runtime_error("cannot be restored");
    ++restored;
    return times(stored);
  }

  int compiled = 0, restored = 0;

 private:
  static CompiledGraph times(const std::string& factor) {
    CompiledGraph graph([factor](std::vector<c10::IValue> inputs) {
      return std::vector<c10::IValue>{inputs.at(0).toTensor() * std::stoi(factor)};
    });
    graph.store = [factor] { return factor; };
    return graph;
  }
  std::string version_;
};

TEST_F(Cache, BackEndsOfOnesOwnTakePart) {
  const auto f = [](const at::Tensor& x) { return x * 2; };
  const auto run = [&](const std::shared_ptr<Doubling>& backend) {
    CompileOptions chosen = options();
    chosen.backend = backend;
    auto compiled = compile(f, chosen);
    EXPECT_THAT(compiled(at::ones({3})), BitEqual(at::full({3}, 2.F)));
    return reasons(compiled.explain()).at(0);
  };
  const auto first = std::make_shared<Doubling>("1"), second = std::make_shared<Doubling>("1"),
             newer = std::make_shared<Doubling>("2"), failing = std::make_shared<Doubling>("fails");
  run(first);
  EXPECT_EQ(run(second), "");
  EXPECT_EQ(second->compiled, 0);
  EXPECT_EQ(second->restored, 1);
  EXPECT_THAT(run(newer), StartsWith("there is no "));
  run(failing);
  EXPECT_THAT(run(failing), HasSubstr(" cannot be used: cannot be restored"));
  EXPECT_EQ(failing->compiled, 2);
}

// Addresses differ between processes, so no key may contain an address. The other process runs this test with the
// folder's path in its environment.
TEST_F(Cache, AnotherProcessReadsIt) {
  const auto compile_all = [](CompileOptions chosen) {
    at::manual_seed(1);
    Mlp net;
    test::Custom custom(64);
    fakes::FakeDDP ddp(custom, 0.01);
    auto whole = compile(net, chosen);
    auto pieces = compile(ddp, chosen);
    const at::Tensor x = at::ones({4, 6}), wide = at::ones({4, 64});
    whole(x).sum().backward();
    pieces(wide, wide).sum().backward();
    CompileStats stats = whole.stats();
    stats.cache_hits += pieces.stats().cache_hits;
    stats.cache_misses += pieces.stats().cache_misses;
    stats.cache_bypasses += pieces.stats().cache_bypasses;
    return counts(stats);
  };
  constexpr const char* kFolder = "REHEARSE_TEST_FOLDER_OF_ANOTHER_PROCESS";
  if (const char* const folder = std::getenv(kFolder)) {
    CompileOptions chosen = options();
    chosen.cache_dir = folder;
    EXPECT_THAT(compile_all(chosen), ElementsAre(0, 4, 0));
    return;
  }
  const fs::path output = temporary_.path() / "output.txt";
  const pid_t child = test::start_own_process({"--gtest_filter=Cache.AnotherProcessReadsIt"},
                                              {std::string(kFolder) + "=" + path_.string()}, output);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0) << test::text_of(output);
  EXPECT_THAT(compile_all(options()), ElementsAre(4, 0, 0));
}

}  // namespace
}  // namespace rehearse::compiler
