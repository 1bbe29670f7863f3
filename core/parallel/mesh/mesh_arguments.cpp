// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/mesh/mesh_arguments.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse::parallel {
namespace {

void check_names(const std::vector<std::string>& names, std::size_t dimensions) {
  if (names.empty()) return;
  TORCH_CHECK_VALUE(names.size() == dimensions, "DeviceMesh: there are ", names.size(), " names (", quoted(names),
                    ") for ", dimensions, " sizes; give each dimension a name, or none of them");
  for (std::size_t i = 0; i < names.size(); ++i) {
    TORCH_CHECK_VALUE(!names[i].empty(), "DeviceMesh: the name of dimension ", i,
                      " is empty; give each dimension a name, or none of them");
    TORCH_CHECK_VALUE(std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) ==
                          names.begin() + static_cast<std::ptrdiff_t>(i),
                      "DeviceMesh: two dimensions have the name \"", names[i], "\" (", quoted(names),
                      "); give each a name of its own");
  }
}

// The number of ranks in the mesh; saturates above any possible number of ranks.
std::int64_t checked_product(const std::vector<std::int64_t>& sizes) {
  constexpr std::int64_t kMore = std::int64_t{1} << 31;
  std::int64_t product = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    TORCH_CHECK_VALUE(sizes[i] > 0, "DeviceMesh: the size of dimension ", i, " is ", sizes[i],
                      "; a dimension has one rank at least");
    product = sizes[i] > kMore / product ? kMore : product * sizes[i];
  }
  return product;
}

void check_ranks(const std::vector<int>& ranks, int world_size) {
  std::vector<bool> is_there(static_cast<std::size_t>(world_size));
  for (const int rank : ranks) {
    TORCH_CHECK_VALUE(rank >= 0 && rank < world_size, "DeviceMesh: .ranks has rank ", rank, "; a world of ", world_size,
                      " has ranks 0 to ", world_size - 1);
    TORCH_CHECK_VALUE(!is_there[static_cast<std::size_t>(rank)], "DeviceMesh: .ranks has rank ", rank,
                      " twice; each rank has one place in a mesh");
    is_there[static_cast<std::size_t>(rank)] = true;
  }
}

}  // namespace

std::string quoted(const std::vector<std::string>& names) {
  std::vector<std::string> in_quotes;
  for (const std::string& name : names) in_quotes.push_back("\"" + name + "\"");
  return fmt::format("{}", fmt::join(in_quotes, ", "));
}

MeshLayout layout_of(std::vector<std::int64_t> sizes, std::vector<std::string> names, std::vector<int> ranks,
                     int world_size) {
  TORCH_CHECK_VALUE(!sizes.empty(), "DeviceMesh: there are no sizes; give one for each dimension, as in {2, 2}");
  check_names(names, sizes.size());
  const std::int64_t product = checked_product(sizes);
  const std::string shape = fmt::format("{}", fmt::join(sizes, " x "));
  if (ranks.empty()) {
    TORCH_CHECK_VALUE(product == world_size, "DeviceMesh: a mesh of ", shape, " does not have the ", world_size,
                      " ranks of the world; give other sizes, or say with .ranks which ranks are in it");
    ranks.resize(static_cast<std::size_t>(world_size));
    std::iota(ranks.begin(), ranks.end(), 0);
  } else {
    TORCH_CHECK_VALUE(std::cmp_equal(ranks.size(), product), "DeviceMesh: .ranks has ", ranks.size(),
                      " ranks, which do not fill a mesh of ", shape, "; give as many as its places");
    check_ranks(ranks, world_size);
  }
  return {std::move(sizes), std::move(names), {std::move(ranks)}};
}

std::vector<std::size_t> dimensions_of(const std::vector<std::string>& names, const MeshLayout& layout) {
  TORCH_CHECK_VALUE(!layout.names.empty(),
                    "DeviceMesh: the dimensions of this mesh have no names, by which a slice is taken; make the mesh "
                    "with names");
  TORCH_CHECK_VALUE(!names.empty(), "DeviceMesh: a slice of no dimensions; name some of ", quoted(layout.names));
  std::vector<std::size_t> dimensions;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(layout.names, name);
    TORCH_CHECK_VALUE(found != layout.names.end(), "DeviceMesh: there is no dimension \"", name,
                      "\" here; the dimensions are ", quoted(layout.names));
    dimensions.push_back(static_cast<std::size_t>(found - layout.names.begin()));
    TORCH_CHECK_VALUE(dimensions.size() == 1 || dimensions[dimensions.size() - 2] < dimensions.back(),
                      "DeviceMesh: a slice by ", quoted(names), "; name each dimension once, in the order of ",
                      quoted(layout.names));
  }
  return dimensions;
}

}  // namespace rehearse::parallel
