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
  // The prefix of the group names: the lines of dimension "tp" have the groups "mesh.tp.0", "mesh.tp.1", ... Empty:
  // "mesh" for the first mesh, "mesh2", "mesh3", ... for further ones.
  std::string name = {};
  // The ranks of the world that fill the mesh, in row-major order: the index of the last dimension changes fastest.
  // Empty: all ranks, 0 to n - 1.
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

// The parts of a DeviceMesh that the guards of compiled functions compare.
struct MeshFields {
  std::vector<std::int64_t> sizes;
  std::vector<std::string> names;
  std::string ranks;  // "[0, 1, 2, 3]"
  c10::DeviceType device_type = c10::kCPU;
  std::vector<Group> groups;  // by dimension: the group of the line that contains the rank
};

// The ranks of a job as a grid, with a group for each line of it: torch.distributed's DeviceMesh.
//
//   // The lines of "tp" are the ranks 0, 1 and 2, 3; the lines of "dp" are 0, 2 and 1, 3.
//   DeviceMesh mesh(ctx, {2, 2}, {"dp", "tp"});
//   mesh.group("tp").allreduce(x)->wait();
//
// A value type: copies share the mesh. Use it on its rank's fibers, while its RankContext lives. Ranks of the world
// outside of the mesh construct a DeviceMesh too. On these ranks its groups are empty, and there is no coordinate.
//
// The constructor makes the groups, so every rank of the world must call it, with the same arguments and in the same
// order relative to other groups. The constructor and flatten() wait for other ranks if RankContext::new_group() does;
// nothing else here waits. Errors: c10::ValueError for arguments that make no sense, also for unknown names of a slice;
// c10::IndexError for any other unknown dimension. In a captured function, it is an error to make a mesh, or to call a
// flatten() that has to make groups.
class DeviceMesh {
 public:
  // `sizes`: one per dimension. `names`: one per dimension, or none at all.
  DeviceMesh(RankContext& context, std::vector<std::int64_t> sizes, std::vector<std::string> names = {},
             DeviceMeshOptions options = {});
  DeviceMesh(const DeviceMesh&) = default;
  DeviceMesh& operator=(const DeviceMesh&) = default;
  ~DeviceMesh() = default;

  std::int64_t ndim() const;
  std::int64_t size() const;  // number of ranks in the mesh
  std::int64_t size(const MeshDimension& dimension) const;
  const std::vector<std::int64_t>& sizes() const;
  const std::vector<std::string>& names() const;
  c10::DeviceType device_type() const;

  // The ranks of the world in the mesh, in row-major order. For a slice: the ranks of the slice that contains the
  // calling rank; on a rank outside of the mesh, the ranks of the first slice.
  const std::vector<int>& ranks() const;
  // The calling rank in the world.
  int rank() const;
  bool has_this_rank() const;
  // The calling rank's position in the mesh; nullopt on a rank outside.
  std::optional<std::vector<std::int64_t>> coordinate() const;
  // The calling rank's position along a dimension, which may be omitted if there is only one. Throws std::logic_error
  // on a rank outside.
  std::int64_t local_rank() const;
  std::int64_t local_rank(const MeshDimension& dimension) const;
  // The group of the line that contains the calling rank, along a dimension. Empty on a rank outside.
  const Group& group() const;
  const Group& group(const MeshDimension& dimension) const;

  // The mesh of some dimensions, named in the order of this mesh: mesh["tp"], mesh[{"dp", "tp"}]. The whole mesh also
  // has its flattened dimensions, one at a time. Makes no groups.
  DeviceMesh operator[](std::string_view name) const;
  DeviceMesh operator[](std::initializer_list<std::string_view> names) const;
  DeviceMesh slice(const std::vector<std::string>& names) const;

  // The ranks of this mesh or slice as one dimension with its own group: mesh[{"dp", "cp"}].flatten("dp_cp"). If the
  // name is empty, the dimension gets the dimension names joined by "_" as its name. Every rank of the world must call
  // it, like the constructor. A repeated call returns the same groups.
  DeviceMesh flatten(std::string name = {}) const;

  // Equal sizes, names, ranks and kind of device, and the same groups.
  friend bool operator==(const DeviceMesh& a, const DeviceMesh& b) { return a.is_equal(b); }

  // Lets compiled functions take a mesh as an argument and return one.
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

  // Tells a capture that the code uses the state, and returns the state.
  const State& used() const;
  std::size_t index_of(const MeshDimension& dimension) const;
  int only_dimension(const char* call) const;
  MeshFields& fields() const;
  bool is_equal(const DeviceMesh& other) const;

  std::shared_ptr<State> state_;
};

}  // namespace rehearse
