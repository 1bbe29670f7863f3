// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/parallel/device_mesh.h>
#include <rehearse/parallel/fsdp_session.h>

namespace rehearse::parallel {
namespace {

void require_usable_mesh(const DeviceMesh& mesh) {
  TORCH_CHECK_VALUE(mesh.ndim() == 1 || mesh.ndim() == 2, "FullyShardedDataParallel was given a mesh of ", mesh.ndim(),
                    " dimensions; it takes one, for shards, or two, for replicas and shards. Slice it by names");
  TORCH_CHECK_VALUE(mesh.has_this_rank(), "FullyShardedDataParallel was given a mesh in which rank ", mesh.rank(),
                    " of the world is not. Make it on the mesh's ranks alone");
}

}  // namespace

c10::intrusive_ptr<c10d::ProcessGroup> shards_of(const DeviceMesh& mesh) {
  require_usable_mesh(mesh);
  return mesh.group(static_cast<int>(mesh.ndim()) - 1).get();
}

c10::intrusive_ptr<c10d::ProcessGroup> replicas_of(const DeviceMesh& mesh) {
  require_usable_mesh(mesh);
  return mesh.ndim() == 2 ? mesh.group(0).get() : nullptr;
}

}  // namespace rehearse::parallel
