// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/parallel/device_mesh.h>
#include <rehearse_internal/formatting/rank_list.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/operators/capture_mode.h>
#include <rehearse_internal/operators/group_use.h>

#include "parallel/mesh/mesh_layout.h"

namespace rehearse {
namespace {

using parallel::MeshLayout;

// "\"dp\", \"tp\"".
std::string quoted(const std::vector<std::string>& names) {
  std::vector<std::string> in_quotes;
  for (const std::string& name : names) in_quotes.push_back("\"" + name + "\"");
  return fmt::format("{}", fmt::join(in_quotes, ", "));
}

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

// The layout of a new DeviceMesh. `ranks`: empty for all ranks of a world of `world_size`, in order. Throws
// c10::ValueError for invalid arguments.
MeshLayout layout_of(std::vector<std::int64_t> sizes, std::vector<std::string> names, std::vector<int> ranks,
                     int world_size) {
  TORCH_CHECK_VALUE(!sizes.empty(), "DeviceMesh: there are no sizes; give one for each dimension, as in {2, 2}");
  check_names(names, sizes.size());
  const std::int64_t product = checked_product(sizes);
  const std::string shape = fmt::format("{}", fmt::join(sizes, " x "));
  if (ranks.empty()) {
    TORCH_CHECK_VALUE(product == world_size, "DeviceMesh: a mesh of ", shape, " does not have the ", world_size,
                      " ranks of the world; give other sizes, or say with .ranks which ranks are in it");
    ranks = ranks_below(world_size);
  } else {
    TORCH_CHECK_VALUE(std::cmp_equal(ranks.size(), product), "DeviceMesh: .ranks has ", ranks.size(),
                      " ranks, which do not fill a mesh of ", shape, "; give as many as its places");
    check_ranks(ranks, world_size);
  }
  return {std::move(sizes), std::move(names), {std::move(ranks)}};
}

// The indices of the named dimensions. Throws c10::ValueError unless these are names of the layout, each at most once,
// in order, and at least one.
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

constexpr const char* kMakeItBefore = "Make the mesh before, and make it an argument or watch() it.";

// The names of the meshes that a rank has made.
struct MeshNames {
  std::set<std::string> taken;
};

std::string take_name(RankContext& context, std::string name) {
  auto& taken = context.local<MeshNames>().taken;
  if (name.empty()) {
    name = "mesh";
    for (int number = 2; taken.contains(name); ++number) name = fmt::format("mesh{}", number);
  }
  TORCH_CHECK_VALUE(taken.insert(name).second, "DeviceMesh: there is a mesh of the name \"", name,
                    "\" already; give this one another .name, or none");
  return name;
}

// Makes the groups of all blocks, and returns the calling rank's group.
Group make_groups(RankContext& context, const MeshLayout& lines, const std::string& mesh,
                  const std::string& dimension) {
  Group own;
  for (std::size_t k = 0; k < lines.blocks.size(); ++k) {
    if (Group made = context.new_group(lines.blocks[k], fmt::format("{}.{}.{}", mesh, dimension, k))) own = made;
  }
  return own;
}

}  // namespace

// Shared by all slices of a mesh.
struct DeviceMesh::Root {
  struct Flattened {
    MeshLayout layout;
    Group own;
    c10d::ProcessGroup* own_group;        // the process group in `own`
    std::vector<std::string> dimensions;  // the flattened ones; empty if they have no names
  };

  RankContext& context;
  const std::string name;
  const MeshLayout layout;
  std::map<std::string, Flattened> flattened = {};
};

struct DeviceMesh::State {
  State(std::shared_ptr<Root> root_of_all, MeshLayout its_layout, std::vector<Group> groups)
      : root(std::move(root_of_all)),
        layout(std::move(its_layout)),
        position(position_of(root->context.rank(), layout)) {
    const auto ranks = position ? fmt::format("[{}]", fmt::join(own_block(), ", ")) : fmt::format("{}", layout.blocks);
    for (const Group& group : groups) members.push_back(group.get().get());
    fields = {layout.sizes, layout.names, ranks, root->context.device().type(), std::move(groups)};
  }

