// SPDX-License-Identifier: BSD-3-Clause
// Contract: if anything fails in NCCL or on a device, every rank of the group gets the error, with the call's name and
// NCCL's text. The group's communicators are aborted, and later calls are refused. Nothing hangs.
#include <algorithm>
#include <chrono>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "fabric/group_comms.h"
#include "nccl/nccl_error.h"
#include "nccl/nccl_library.h"
#include "real_world.h"

namespace rehearse::real {
namespace {

using comm::ProcessGroup;
using exec::this_rank::sleep_for;
using testing::Each;
using testing::HasSubstr;
using testing::Return;
using testing::StartsWith;

class Failures : public RealWorld {
 protected:
  // The text that wait() throws on each of two ranks; empty if it returned.
  std::vector<std::string> texts_of_allreduce() {
    std::vector<std::string> texts(2);
    const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
      try {
        comm::allreduce(group, on_device(at::ones({2}), rank))->wait();
      } catch (const CommError& error) {
        texts[static_cast<std::size_t>(rank)] = error.what();
      }
      EXPECT_EQ(group->getDefaultBackend()->getError(),
                texts[0].empty() ? c10d::ErrorType::SUCCESS : c10d::ErrorType::COMM_ERROR);
    });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
    EXPECT_TRUE(pending.empty());
    return texts;
  }

  // Aborts run on threads of their own.
  int aborts_in_the_end() const {
    const auto aborts = [this] {
      const auto all = nccl->happened();
      return std::count_if(all.begin(), all.end(), [](const auto& each) { return each.starts_with("abort"); });
    };
    for (int naps = 0; naps < 10'000 && aborts() < 2; ++naps) std::this_thread::sleep_for(kTick);
    return static_cast<int>(aborts());
  }
};

TEST(NcclName, HasTheVersionOfTheLibrary) {
  testing::NiceMock<MockNccl> nccl;
  const auto body = [&](int version, ncclResult_t result = ncclSuccess) {
    EXPECT_CALL(nccl, get_version).WillOnce(testing::DoAll(testing::SetArgPointee<0>(version), Return(result)));
    return name_of(nccl);
  };
  EXPECT_EQ(body(22809), "NCCL 2.28.9");
  EXPECT_EQ(body(21805), "NCCL 2.18.5");
  EXPECT_EQ(body(0), "NCCL");
  EXPECT_EQ(body(22809, ncclSystemError), "NCCL");
}

class EachResult : public Failures, public ::testing::WithParamInterface<ncclResult_t> {};

TEST_P(EachResult, OfACollective_IsThrownByWaitWithItsNumber) {
  EXPECT_CALL(*nccl, all_reduce).WillRepeatedly(Return(GetParam()));
  EXPECT_CALL(*nccl, get_last_error).WillRepeatedly(Return("the last thing"));
  EXPECT_THAT(texts_of_allreduce(), Each(StartsWith("allreduce #1 on group \"world\": ncclAllReduce failed: ")));
  EXPECT_EQ(aborts_in_the_end(), 2);
}

TEST_P(EachResult, OfAGroup_IsThrownByWait) {
  EXPECT_CALL(*nccl, group_end).WillOnce([this] { return nccl->FakeNccl::group_end(); }).WillOnce([this] {
    nccl->FakeNccl::group_end();
    return GetParam();
  });
  const auto number = fmt::format("({})", static_cast<int>(GetParam()));
  const auto texts = texts_of_allreduce();
  EXPECT_THAT(texts, Each(HasSubstr("ncclGroupEnd failed: ")));
  EXPECT_THAT(texts, Each(HasSubstr(number)));
}

TEST_P(EachResult, OfTheFirstUse_IsThrownByWait) {
  EXPECT_CALL(*nccl, comm_init_rank).WillRepeatedly(Return(GetParam()));
  EXPECT_THAT(texts_of_allreduce(), Each(HasSubstr("ncclCommInitRank failed: ")));
}

TEST_P(EachResult, OfTheIdOfAGroup_IsThrownByWait) {
  EXPECT_CALL(*nccl, get_unique_id).WillRepeatedly(Return(GetParam()));
  EXPECT_THAT(texts_of_allreduce(), Each(HasSubstr("ncclGetUniqueId failed: ")));
}

INSTANTIATE_TEST_SUITE_P(Nccl, EachResult,
                         ::testing::Values(ncclUnhandledCudaError, ncclSystemError, ncclInternalError,
                                           ncclInvalidArgument, ncclInvalidUsage, ncclRemoteError),
                         [](const auto& info) { return fmt::format("Result{}", static_cast<int>(info.param)); });

TEST_F(Failures, Text_HasNumberLastErrorAndAdvice) {
  EXPECT_CALL(*nccl, get_last_error).WillRepeatedly(Return("no space left"));
  EXPECT_EQ(describe_failure(*nccl, "ncclSend", ncclSystemError, nullptr),
            "ncclSend failed: unhandled system error (2): no space left; a system call failed: shared memory "
            "(/dev/shm), a socket, or a limit (ulimit -l)");
}

TEST_F(Failures, InitialisationWithoutEnd_TimesOut) {
  devices.init_limit = std::chrono::milliseconds(20);
  EXPECT_CALL(*nccl, comm_init_rank).WillRepeatedly([](auto...) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return ncclSuccess;
  });
  EXPECT_THAT(texts_of_allreduce(), Each(HasSubstr("the communicators of group \"world\" were not made within 20 ms")));
}

