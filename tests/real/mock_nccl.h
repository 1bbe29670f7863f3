// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gmock/gmock.h>

#include "fake_nccl.h"

namespace rehearse::real {

// FakeNccl, in which a test can make the mocked calls below fail.
class MockNccl : public FakeNccl {
 public:
  MockNccl() {
    using ::testing::Invoke;
    ON_CALL(*this, get_last_error).WillByDefault([this](ncclComm_t comm) { return FakeNccl::get_last_error(comm); });
    ON_CALL(*this, get_unique_id).WillByDefault([this](ncclUniqueId* id) { return FakeNccl::get_unique_id(id); });
    ON_CALL(*this, comm_init_rank).WillByDefault([this](ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
      return FakeNccl::comm_init_rank(comm, ranks, id, rank);
    });
    ON_CALL(*this, comm_split).WillByDefault([this](ncclComm_t comm, int color, int key, ncclComm_t* made) {
      return FakeNccl::comm_split(comm, color, key, made);
    });
    ON_CALL(*this, comm_abort).WillByDefault([this](ncclComm_t comm) { return FakeNccl::comm_abort(comm); });
    ON_CALL(*this, comm_get_async_error).WillByDefault([this](ncclComm_t comm, ncclResult_t* error) {
      return FakeNccl::comm_get_async_error(comm, error);
    });
    ON_CALL(*this, group_start).WillByDefault([this] { return FakeNccl::group_start(); });
    ON_CALL(*this, group_end).WillByDefault([this] { return FakeNccl::group_end(); });
    ON_CALL(*this, all_reduce)
        .WillByDefault([this](const void* send, void* receive, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                              ncclComm_t comm, cudaStream_t stream) {
          return FakeNccl::all_reduce(send, receive, count, type, op, comm, stream);
        });
  }

  MOCK_METHOD(ncclResult_t, get_version, (int* version), (override));
  MOCK_METHOD(const char*, get_last_error, (ncclComm_t comm), (override));
  MOCK_METHOD(ncclResult_t, get_unique_id, (ncclUniqueId * id), (override));
  MOCK_METHOD(ncclResult_t, comm_init_rank, (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank), (override));
  MOCK_METHOD(ncclResult_t, comm_split, (ncclComm_t comm, int color, int key, ncclComm_t* made), (override));
  MOCK_METHOD(ncclResult_t, comm_abort, (ncclComm_t comm), (override));
  MOCK_METHOD(ncclResult_t, comm_get_async_error, (ncclComm_t comm, ncclResult_t* error), (override));
  MOCK_METHOD(ncclResult_t, group_start, (), (override));
  MOCK_METHOD(ncclResult_t, group_end, (), (override));
  MOCK_METHOD(ncclResult_t, all_reduce,
              (const void* send, void* receive, std::size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
               cudaStream_t stream),
              (override));
};

}  // namespace rehearse::real