  const std::vector<int>& own_block() const { return layout.blocks[position ? position->block : 0]; }

  std::shared_ptr<Root> root;
  MeshLayout layout;
  std::optional<parallel::MeshPosition> position;  // nullopt on a rank outside of the mesh
  // The process groups in `fields.groups`. Kept separately, because Group::get() tells a capture that the code uses the
  // group.
  std::vector<c10d::ProcessGroup*> members;
  MeshFields fields;
};

DeviceMesh::DeviceMesh(RankContext& context, std::vector<std::int64_t> sizes, std::vector<std::string> names,
                       DeviceMeshOptions options) {
  operators::refuse_in_capture("the constructor of a DeviceMesh", kMakeItBefore);
  auto layout = layout_of(std::move(sizes), std::move(names), std::move(options.ranks), context.size());
  const auto root = std::make_shared<Root>(Root{context, take_name(context, std::move(options.name)), layout});
  std::vector<Group> groups;
  for (std::size_t d = 0; d < layout.sizes.size(); ++d) {
    groups.push_back(make_groups(context, layout.slice({d}), root->name, layout.title_of(d)));
  }
  state_ = std::make_shared<State>(root, std::move(layout), std::move(groups));
}

DeviceMesh::DeviceMesh(std::shared_ptr<State> state) : state_(std::move(state)) {}

const DeviceMesh::State& DeviceMesh::used() const {
  for (c10d::ProcessGroup* const group : state_->members) operators::note_group_use(this, group, state_);
  return *state_;
}

std::int64_t DeviceMesh::ndim() const { return std::ssize(used().layout.sizes); }
std::int64_t DeviceMesh::size() const { return used().layout.ranks_of_a_block(); }
std::int64_t DeviceMesh::size(const MeshDimension& dimension) const { return used().layout.sizes[index_of(dimension)]; }
const std::vector<std::int64_t>& DeviceMesh::sizes() const { return used().layout.sizes; }
const std::vector<std::string>& DeviceMesh::names() const { return used().layout.names; }
c10::DeviceType DeviceMesh::device_type() const { return used().fields.device_type; }
const std::vector<int>& DeviceMesh::ranks() const { return used().own_block(); }
int DeviceMesh::rank() const { return used().root->context.rank(); }
bool DeviceMesh::has_this_rank() const { return used().position.has_value(); }

std::optional<std::vector<std::int64_t>> DeviceMesh::coordinate() const {
  const State& state = used();
  return state.position ? std::optional(state.position->coordinate) : std::nullopt;
}

std::size_t DeviceMesh::index_of(const MeshDimension& dimension) const {
  const MeshLayout& layout = state_->layout;
  if (const auto* const name = std::get_if<std::string>(&dimension.value())) {
    const auto found = std::ranges::find(layout.names, *name);
    TORCH_CHECK_INDEX(found != layout.names.end(), "DeviceMesh: there is no dimension \"", *name, "\" here; ",
                      layout.names.empty() ? "the dimensions have no names: give their numbers"
                                           : "the dimensions are " + quoted(layout.names));
    return static_cast<std::size_t>(found - layout.names.begin());
  }
  const int index = std::get<int>(dimension.value());
  TORCH_CHECK_INDEX(index >= 0 && std::cmp_less(index, layout.sizes.size()), "DeviceMesh: there is no dimension ",
                    index, " here; the dimensions are 0 to ", layout.sizes.size() - 1);
  return static_cast<std::size_t>(index);
}

int DeviceMesh::only_dimension(const char* call) const {
  TORCH_CHECK_INDEX(state_->layout.sizes.size() == 1, "DeviceMesh::", call, "() of a mesh of ",
                    state_->layout.sizes.size(), " dimensions; say of which one, as in ", call, "(0)");
  return 0;
}

std::int64_t DeviceMesh::local_rank() const { return local_rank(only_dimension("local_rank")); }
std::int64_t DeviceMesh::local_rank(const MeshDimension& dimension) const {
  const State& state = used();
  const std::size_t index = index_of(dimension);
  if (!state.position) {
    throw std::logic_error(
        fmt::format("DeviceMesh::local_rank(): rank {} is not in the mesh of {}; ask has_this_rank() "
                    "first",
                    state.root->context.rank(), state.fields.ranks));
  }
  return state.position->coordinate[index];
}

const Group& DeviceMesh::group() const { return group(only_dimension("group")); }
const Group& DeviceMesh::group(const MeshDimension& dimension) const {
  return used().fields.groups[index_of(dimension)];
}

DeviceMesh DeviceMesh::operator[](std::string_view name) const { return slice({std::string(name)}); }
DeviceMesh DeviceMesh::operator[](std::initializer_list<std::string_view> names) const {
  return slice({names.begin(), names.end()});
}

DeviceMesh DeviceMesh::slice(const std::vector<std::string>& names) const {
  const State& state = used();
  const auto flat = names.size() == 1 ? state.root->flattened.find(names[0]) : state.root->flattened.end();
  const bool is_root = !state.layout.names.empty() && state.layout.names == state.root->layout.names;
  if (is_root && flat != state.root->flattened.end()) return slice(flat->second.dimensions).flatten(names[0]);
  const std::vector<std::size_t> dimensions = dimensions_of(names, state.layout);
  if (dimensions.size() == state.layout.sizes.size()) return *this;
  std::vector<Group> groups;
  for (const std::size_t d : dimensions) groups.push_back(state.fields.groups[d]);
  // Slices the whole mesh, whichever slice the caller starts from, so that the blocks are always in the same order.
  const MeshLayout& whole = state.root->layout;
  const MeshLayout layout = whole.slice(dimensions_of(names, whole));
  return DeviceMesh(std::make_shared<State>(state.root, layout, std::move(groups)));
}

DeviceMesh DeviceMesh::flatten(std::string name) const {
  const State& state = used();
  Root& root = *state.root;
  if (name.empty()) {
    TORCH_CHECK_VALUE(!state.layout.names.empty(),
                      "DeviceMesh::flatten(): the dimensions of this mesh have no names; give the new one a name");
    name = fmt::format("{}", fmt::join(state.layout.names, "_"));
  }
  if (ndim() == 1 && state.layout.title_of(0) == name) return *this;
  TORCH_CHECK_VALUE(std::ranges::find(root.layout.names, name) == root.layout.names.end(),
                    "DeviceMesh::flatten(): the mesh has a dimension \"", name, "\"; give another name");
  auto known = root.flattened.find(name);
  if (known == root.flattened.end()) {
    operators::refuse_in_capture("DeviceMesh::flatten()", kMakeItBefore);
    const MeshLayout layout{{state.layout.ranks_of_a_block()}, {name}, state.layout.blocks};
    Group own = make_groups(root.context, layout, root.name, name);
    c10d::ProcessGroup* const own_group = own.get().get();
    known = root.flattened.emplace(name, Root::Flattened{layout, std::move(own), own_group, state.layout.names}).first;
  }
  TORCH_CHECK_VALUE(known->second.layout.blocks == state.layout.blocks,
                    "DeviceMesh::flatten(): other dimensions have been flattened to \"", name,
                    "\" already; give another name");
  operators::note_derived_group(known->second.own_group);
  return DeviceMesh(std::make_shared<State>(state.root, known->second.layout, std::vector<Group>{known->second.own}));
}

MeshFields& DeviceMesh::fields() const { return state_->fields; }

bool DeviceMesh::is_equal(const DeviceMesh& other) const {
  const State &mine = used(), &its = other.used();
  return mine.layout.sizes == its.layout.sizes && mine.layout.names == its.layout.names &&
         mine.layout.blocks == its.layout.blocks && mine.members == its.members &&
         mine.fields.device_type == its.fields.device_type;
}

std::vector<c10d::ProcessGroup*> groups_in(const DeviceMesh& mesh) { return mesh.state_->members; }

}  // namespace rehearse