// NCCL still splits the parent's communicators after the limit, so they must live until it has ended.
TEST_F(Failures, SplitWithoutEnd_KeepsTheParentsCommunicators) {
  const comm::GroupIdentity world{.id = 0, .name = "world", .ranks = {0, 1}};
  const comm::GroupIdentity part{.id = 1, .name = "part", .ranks = {0, 1}};
  std::latch may_split(1);
  EXPECT_CALL(*nccl, comm_split).WillRepeatedly([&](auto... arguments) {
    may_split.wait();
    return nccl->FakeNccl::comm_split(arguments...);
  });
  {
    GroupComms parent(nccl, world, {0, 1}, nullptr);
    parent.require(std::chrono::hours(1));
    GroupComms child(nccl, part, {0, 1}, &parent);
    EXPECT_THROW(child.require(std::chrono::milliseconds(5)), CommError);
  }
  const auto destroyed = [this] {
    const auto all = nccl->happened();
    return std::count_if(all.begin(), all.end(), [](const auto& each) { return each.starts_with("destroy"); });
  };
  EXPECT_EQ(destroyed(), 0);
  may_split.count_down();
  for (int naps = 0; naps < 10'000 && destroyed() < 2; ++naps) std::this_thread::sleep_for(kTick);
  EXPECT_EQ(destroyed(), 2);
}

// The call is launched, but device 1 never executes it.
TEST_F(Failures, ErrorBehindTheHostsBack_FailsWhatIsUnderWayAndWhatComes) {
  EXPECT_CALL(*nccl, comm_get_async_error).WillRepeatedly([](ncclComm_t, ncclResult_t* error) {
    *error = ncclRemoteError;
    return ncclSuccess;
  });
  FakeCuda::instance().hung = 1;
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    const auto work = comm::allreduce(group, on_device(at::ones({2}), rank));
    EXPECT_TRUE(work->wait());
    sleep_for(kTick);
    EXPECT_TRUE(work->isCompleted());
    EXPECT_FALSE(work->isSuccess());
    EXPECT_THROW(std::rethrow_exception(work->exception()), CommError);
    EXPECT_THROW(comm::allreduce(group, on_device(at::ones({2}), rank)), CommError);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_EQ(aborts_in_the_end(), 2);
}

TEST_F(Failures, LostDevice_FailsWhatIsUnderWay) {
  FakeCuda::instance().hung = 0;
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    const auto work = comm::allreduce(group, on_device(at::ones({2}), rank));
    EXPECT_TRUE(work->wait());
    if (rank == 0) FakeCuda::instance().lost = "CUDA error: uncorrectable ECC error encountered";
    sleep_for(kTick);
    try {
      std::rethrow_exception(work->exception());
    } catch (const CommError& error) {
      EXPECT_THAT(error.what(), HasSubstr("uncorrectable ECC error"));
    }
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(Failures, DeviceThatHangs_IsATimeoutOfWhatIsUnderWay) {
  communication.timeout = std::chrono::milliseconds(5);
  FakeCuda::instance().hung = 1;
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    const auto work = comm::allreduce(group, on_device(at::ones({2}), rank));
    EXPECT_TRUE(work->wait());
    sleep_for(4 * kTick);
    EXPECT_FALSE(work->isCompleted());
    sleep_for(2 * kTick);
    try {
      std::rethrow_exception(work->exception());
    } catch (const TimeoutError& error) {
      EXPECT_STREQ(error.what(),
                   "allreduce #1 on group \"world\" was launched on all its devices and is not done within 5 ms: a "
                   "device hangs, or is busy with something else");
    }
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_EQ(aborts_in_the_end(), 2);
}

TEST_F(Failures, WorldThatEndsWhileADeviceHangs_AbortsWhatIsUnderWay) {
  devices.end_limit = std::chrono::milliseconds(5);
  FakeCuda::instance().hung = 1;
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    EXPECT_TRUE(comm::allreduce(group, on_device(at::ones({2}), rank))->wait());
    if (rank == 0) throw std::runtime_error("the dataset is empty");
    sleep_for(kTick);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::rank_failed);
  EXPECT_EQ(aborts_in_the_end(), 2);
}

// The ranks wait once for all calls together, however many there are.
TEST_F(Failures, ManyCallsUnderWay_AreWaitedForTogether) {
  devices.end_limit = std::chrono::milliseconds(200);
  FakeCuda::instance().hung = 1;
  const auto began = std::chrono::steady_clock::now();
  run(2, [&](int rank, const ProcessGroup& group) {
    for (int i = 0; i < 50; ++i) {
      const auto tensor = on_device(at::ones({2}), rank);
      EXPECT_TRUE(comm::allreduce(group, tensor)->wait());
    }
    if (rank == 0) throw std::runtime_error("the dataset is empty");
    sleep_for(kTick);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - began, 25 * devices.end_limit);
  EXPECT_EQ(aborts_in_the_end(), 2);
}

TEST_F(Failures, TwoRanksOnOneDevice_AreRefusedByName) {
  devices.devices = {0, 0};
  std::string text;
  run(2, [&](int, const ProcessGroup& group) {
    try {
      comm::allreduce(group, on_device(at::ones({2}), 0))->wait();
    } catch (const CommError& error) {
      text = error.what();
    }
  });
  EXPECT_THAT(text, HasSubstr("rank 1 of group \"world\" shares device 0 with another rank"));
}

TEST(NcclLibrary, ThatIsNotThere_IsNamedWithARemedy) {
  try {
    open_nccl("libnccl_of_nobody.so.2");
    FAIL() << "nothing was thrown";
  } catch (const LibraryError& error) {
    EXPECT_THAT(error.what(), StartsWith("libnccl_of_nobody.so.2 cannot be opened: "));
    EXPECT_THAT(error.what(), HasSubstr("pip install nvidia-nccl-cu13"));
  }
}

TEST(NcclLibrary, ThatIsAnother_IsRefusedByTheFunctionThatItLacks) {
  try {
    open_nccl("libm.so.6");
    FAIL() << "nothing was thrown";
  } catch (const LibraryError& error) {
    EXPECT_STREQ(error.what(), "libm.so.6 has no function ncclGetVersion; the real mode needs NCCL 2.18 or later");
  }
}

}  // namespace
}  // namespace rehearse::real
