// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nccl/nccl_api.h"

namespace rehearse::real {

// NCCL for FakeCuda's devices. An NCCL group becomes one piece of work in each of its streams. A piece ends when each
// of its collectives and messages has met its counterparts on the other ranks, and the bytes are moved. A piece also
// ends if the communicator is aborted. Calls that would hang in NCCL also hang here.
class FakeNccl : public NcclApi {
 public:
  FakeNccl();
  ~FakeNccl() override;

  // The history of communicators in order, for example "init 0/2", "split 1", "destroy 0/2", "abort 1/2".
  std::vector<std::string> happened() const;
  int groups_ended() const { return groups_ended_; }

  ncclResult_t get_version(int* version) override;
  const char* get_error_string(ncclResult_t result) override;
  const char* get_last_error(ncclComm_t comm) override;
  ncclResult_t get_unique_id(ncclUniqueId* id) override;
  ncclResult_t comm_init_rank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) override;
  ncclResult_t comm_split(ncclComm_t comm, int color, int key, ncclComm_t* new_comm) override;
  ncclResult_t comm_destroy(ncclComm_t comm) override;
  ncclResult_t comm_abort(ncclComm_t comm) override;
  ncclResult_t comm_get_async_error(ncclComm_t comm, ncclResult_t* error) override;
  ncclResult_t group_start() override;
  ncclResult_t group_end() override;
  ncclResult_t all_reduce(const void* send, void* receive, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                          ncclComm_t comm, cudaStream_t stream) override;
  ncclResult_t broadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type, int root,
                         ncclComm_t comm, cudaStream_t stream) override;
  ncclResult_t reduce(const void* send, void* receive, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                      ncclComm_t comm, cudaStream_t stream) override;
  ncclResult_t all_gather(const void* send, void* receive, std::size_t send_count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) override;
  ncclResult_t reduce_scatter(const void* send, void* receive, std::size_t receive_count, ncclDataType_t type,
                              ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) override;
  ncclResult_t send(const void* send, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                    cudaStream_t stream) override;
  ncclResult_t recv(void* receive, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                    cudaStream_t stream) override;
  ncclResult_t red_op_create_pre_mul_sum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                         ncclScalarResidence_t residence, ncclComm_t comm) override;
  ncclResult_t red_op_destroy(ncclRedOp_t op, ncclComm_t comm) override;

 private:
  struct Clique;  // the communicators of one process group
  struct Comm;
  struct Match;  // one collective, or a send and its receive
  struct Part;
  struct Call;

  void launch();
  static Comm& of(ncclComm_t comm) { return *reinterpret_cast<Comm*>(comm); }
  ncclComm_t make(const std::shared_ptr<Clique>& clique, int rank);
  ncclResult_t add(Part part, ncclComm_t comm, cudaStream_t stream, const std::string& match);
  void note(const char* what, const Comm& comm);

  mutable std::mutex mutex_;  // communicators are made and aborted on threads of their own
  std::vector<std::unique_ptr<Comm>> comms_;
  std::map<std::string, std::shared_ptr<Clique>> cliques_;
  std::vector<std::string> happened_;
  std::vector<Call> group_;        // the calls of the open group
  std::map<int, double> factors_;  // of the reductions created so far
  int depth_ = 0;
  int groups_ended_ = 0;
  int ids_ = 0;
  int next_op_ = 100;
};

}  // namespace rehearse::real
