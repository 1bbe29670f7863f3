// SPDX-License-Identifier: BSD-3-Clause
// The caps that cut a graph come from the back end SplitByDdp or from DDP's options. The tests also cover the text of
// the pieces, and the folder to which each rank writes its graphs.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/counting_backend.h>
#include <rehearse/compile/errors.h>
#include <rehearse/compile/split_by_ddp.h>
#include <rehearse/graph/text.h>
#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/sim/world.h>

#include "bit_equal.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kLayer = 16 * 16 * 4;  // bytes of one layer

torch::nn::Sequential layers(int count) {
  torch::nn::Sequential net;
  for (int i = 0; i < count; ++i) net->push_back(torch::nn::Linear(torch::nn::LinearOptions(16, 16).bias(false)));
  return net;
}

std::vector<std::int64_t> bytes_of(const std::vector<parallel::ForwardBucket>& buckets) {
  std::vector<std::int64_t> bytes;
  for (const auto& bucket : buckets) bytes.push_back(bucket.bytes);
  return bytes;
}

TEST(SplitByDdp, CutsByItsCapsAndTellsItsBuckets) {
  auto net = layers(4);
  const auto counting = std::make_shared<CountingBackend>(make_backend("aot_eager"));
  const auto split = std::make_shared<SplitByDdp>(parallel::DdpBuckets{.bucket_bytes_cap = 2 * kLayer}, counting);
  auto compiled = compile(net, {.backend = split, .fullgraph = true});
  const at::Tensor x = at::randn({3, 16});
  EXPECT_THAT(compiled(x), BitEqual(net->forward(x)));
  EXPECT_EQ(compiled.stats().graphs, 1);
  EXPECT_EQ(counting->graphs(), 2U);
  EXPECT_THAT(bytes_of(split->buckets()), ElementsAre(2 * kLayer, 2 * kLayer));
  ASSERT_EQ(split->pieces().size(), 2U);
  EXPECT_EQ(split->pieces()[1].name, "submod_1");
  EXPECT_EQ(split->pieces()[1].bucket_bytes, 2 * kLayer);
}

// At first, the second size of x is a symbol, and then the first layer fixes it. The split graph must still accept x.
TEST(SplitByDdp, CutsAGraphWhoseSymbolsAreFixedByTheCode) {
  auto net = layers(4);
  const auto split = std::make_shared<SplitByDdp>(parallel::DdpBuckets{.bucket_bytes_cap = 2 * kLayer});
  auto compiled = compile(net, {.backend = split, .dynamic = true, .fullgraph = true});
  const at::Tensor x = at::randn({3, 16});
  EXPECT_THAT(compiled(x), BitEqual(net->forward(x)));
  EXPECT_THAT(bytes_of(split->buckets()), ElementsAre(2 * kLayer, 2 * kLayer));
}

TEST(SplitByDdp, NeedsAnInnerBackEnd) { EXPECT_THROW(SplitByDdp({}, nullptr), std::invalid_argument); }

// The bytes of the pieces, in the graph's order, of four layers under a DDP with these options.
std::vector<std::int64_t> pieces_under(const DistributedDataParallelOptions& options) {
  std::vector<std::int64_t> bytes;
  World world({.ranks = 1});
  const Report report = world.run([&](RankContext& ctx) {
    auto net = layers(4);
    DistributedDataParallel ddp(net, ctx.group(), options);
    auto compiled = compile(ddp, {.backend = "eager"});
    const at::Tensor x = at::randn({3, 16});
    EXPECT_THAT(compiled(x), BitEqual(net->forward(x)));
    const Explanation told = compiled.explain();
    for (const GraphExplanation& graph : told.entries.at(0).graphs) bytes.push_back(graph.bucket_bytes);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  return bytes;
}

TEST(CapsOfDdp, ReachTheCuts) {
  constexpr double kMb = 1024.0 * 1024.0;
  EXPECT_THAT(pieces_under({.bucket_cap_mb = 3 * kLayer / kMb, .first_bucket_bytes = kLayer}),
              ElementsAre(3 * kLayer, kLayer));
  EXPECT_THAT(pieces_under({.bucket_cap_mb = kLayer / kMb, .first_bucket_bytes = 2 * kLayer}),
              ElementsAre(kLayer, kLayer, 2 * kLayer));
  EXPECT_THAT(pieces_under({.bucket_cap_mb_list = {kLayer / kMb, 2 * kLayer / kMb, kLayer / kMb}}),
              ElementsAre(kLayer, 2 * kLayer, kLayer));
}

TEST(Pieces, ArePrintedAsText) {
  auto net = layers(2);
  const auto split = std::make_shared<SplitByDdp>(parallel::DdpBuckets{.bucket_bytes_cap = kLayer});
  auto compiled = compile(net, {.backend = split});
  compiled(at::randn({3, 16}));
  const std::vector<PieceText> whole = compiled.explain().pieces();
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_EQ(whole[0].entry, 0U);
  EXPECT_EQ(whole[0].name, "forward");
  const auto parsed = graph::parse_graph_module(whole[0].text);
  EXPECT_EQ(parsed->graph().placeholders().size(), 3U);
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(DumpFolder, HasEachGraphOfEachRank) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "rehearse_dump_folder" / "graphs";
  std::filesystem::remove_all(folder);
  World world({.ranks = 2});
  const Report report = world.run([&](RankContext& ctx) {
    auto net = layers(2);
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = kLayer / 1024.0 / 1024.0});
    auto compiled = compile(ddp, {.dump_folder = folder.string(), .name = "two layers"});
    compiled(at::randn({3, 16}));
    const auto pieces = compiled.explain().pieces();
    ASSERT_EQ(pieces.size(), 2U);
    const std::string prefix = "two_layers.rank" + std::to_string(ctx.rank());
    EXPECT_EQ(contents(folder / (prefix + ".1.submod_0.txt")), pieces[0].text);
    EXPECT_EQ(contents(folder / (prefix + ".2.submod_1.txt")), pieces[1].text);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 4);
  std::filesystem::remove_all(folder.parent_path());
}

TEST(DumpFolder, ThatCannotBeWrittenIsAnError) {
  auto compiled = compile([](const at::Tensor& x) { return x + 1; }, {.dump_folder = "/dev/null/graphs"});
  try {
    compiled(at::ones({2}));
    ADD_FAILURE() << "no error";
  } catch (const CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("dump_folder: cannot write /dev/null/graphs/function.1.forward.txt"));
  }
}

}  // namespace
}  // namespace rehearse::compiler
