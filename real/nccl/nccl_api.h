// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <nccl.h>

namespace rehearse::real {

// The part of NCCL that ranks of one process need, with NCCL's own names, arguments and codes. NcclApi is an interface
// so that tests can produce every failure without a GPU.
//
// Blocking: comm_init_rank() and comm_split() (within a group, at group_end()), and comm_destroy(). comm_abort() may
// block for as long as the device is busy.
// Threads: as in NCCL, one thread must make all calls between group_start() and group_end(). Any thread may call
// comm_abort().
class NcclApi {
 public:
  virtual ~NcclApi() = default;

  virtual ncclResult_t get_version(int* version) = 0;
  virtual const char* get_error_string(ncclResult_t result) = 0;
  virtual const char* get_last_error(ncclComm_t comm) = 0;

  virtual ncclResult_t get_unique_id(ncclUniqueId* id) = 0;
  virtual ncclResult_t comm_init_rank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) = 0;
  virtual ncclResult_t comm_split(ncclComm_t comm, int color, int key, ncclComm_t* new_comm) = 0;
  virtual ncclResult_t comm_destroy(ncclComm_t comm) = 0;
  virtual ncclResult_t comm_abort(ncclComm_t comm) = 0;
  virtual ncclResult_t comm_get_async_error(ncclComm_t comm, ncclResult_t* error) = 0;

  virtual ncclResult_t group_start() = 0;
  virtual ncclResult_t group_end() = 0;

  virtual ncclResult_t all_reduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) = 0;
  virtual ncclResult_t broadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type, int root,
                                 ncclComm_t comm, cudaStream_t stream) = 0;
  virtual ncclResult_t reduce(const void* send, void* receive, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                              int root, ncclComm_t comm, cudaStream_t stream) = 0;
  virtual ncclResult_t all_gather(const void* send, void* receive, std::size_t send_count, ncclDataType_t type,
                                  ncclComm_t comm, cudaStream_t stream) = 0;
  virtual ncclResult_t reduce_scatter(const void* send, void* receive, std::size_t receive_count, ncclDataType_t type,
                                      ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) = 0;
  virtual ncclResult_t send(const void* send, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                            cudaStream_t stream) = 0;
  virtual ncclResult_t recv(void* receive, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                            cudaStream_t stream) = 0;

  virtual ncclResult_t red_op_create_pre_mul_sum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                                 ncclScalarResidence_t residence, ncclComm_t comm) = 0;
  virtual ncclResult_t red_op_destroy(ncclRedOp_t op, ncclComm_t comm) = 0;
};

}  // namespace rehearse::real
