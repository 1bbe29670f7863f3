// SPDX-License-Identifier: BSD-3-Clause
// Contract: meshes and placements are constants of a graph. Guards check the fields of meshes and placements that are
// arguments or watched objects: the groups of a mesh by identity, all other fields by value. A function may also return
// meshes and placements. A call with another mesh compiles again, and a later call with the first mesh uses the first
// graph again.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/comm/functional.h>
#include <rehearse/compile/compile.h>
#include <rehearse/compile/watch.h>
#include <rehearse/parallel/device_mesh.h>
#include <rehearse/parallel/placement.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/capture/errors.h>

#include "bit_equal.h"

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace {

using namespace rehearse;
using rehearse::test::BitEqual;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using torch::distributed::Partial;
using torch::distributed::Replicate;
using torch::distributed::Shard;
using torch::distributed::StridedShard;

void on_four_ranks(const World::Body& body) {
  const Report report = World({.ranks = 4}).run(body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

// Calls the function twice with each value, then twice with the first value again. Returns the number of compilations
// for each of these values.
template <class Compiled, class Value, class Reference>
std::vector<std::int64_t> compiles_of(Compiled& compiled, std::vector<Value> values, const Reference& reference) {
  std::vector<std::int64_t> counts;
  values.push_back(values.front());
  const at::Tensor x = at::arange(4.);
  for (const Value& value : values) {
    const auto before = compiled.stats().compiles;
    for (int call = 0; call < 2; ++call) EXPECT_THAT(compiled(x, value), BitEqual(reference(x, value)));
    counts.push_back(compiled.stats().compiles - before);
  }
  return counts;
}

// A tensor that depends on the mesh's groups, coordinates, sizes, names and ranks.
at::Tensor told(const at::Tensor& x, const DeviceMesh& mesh) {
  at::Tensor sum = functional::all_reduce(x, mesh.group(mesh.ndim() - 1));
  if (const auto place = mesh.coordinate()) sum = sum + 10 * place->front() + mesh.local_rank(0);
  return sum + 100 * mesh.size(0) + 1000 * static_cast<double>(mesh.names().size()) + mesh.ranks().front();
}

TEST(MeshArguments, AnotherMesh_CompilesAnewAndTheFirstComesBackForNothing) {
  on_four_ranks([](RankContext& ctx) {
    const DeviceMesh square(ctx, {2, 2}, {"dp", "tp"}), again(ctx, {2, 2}, {"dp", "tp"}), unnamed(ctx, {2, 2}),
        turned(ctx, {2, 2}, {"dp", "tp"}, {.ranks = {3, 1, 2, 0}}), line(ctx, {4}, {"tp"});
    auto compiled = compile(told, {.fullgraph = true});
    EXPECT_THAT(
        compiles_of(compiled, std::vector<DeviceMesh>{square, again, unnamed, turned, line, square["tp"], square["dp"]},
                    told),
        ElementsAre(1, 1, 1, 1, 1, 1, 1, 0));
    const auto explained = compiled.explain();
    EXPECT_EQ(explained.recompiles.at(0).failures.front().source, "arg1.groups[0]");
  });
}

TEST(MeshArguments, SlicesThatAreTakenAgain_AreTheSame) {
  on_four_ranks([](RankContext& ctx) {
    const DeviceMesh mesh(ctx, {2, 2}, {"dp", "tp"});
    auto compiled = compile(told, {.fullgraph = true});
    for (int call = 0; call < 3; ++call) compiled(at::ones({4}), mesh["tp"]);
    EXPECT_EQ(compiled.stats().compiles, 1);
  });
}

TEST(MeshArguments, OnARankOutside_AnotherMeshIsSeenToo) {
  on_four_ranks([](RankContext& ctx) {
    const DeviceMesh first(ctx, {2}, {"tp"}, {.ranks = {0, 1}}), second(ctx, {2}, {"tp"}, {.ranks = {1, 0}});
    const auto code = [](const at::Tensor& x, const DeviceMesh& mesh) {
      return x + mesh.ranks().front() + (mesh.has_this_rank() ? 10 : 0);
    };
    auto compiled = compile(code, {.fullgraph = true});
    EXPECT_THAT(compiles_of(compiled, std::vector<DeviceMesh>{first, second}, code), ElementsAre(1, 1, 0));
  });
}

TEST(MeshArguments, AWatchedMesh_IsGuarded) {
  on_four_ranks([](RankContext& ctx) {
    const DeviceMesh square(ctx, {2, 2}, {"dp", "tp"}), turned(ctx, {2, 2}, {"dp", "tp"}, {.ranks = {3, 1, 2, 0}});
    DeviceMesh mesh = square;
    auto compiled = compile([&](const at::Tensor& x) { return told(x, watch(mesh)); }, {.fullgraph = true});
    std::vector<std::int64_t> counts;
    for (const DeviceMesh& now : {square, square, turned, square}) {
      mesh = now;
      EXPECT_THAT(compiled(at::ones({4})), BitEqual(told(at::ones({4}), now)));
      counts.push_back(compiled.stats().compiles_in_last_call);
    }
    EXPECT_THAT(counts, ElementsAre(1, 0, 1, 0));
  });
}

TEST(MeshArguments, AMeshFoundByReference_IsRefusedWhateverIsAskedOfIt) {
  on_four_ranks([](RankContext& ctx) {
    DeviceMesh mesh(ctx, {2, 2}, {"dp", "tp"});
    const std::vector<std::function<at::Tensor(const at::Tensor&)>> codes{
        [&](const at::Tensor& x) { return x + mesh.size(0); },
        [&](const at::Tensor& x) { return x + mesh.coordinate()->front(); },
        [&](const at::Tensor& x) { return x + mesh["tp"].local_rank(); },
        [&](const at::Tensor& x) { return functional::all_reduce(x, mesh.group("tp")); },
    };
    for (const auto& code : codes) {
      auto compiled = compile([&](const at::Tensor& x) { return code(x); }, {.fullgraph = true});
      try {
        compiled(at::ones({2}));
        ADD_FAILURE();
      } catch (const capture::NotCapturable& refused) {
        EXPECT_THAT(refused.what(), HasSubstr("a method of the group \"mesh.dp." + std::to_string(ctx.rank() % 2) +
                                              "\", which is neither an argument nor watched"));
      }
    }
  });
}

TEST(MeshArguments, MakingAMeshInACapture_IsRefused) {
  on_four_ranks([](RankContext& ctx) {
    const DeviceMesh mesh(ctx, {2, 2}, {"dp", "tp"});
    auto making = compile([&](const at::Tensor& x) { return x + DeviceMesh(ctx, {4}).size(); }, {.fullgraph = true});
    auto flattening =
        compile([](const at::Tensor& x, const DeviceMesh& mesh) { return x + mesh.flatten("all").size(); },
                {.fullgraph = true});
    EXPECT_THROW(making(at::ones({2})), capture::NotCapturable);
    EXPECT_THROW(flattening(at::ones({2}), mesh), capture::NotCapturable);
    mesh.flatten("all");
    EXPECT_THAT(flattening(at::zeros({2}), mesh), BitEqual(at::full({2}, 4.0)));
  });
}

TEST(MeshArguments, AMeshAsAResult_IsThatOfTheCall) {
  on_four_ranks([](RankContext& ctx) {
    const DeviceMesh square(ctx, {2, 2}, {"dp", "tp"}), line(ctx, {4}, {"tp"});
    auto compiled = compile([](const at::Tensor& x, const DeviceMesh& mesh) { return std::pair(x * 2, mesh["tp"]); },
                            {.fullgraph = true});
    for (const DeviceMesh& mesh : {square, line, square}) {
      const auto [doubled, tp] = compiled(at::ones({2}), mesh);
      EXPECT_THAT(doubled, BitEqual(at::full({2}, 2.0)));
      EXPECT_EQ(tp, mesh["tp"]);
    }
    EXPECT_EQ(compiled.stats().compiles, 2);
  });
}

// A tensor that depends on the class and the fields of the placement.
at::Tensor placed(const at::Tensor& x, const AnyPlacement& placement) {
  if (const auto* const shard = std::get_if<Shard>(&placement)) return x + shard->dim;
  if (const auto* const partial = std::get_if<Partial>(&placement)) return x * (partial->reduce_op == "sum" ? 2 : 3);
  return x - 1;
}

TEST(PlacementArguments, AnotherPlacement_CompilesAnewAndTheFirstComesBackForNothing) {
  auto compiled = compile(placed, {.fullgraph = true});
  EXPECT_THAT(
      compiles_of(compiled,
                  std::vector<AnyPlacement>{Shard(0), Shard(1), Replicate(), Partial(), Partial("avg"), Shard(-1)},
                  placed),
      ElementsAre(1, 1, 1, 1, 1, 1, 0));
  EXPECT_EQ(compiled.explain().recompiles.at(0).failures.front().source, "arg1.dim");
}

TEST(PlacementArguments, InAList_EachIsGuarded) {
  using Placements = std::vector<AnyPlacement>;
  const auto code = [](const at::Tensor& x, const Placements& placements) {
    at::Tensor sum = x;
    for (const AnyPlacement& each : placements) sum = placed(sum, each);
    return sum;
  };
  auto compiled = compile(code, {.fullgraph = true});
  EXPECT_THAT(
      compiles_of(compiled, std::vector<Placements>{{Shard(0), Replicate()}, {Replicate(), Shard(0)}, {Shard(0)}, {}},
                  code),
      ElementsAre(1, 1, 1, 1, 0));
}

TEST(PlacementArguments, ByItsOwnClass_ItsFieldsAreGuarded) {
  const auto code = [](const at::Tensor& x, const StridedShard& shard) {
    return x + 10 * shard.dim + shard.split_factor;
  };
  auto compiled = compile(code, {.fullgraph = true});
  EXPECT_THAT(compiles_of(compiled,
                          std::vector<StridedShard>{StridedShard(0, 2), StridedShard(0, 4), StridedShard(1, 2)}, code),
              ElementsAre(1, 1, 1, 0));
}

TEST(PlacementArguments, WatchedAndAsAResult) {
  AnyPlacement placement = Shard(0);
  auto compiled = compile([&](const at::Tensor& x) { return std::pair(placed(x, watch(placement)), placement); },
                          {.fullgraph = true});
  std::vector<std::int64_t> counts;
  for (const AnyPlacement& now : {AnyPlacement(Shard(0)), AnyPlacement(Partial()), AnyPlacement(Shard(0))}) {
    placement = now;
    const auto [found, given] = compiled(at::ones({2}));
    EXPECT_THAT(found, BitEqual(placed(at::ones({2}), now)));
    EXPECT_EQ(given, now);
    counts.push_back(compiled.stats().compiles_in_last_call);
  }
  EXPECT_THAT(counts, ElementsAre(1, 1, 0));
}

}  // namespace
