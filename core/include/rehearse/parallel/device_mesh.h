// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <c10/core/DeviceType.h>

#include <rehearse/job/group.h>
#include <rehearse/job/rank_context.h>

namespace rehearse {

struct DeviceMeshOptions {
  // Names the mesh's groups: the line 1 of its dimension "tp" is the group "mesh.tp.1". Empty: "mesh", and "mesh2",
  // "mesh3", ... for those that follow.
  std::string name = {};
  // Ranks of the world in the order in which they fill the mesh, the last dimension first. Empty: all, 0 to n - 1.
  std::vector<int> ranks = {};
};

// A dimension of a mesh, by its number from 0 or by its name.
class MeshDimension {
 public:
  MeshDimension(int index) : dimension_(index) {}
  MeshDimension(const char* name) : dimension_(std::string(name)) {}
  MeshDimension(std::string_view name) : dimension_(std::string(name)) {}
  MeshDimension(const std::string& name) : dimension_(name) {}

  const std::variant<int, std::string>& value() const noexcept { return dimension_; }

 private:
  std::variant<int, std::string> dimension_;
};

// What tells one mesh from another: see DeviceMesh::operator==.
struct MeshFields {
  std::vector<std::int64_t> sizes;
  std::vector<std::string> names;
  std::string ranks;  // "[0, 1, 2, 3]"
  c10::DeviceType device_type = c10::kCPU;
  std::vector<Group> groups;  // by dimension: that of the line in which the rank is
};

// The ranks of a job as a grid, with a group for each line of it: torch.distributed's DeviceMesh.
//
//   DeviceMesh mesh(ctx, {2, 2}, {"dp", "tp"});  // ranks 0, 1 and 2, 3 are the lines of "tp"; 0, 2 and 1, 3 those of
//   "dp" mesh.group("tp").allreduce(x)->wait();
//
// A value type: copies share the mesh. Used on its rank's fibers, while its RankContext lives. Ranks of the world that
// are not in the mesh have one too: their groups are empty, and they have no coordinate.
//
// Making a mesh makes its groups: every rank of the world does it, in the same order among groups and with the same
// arguments. Nothing here waits for other ranks, unless their calls differ (as RankContext::new_group()). Errors:
// c10::ValueError for arguments that make no sense, c10::IndexError for a dimension that is not there; in a captured
// function making a mesh or a flattened one is refused.
class DeviceMesh {
 public:
  // `sizes`: of each dimension; `names`: of each too, or none at all.
  DeviceMesh(RankContext& context, std::vector<std::int64_t> sizes, std::vector<std::string> names = {},
             DeviceMeshOptions options = {});
  DeviceMesh(const DeviceMesh&) = default;
  DeviceMesh& operator=(const DeviceMesh&) = default;
  ~DeviceMesh() = default;

  std::int64_t ndim() const;
  std::int64_t size() const;  // how many ranks are in it
  std::int64_t size(const MeshDimension& dimension) const;
  const std::vector<std::int64_t>& sizes() const;
  const std::vector<std::string>& names() const;
  c10::DeviceType device_type() const;

  // The ranks of the world in it, the last dimension first. Of a slice those of the slice in which the calling rank is;
  // on a rank outside, of the first slice.
  const std::vector<int>& ranks() const;
  // The calling rank within the world.
  int rank() const;
  bool has_this_rank() const;
  // Where the calling rank is in it. Nothing on a rank outside.
  std::optional<std::vector<std::int64_t>> coordinate() const;
  // The calling rank's place along a dimension, which may be left out where there is but one. Throws std::logic_error
  // on a rank outside.
  std::int64_t local_rank() const;
  std::int64_t local_rank(const MeshDimension& dimension) const;
  // The group of the line along a dimension in which the calling rank is; empty on a rank outside.
  const Group& group() const;
  const Group& group(const MeshDimension& dimension) const;

  // The mesh of some dimensions, in the order in which they are here: mesh["tp"], mesh[{"dp", "tp"}]. Makes no groups.
  DeviceMesh operator[](std::string_view name) const;
  DeviceMesh operator[](std::initializer_list<std::string_view> names) const;
  DeviceMesh slice(const std::vector<std::string>& names) const;

  // The ranks of this mesh or slice as one dimension, with a group of their own: mesh[{"dp", "cp"}].flatten("dp_cp").
  // Empty: the names here, with "_" in between. Every rank of the world calls it, as the constructor; asking again
  // gives the same groups.
  DeviceMesh flatten(std::string name = {}) const;

  // The same sizes, names and ranks, the same groups, and the same kind of device.
  friend bool operator==(const DeviceMesh& a, const DeviceMesh& b) { return a.is_equal(b); }

  // How a compiled function takes one as an argument or gives one as a result.
  template <class Visit>
  friend void visit_fields(DeviceMesh& mesh, Visit&& visit) {
    MeshFields& fields = mesh.fields();
    visit("sizes", fields.sizes);
    visit("names", fields.names);
    visit("ranks", fields.ranks);
    visit("device_type", fields.device_type);
    visit("groups", fields.groups);
  }
  friend std::vector<c10d::ProcessGroup*> groups_in(const DeviceMesh& mesh);

 private:
  struct Root;
  struct State;

  explicit DeviceMesh(std::shared_ptr<State> state);

  // Tells a capture that the code asks for something of it.
  const State& used() const;
  std::size_t index_of(const MeshDimension& dimension) const;
  int only_dimension(const char* call) const;
  MeshFields& fields() const;
  bool is_equal(const DeviceMesh& other) const;

  std::shared_ptr<State> state_;
};

}  // namespace rehearse
