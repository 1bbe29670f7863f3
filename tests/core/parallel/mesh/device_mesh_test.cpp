// SPDX-License-Identifier: BSD-3-Clause
// Contract: a mesh arranges all or some ranks of the world as a grid. Each line of the grid has a group, and all ranks
// must agree on the mesh.
#include <rehearse/parallel/device_mesh.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/comm/whole_world.h"

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace {

using namespace rehearse;
using comm::on_ranks;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ranks = std::vector<int>;
using Place = std::vector<std::int64_t>;

std::int64_t sum_over(const Group& group, int rank) {
  auto sum = at::full({1}, 1 << rank, at::kLong);
  group.allreduce(sum)->wait();
  return sum.item<std::int64_t>();
}

// Makes this mesh on four ranks, and returns the error on rank 3; "none" if there is none.
std::string error_of(std::vector<std::int64_t> sizes, std::vector<std::string> names, DeviceMeshOptions options = {}) {
  std::string found = "none";
  World({.ranks = 4}).run([&](RankContext& ctx) {
    try {
      const DeviceMesh mesh(ctx, sizes, names, options);
    } catch (const c10::ValueError& error) {
      if (ctx.rank() == 3) found = error.what_without_backtrace();
    }
  });
  return found;
}

TEST(DeviceMesh, RowMajor_EachRankHasItsPlaceAndTheGroupsOfItsLines) {
  on_ranks(6, [](RankContext& ctx) {
    const DeviceMesh mesh(ctx, {2, 3}, {"dp", "tp"});
    const std::int64_t row = ctx.rank() / 3, column = ctx.rank() % 3;
    EXPECT_EQ(mesh.ndim(), 2);
    EXPECT_EQ(mesh.size(), 6);
    EXPECT_EQ(mesh.size(0), 2);
    EXPECT_EQ(mesh.size("tp"), 3);
    EXPECT_THAT(mesh.sizes(), ElementsAre(2, 3));
    EXPECT_THAT(mesh.names(), ElementsAre("dp", "tp"));
    EXPECT_EQ(mesh.device_type(), c10::kCPU);
    EXPECT_EQ(mesh.rank(), ctx.rank());
    EXPECT_THAT(mesh.ranks(), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_TRUE(mesh.has_this_rank());
    EXPECT_EQ(mesh.coordinate(), (Place{row, column}));
    EXPECT_EQ(mesh.local_rank(0), row);
    EXPECT_EQ(mesh.local_rank("tp"), column);
    EXPECT_EQ(mesh.group("tp").ranks(), row == 0 ? (Ranks{0, 1, 2}) : (Ranks{3, 4, 5}));
    EXPECT_EQ(mesh.group(0).ranks(), (Ranks{ctx.rank() % 3, ctx.rank() % 3 + 3}));
    EXPECT_EQ(mesh.group("tp").name(), "mesh.tp." + std::to_string(row));
    EXPECT_EQ(mesh.group("dp").name(), "mesh.dp." + std::to_string(column));
    EXPECT_EQ(mesh.group("tp").rank(), column);
    EXPECT_EQ(sum_over(mesh.group("tp"), ctx.rank()), row == 0 ? 0b000111 : 0b111000);
    EXPECT_EQ(sum_over(mesh.group("dp"), ctx.rank()), 0b001001 << column);
  });
}

TEST(DeviceMesh, OneRank_HasGroupsOfOne) {
  on_ranks(1, [](RankContext& ctx) {
    const DeviceMesh mesh(ctx, {1, 1}, {"dp", "tp"});
    EXPECT_EQ(mesh.coordinate(), (Place{0, 0}));
    EXPECT_THAT(mesh.group("dp").ranks(), ElementsAre(0));
    EXPECT_EQ(sum_over(mesh.group("tp"), 0), 1);
  });
}

TEST(DeviceMesh, OneByN_TheLongDimensionHasAllRanksInAGroupOfItsOwn) {
  on_ranks(3, [](RankContext& ctx) {
    const DeviceMesh mesh(ctx, {1, 3}, {}, {.name = "grid"});
    EXPECT_EQ(mesh.coordinate(), (Place{0, ctx.rank()}));
    EXPECT_THAT(mesh.group(0).ranks(), ElementsAre(ctx.rank()));
    EXPECT_THAT(mesh.group(1).ranks(), ElementsAre(0, 1, 2));
    EXPECT_EQ(mesh.group(1).name(), "grid.1.0");
    EXPECT_NE(mesh.group(1).get(), ctx.group().get());
  });
}

TEST(DeviceMesh, AnyOrderOfRanks_FillsTheRowsInThatOrder) {
  on_ranks(4, [](RankContext& ctx) {
    const DeviceMesh mesh(ctx, {2, 2}, {"dp", "tp"}, {.ranks = {3, 1, 0, 2}});
    const std::vector<Place> places{{1, 0}, {0, 1}, {1, 1}, {0, 0}};
    EXPECT_EQ(mesh.coordinate(), places[static_cast<std::size_t>(ctx.rank())]);
    const bool is_above = ctx.rank() % 2 == 1;
    EXPECT_EQ(mesh.group("tp").ranks(), is_above ? (Ranks{3, 1}) : (Ranks{0, 2}));
    EXPECT_EQ(mesh.group("dp").ranks(), ctx.rank() == 3 || ctx.rank() == 0 ? (Ranks{3, 0}) : (Ranks{1, 2}));
    EXPECT_EQ(mesh.local_rank("dp"), mesh.group("dp").rank());
    EXPECT_EQ(mesh.local_rank("tp"), mesh.group("tp").rank());
  });
}

TEST(DeviceMesh, ARankOutside_HasNoCoordinateAndEmptyGroups) {
  on_ranks(4, [](RankContext& ctx) {
    const DeviceMesh mesh(ctx, {2}, {"tp"}, {.ranks = {2, 0}});
    const bool is_in = ctx.rank() % 2 == 0;
    EXPECT_EQ(mesh.has_this_rank(), is_in);
    EXPECT_EQ(mesh.coordinate().has_value(), is_in);
    EXPECT_EQ(static_cast<bool>(mesh.group("tp")), is_in);
    EXPECT_EQ(mesh.size(), 2);
    EXPECT_THAT(mesh.ranks(), ElementsAre(2, 0));
    if (is_in) {
      EXPECT_EQ(mesh.local_rank(), ctx.rank() == 2 ? 0 : 1);
      return;
    }
    try {
      mesh.local_rank();
      ADD_FAILURE();
    } catch (const std::logic_error& error) {
      EXPECT_EQ(std::string(error.what()), "DeviceMesh::local_rank(): rank " + std::to_string(ctx.rank()) +
                                               " is not in the mesh of [[2, 0]]; ask has_this_rank() first");
    }
  });
}

TEST(DeviceMesh, Slices_HaveTheGroupsOfTheMesh) {
  on_ranks(8, [](RankContext& ctx) {
    const DeviceMesh mesh(ctx, {2, 2, 2}, {"dp", "cp", "tp"});
    const DeviceMesh tp = mesh["tp"], dp_tp = mesh[{"dp", "tp"}];
    EXPECT_EQ(tp.ndim(), 1);
    EXPECT_EQ(tp.group().get(), mesh.group("tp").get());
    EXPECT_EQ(tp.ranks(), mesh.group("tp").ranks());
    EXPECT_EQ(tp.local_rank(), mesh.local_rank("tp"));
    const int odd = ctx.rank() / 2 % 2 * 2;  // the lowest rank with this rank's coordinate in "cp"
    EXPECT_EQ(dp_tp.ranks(), (Ranks{odd, odd + 1, odd + 4, odd + 5}));
    EXPECT_EQ(dp_tp.coordinate(), (Place{ctx.rank() / 4, ctx.rank() % 2}));
    EXPECT_EQ(dp_tp.group("dp").get(), mesh.group("dp").get());
    EXPECT_EQ((mesh[{"dp", "cp", "tp"}]), mesh);
    EXPECT_EQ(dp_tp["tp"], tp);
    EXPECT_FALSE(tp == mesh["dp"]);
  });
}

TEST(DeviceMesh, Flattened_HasOneGroupForItsDimensionsAndIsMadeOnce) {
  on_ranks(8, [](RankContext& ctx) {
    const DeviceMesh mesh(ctx, {2, 2, 2}, {"dp", "cp", "tp"});
    const DeviceMesh both = mesh[{"dp", "tp"}].flatten();
    const int by_cp = ctx.rank() / 2 % 2;
    EXPECT_EQ(both.ndim(), 1);
    EXPECT_EQ(both.size(), 4);
    EXPECT_THAT(both.names(), ElementsAre("dp_tp"));
    EXPECT_EQ(both.group().ranks(), (Ranks{2 * by_cp, 2 * by_cp + 1, 2 * by_cp + 4, 2 * by_cp + 5}));
    EXPECT_EQ(both.group().name(), "mesh.dp_tp." + std::to_string(by_cp));
    EXPECT_EQ(both.local_rank(), ctx.rank() / 4 * 2 + ctx.rank() % 2);
    EXPECT_EQ((mesh[{"dp", "tp"}].flatten("dp_tp")), both);
    EXPECT_EQ(mesh["tp"].flatten("tp"), mesh["tp"]);
    EXPECT_EQ(mesh["dp_tp"], both);
    EXPECT_THROW(mesh["tp"]["dp_tp"], c10::ValueError);
    const DeviceMesh all = mesh.flatten("all");
    EXPECT_EQ(mesh["all"], all);
    EXPECT_EQ(all.group().ranks(), (Ranks{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_THROW((mesh[{"dp", "cp"}].flatten("dp_tp")), c10::ValueError);
    EXPECT_THROW((mesh[{"dp", "cp"}].flatten("tp")), c10::ValueError);
  });
}

TEST(DeviceMesh, SeveralMeshes_HaveNamesOfTheirOwn) {
  on_ranks(2, [](RankContext& ctx) {
    const DeviceMesh first(ctx, {2}, {"tp"}), second(ctx, {2}, {"tp"}), named(ctx, {2}, {"tp"}, {.name = "experts"});
    EXPECT_EQ(first.group().name(), "mesh.tp.0");
    EXPECT_EQ(second.group().name(), "mesh2.tp.0");
    EXPECT_EQ(named.group().name(), "experts.tp.0");
    EXPECT_FALSE(first == second);
    EXPECT_THROW(DeviceMesh(ctx, {2}, {"tp"}, {.name = "experts"}), c10::ValueError);
  });
}

TEST(DeviceMesh, ArgumentsThatMakeNoMesh_AreErrorsWithARemedy) {
  EXPECT_EQ(error_of({}, {}), "DeviceMesh: there are no sizes; give one for each dimension, as in {2, 2}");
  EXPECT_EQ(error_of({4, 0}, {}), "DeviceMesh: the size of dimension 1 is 0; a dimension has one rank at least");
  EXPECT_EQ(error_of({3, 2}, {}),
            "DeviceMesh: a mesh of 3 x 2 does not have the 4 ranks of the world; give other sizes, or say with .ranks "
            "which ranks are in it");
  EXPECT_EQ(error_of({1L << 40, 1L << 40}, {}),
            "DeviceMesh: a mesh of 1099511627776 x 1099511627776 does not have the 4 ranks of the world; give other "
            "sizes, or say with .ranks which ranks are in it");
  EXPECT_EQ(error_of({2, 2}, {"dp"}),
            "DeviceMesh: there are 1 names (\"dp\") for 2 sizes; give each dimension a name, or none of them");
  EXPECT_EQ(error_of({2, 2}, {"dp", "dp"}),
            "DeviceMesh: two dimensions have the name \"dp\" (\"dp\", \"dp\"); give each a name of its own");
  EXPECT_EQ(error_of({2, 2}, {"dp", ""}),
            "DeviceMesh: the name of dimension 1 is empty; give each dimension a name, or none of them");
  EXPECT_EQ(error_of({2}, {}, {.ranks = {0, 1, 2}}),
            "DeviceMesh: .ranks has 3 ranks, which do not fill a mesh of 2; give as many as its places");
  EXPECT_EQ(error_of({2}, {}, {.ranks = {0, 4}}), "DeviceMesh: .ranks has rank 4; a world of 4 has ranks 0 to 3");
  EXPECT_EQ(error_of({2}, {}, {.ranks = {1, 1}}),
            "DeviceMesh: .ranks has rank 1 twice; each rank has one place in a mesh");
}

template <class Error>
std::string error_of_call(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what_without_backtrace();
  }
  return "none";
}

TEST(DeviceMesh, DimensionsThatAreNotThere_AreErrorsWithThoseThatAre) {
  on_ranks(4, [](RankContext& ctx) {
    const DeviceMesh mesh(ctx, {2, 2}, {"dp", "tp"}), plain(ctx, {4});
    EXPECT_EQ(error_of_call<c10::IndexError>([&] { mesh.group("pp"); }),
              "DeviceMesh: there is no dimension \"pp\" here; the dimensions are \"dp\", \"tp\"");
    EXPECT_EQ(error_of_call<c10::IndexError>([&] { mesh.size(2); }),
              "DeviceMesh: there is no dimension 2 here; the dimensions are 0 to 1");
    EXPECT_EQ(error_of_call<c10::IndexError>([&] { mesh.group(); }),
              "DeviceMesh::group() of a mesh of 2 dimensions; say of which one, as in group(0)");
    EXPECT_EQ(error_of_call<c10::IndexError>([&] { plain.local_rank("dp"); }),
              "DeviceMesh: there is no dimension \"dp\" here; the dimensions have no names: give their numbers");
    EXPECT_EQ(error_of_call<c10::ValueError>([&] { mesh["pp"]; }),
              "DeviceMesh: there is no dimension \"pp\" here; the dimensions are \"dp\", \"tp\"");
    EXPECT_EQ(error_of_call<c10::ValueError>([&] { mesh[{"tp", "dp"}]; }),
              "DeviceMesh: a slice by \"tp\", \"dp\"; name each dimension once, in the order of \"dp\", \"tp\"");
    EXPECT_EQ(error_of_call<c10::ValueError>([&] { plain["dp"]; }),
              "DeviceMesh: the dimensions of this mesh have no names, by which a slice is taken; make the mesh with "
              "names");
    EXPECT_EQ(error_of_call<c10::ValueError>([&] { plain.flatten(); }),
              "DeviceMesh::flatten(): the dimensions of this mesh have no names; give the new one a name");
  });
}

// If one rank's mesh differs, the rank's new_group() calls differ, too.
TEST(DeviceMesh, RanksThatMakeMeshesInAnotherOrder_AreAMismatch) {
  const Report report = World({.ranks = 4}).run([](RankContext& ctx) {
    const std::vector<std::int64_t> sizes{2, 2}, others{4, 1};
    const DeviceMesh first(ctx, ctx.rank() == 2 ? others : sizes, {"dp", "tp"});
    const DeviceMesh second(ctx, ctx.rank() == 2 ? sizes : others, {"dp", "tp"});
  });
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  EXPECT_EQ(report.headline,
            "rank 2 passed {0, 1, 2, 3} \"mesh.dp.0\" while ranks 0-1,3 passed {0, 2} \"mesh.dp.0\" to new_group #1");
}

TEST(DeviceMesh, AHangOnALine_NamesMeshDimensionAndLine) {
  const Report report = World({.ranks = 4}).run([](RankContext& ctx) {
    const DeviceMesh mesh(ctx, {2, 2}, {"dp", "tp"});
    if (ctx.rank() != 3) mesh.group("tp").barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline, HasSubstr("barrier #1 on group \"mesh.tp.1\""));
}

}  // namespace
