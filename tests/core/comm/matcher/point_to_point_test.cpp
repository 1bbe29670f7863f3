// SPDX-License-Identifier: BSD-3-Clause
// Contract: sends and receives match by (peer, tag) in order. Sizes and dtypes must agree, except that a fabric may
// accept a message that is shorter than its receive, as Gloo does. Messages that find no match show in the wait-for
// graph.
#include <algorithm>

#include <rehearse_internal/comm/wait_for_graph.h>

#include "core/comm/record/wait_chain.h"
#include "core/comm/test_world.h"

namespace rehearse::comm {
namespace {

using testing::_;
using testing::ElementsAre;

std::string cycle_of(const std::vector<exec::BlockedFiber>& blocked) {
  std::vector<BlockedCall> calls;
  for (const auto& fiber : blocked) calls.push_back({fiber.rank, fiber.call, fiber.waits_for});
  const auto analysis = analyse_waits(calls, {});
  return analysis.cycles.empty() ? "" : chain_text(analysis.cycles.front());
}

// Copies each message, so that its first element shows which send matched which receive.
class PointToPoint : public CommTest {
 protected:
  PointToPoint() {
    ON_CALL(fabric, launch).WillByDefault([this](const Transfer& transfer, Completion& done) {
      EXPECT_EQ(transfer.type, c10d::OpType::SEND);
      const auto& sent = transfer.calls[0]->inputs[0];
      transfer.calls[1]->outputs[0].copy_(sent.view_as(transfer.calls[1]->outputs[0]));
      done.on_complete();
    });
  }
};

TEST_F(PointToPoint, Messages_KeepTheirOrder) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    std::vector<WorkPtr> works;
    std::vector<at::Tensor> tensors;
    for (int i = 0; i < 5; ++i) {
      tensors.push_back(rank == 0 ? at::full({3}, i) : at::zeros({3}, at::kLong));
      works.push_back(rank == 0 ? send(group, tensors.back(), 1) : recv(group, tensors.back(), 0));
    }
    for (int i = 0; i < 5; ++i) {
      works[static_cast<std::size_t>(i)]->wait();
      EXPECT_EQ(tensors[static_cast<std::size_t>(i)][0].item<int>(), i);
    }
    if (rank == 1) {
      EXPECT_EQ(works[0]->sourceRank(), 0);
    }
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(PointToPoint, Tags_PickTheMessage) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 0) {
      const auto first = send(group, at::full({1}, 10), 1, 1), second = send(group, at::full({1}, 20), 1, 2);
      first->wait();
      second->wait();
      return;
    }
    auto tensor = at::zeros({1}, at::kLong);
    recv(group, tensor, 0, 2)->wait();
    EXPECT_EQ(tensor.item<int>(), 20);
    recv(group, tensor, 0, 1)->wait();
    EXPECT_EQ(tensor.item<int>(), 10);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(PointToPoint, Send_CompletesWhenItIsReceived) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 0) {
      const auto work = send(group, at::ones({1}), 1);
      EXPECT_FALSE(work->isCompleted());
      work->wait();
      EXPECT_EQ(exec::this_rank::now(), kTimeZero + std::chrono::seconds(1));
    } else {
      exec::this_rank::sleep_for(std::chrono::seconds(1));
      recv(group, at::ones({1}), 0)->wait();
    }
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

// A send waits for its receive, and both ranks send before they receive.
TEST_F(PointToPoint, SendSendCycle_IsNamed) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    send(group, at::ones({1}), 1 - rank)->wait();
    recv(group, at::ones({1}), 1 - rank)->wait();
  });
  EXPECT_EQ(cycle_of(outcome.hang),
            "rank 0 waits for rank 1 (send #1 to rank 1 on group \"world\") -> "
            "rank 1 waits for rank 0 (send #1 to rank 0 on group \"world\")");
  ASSERT_EQ(outcome.hang.size(), 2u);
  EXPECT_EQ(outcome.hang[0].waits_on, "send #1 to rank 1 on group \"world\" (no receive for it)");
}

TEST_F(PointToPoint, ReceiveFromAnotherRank_IsReportedByBothRanks) {
  const auto outcome = run(3, [](int rank, const ProcessGroup& group) {
    if (rank == 0) send(group, at::ones({1}), 1)->wait();
    if (rank == 1) recv(group, at::ones({1}), 2)->wait();
    if (rank == 2) group->barrier()->wait();
  });
  ASSERT_EQ(outcome.hang.size(), 3u);
  EXPECT_EQ(outcome.hang[0].waits_on,
            "send #1 to rank 1 on group \"world\" (no receive for it; rank 1 receives from rank 2)");
  EXPECT_EQ(outcome.hang[1].waits_on,
            "recv #1 from rank 2 on group \"world\" (nothing has been sent; rank 0 has sent instead)");
  ASSERT_EQ(pending.size(), 3u);
  for (const auto& call : pending) EXPECT_EQ(call.receiver, call.rank == 0 ? "rank 1 receives from rank 2" : "");
}

TEST_F(PointToPoint, BufferedSends_HideTheCycleAndCopyTheData) {
  options.buffered_sends = true;
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    auto mine = at::full({1}, rank), theirs = at::zeros({1}, at::kLong);
    const auto work = send(group, mine, 1 - rank);
    EXPECT_TRUE(work->isCompleted());
    work->wait();
    mine.fill_(-1);
    recv(group, theirs, 1 - rank)->wait();
    EXPECT_EQ(theirs.item<int>(), 1 - rank);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(PointToPoint, UnusedTag_IsHintedAt) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 0) send(group, at::ones({1}), 1, 3)->wait();
    if (rank == 1) recv(group, at::ones({1}), 0, 4)->wait();
  });
  EXPECT_EQ(cycle_of(outcome.hang),
            "rank 0 waits for rank 1 (send #1 to rank 1 with tag 3 on group \"world\") -> "
            "rank 1 waits for rank 0 (recv #1 from rank 0 with tag 4 on group \"world\")");
  ASSERT_EQ(outcome.hang.size(), 2u);
  EXPECT_EQ(outcome.hang[0].waits_on,
            "send #1 to rank 1 with tag 3 on group \"world\" (no receive for it; rank 1 receives with tag 4)");
  EXPECT_EQ(outcome.hang[1].waits_on,
            "recv #1 from rank 0 with tag 4 on group \"world\" (nothing has been sent; rank 0 has sent with tag 3)");
}

// A receive of 6 elements for a send of 4, which NCCL does not accept.
TEST_F(PointToPoint, Size_MustAgree) {
  EXPECT_CALL(fabric, launch).Times(0);
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 0) send(group, at::ones({4}), 1)->wait();
    if (rank == 1) recv(group, at::ones({6}), 0)->wait();
  });
  ASSERT_EQ(outcome.blocked.size(), 1u);
  EXPECT_EQ(outcome.blocked[0].waits_on, "send #1 to rank 1 on group \"world\" (the ranks' calls do not match)");
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].kind, Mismatch::Kind::point_to_point);
  EXPECT_EQ(mismatches[0].first.fingerprint, "send(float32[4], cpu) to rank 1");
  EXPECT_EQ(mismatches[0].second.fingerprint, "recv(float32[6], cpu) from rank 0");
  EXPECT_EQ(mismatches[0].fields, (std::vector<Mismatch::Field>{{"elements", "4", "6"}}));
}

// A receive of 6 elements for a send of 4, which Gloo accepts.
TEST_F(PointToPoint, ShorterMessage_FitsWhereTheFabricTakesIt) {
  ON_CALL(fabric, takes_shorter_messages).WillByDefault(testing::Return(true));
  ON_CALL(fabric, launch).WillByDefault([](const Transfer&, Completion& done) { done.on_complete(); });
  std::vector<ShortMessages> messages;
  const auto outcome = run(3, [&](int rank, const ProcessGroup& group) {
    for (int step = 0; step < 2; ++step) {
      if (rank == 0) send(group, at::ones({4}), 2)->wait();
      if (rank == 2) recv(group, at::ones({6}), 0)->wait();
    }
    if (rank == 2) messages = communicators->short_messages();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].call, "recv #1 from rank 0 on group \"world\"");
  EXPECT_EQ(messages[0].elements, 6);
  EXPECT_EQ(messages[0].received, 4);
  EXPECT_EQ(messages[0].ranks, std::vector<int>{2});
  EXPECT_EQ(messages[0].times, 2u);
}

// A receive of 4 elements for a send of 6. Even Gloo would close the connection.
TEST_F(PointToPoint, LongerMessage_FitsNowhere) {
  ON_CALL(fabric, takes_shorter_messages).WillByDefault(testing::Return(true));
  run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 0) send(group, at::ones({6}), 1)->wait();
    if (rank == 1) recv(group, at::ones({4}), 0)->wait();
  });
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].fields, (std::vector<Mismatch::Field>{{"elements", "6", "4"}}));
}

TEST_F(PointToPoint, Dtype_MustAgreeInAnyOrder) {
  run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 0) recv(group, at::ones({2}), 1)->wait();
    if (rank == 1) send(group, at::ones({2}, at::kLong), 0, 0)->wait();
  });
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].first.rank, 0);
  EXPECT_EQ(mismatches[0].fields, (std::vector<Mismatch::Field>{{"dtype", "float32", "int64"}}));
  EXPECT_EQ(to_string(mismatches[0]),
            "ranks 0 and 1 disagree on group \"world\": rank 0 called recv(float32[2], cpu) from rank 1, rank 1 called "
            "send(int64[2], cpu) to rank 0; they differ in dtype (float32, int64)");
}

TEST_F(PointToPoint, EqualCountsOfOtherShape_Agree) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 0) send(group, at::ones({2, 3}), 1)->wait();
    if (rank == 1) recv(group, at::ones({6}), 0)->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

// Ranks 1, 2 and 3 have sent when rank 0 receives from any rank. The oracle chooses whose message comes first.
TEST_F(PointToPoint, ReceiveFromAny_AsksTheOracle) {
  std::vector<std::vector<std::uint32_t>> asked;
  ON_CALL(oracle, choose(ChoiceKind::receive_any_source, _, _))
      .WillByDefault([&asked](ChoiceKind, std::span<const std::uint32_t> sources, auto) {
        asked.emplace_back(sources.begin(), sources.end());
        return static_cast<std::uint32_t>(sources.size() - 1);
      });
  std::vector<int> received;
  const auto outcome = run(4, [&](int rank, const ProcessGroup& group) {
    if (rank != 0) {
      const auto noise = send(group, at::full({1}, -1), 0, 9);
      send(group, at::full({1}, rank), 0)->wait();
      noise->wait();
      return;
    }
    exec::this_rank::yield();
    for (int i = 0; i < 3; ++i) {
      auto tensor = at::zeros({1}, at::kLong);
      const auto work = recv_any(group, tensor);
      work->wait();
      received.push_back(work->sourceRank());
      EXPECT_EQ(tensor.item<int>(), work->sourceRank());
    }
    for (int i = 1; i < 4; ++i) recv(group, at::zeros({1}, at::kLong), i, 9)->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_THAT(received, ElementsAre(3, 2, 1));
  EXPECT_THAT(asked, ElementsAre(ElementsAre(1, 2, 3), ElementsAre(1, 2)));
}

TEST_F(PointToPoint, ReceiveFromAny_WaitsForAllOthers) {
  const auto outcome = run(3, [](int rank, const ProcessGroup& group) {
    if (rank == 1) recv_any(group, at::zeros({1}), 2)->wait();
  });
  ASSERT_EQ(outcome.hang.size(), 1u);
  EXPECT_EQ(outcome.hang[0].waits_on, "recv_any_source #1 with tag 2 on group \"world\" (nothing has been sent)");
  EXPECT_THAT(outcome.hang[0].waits_for, ElementsAre(0, 2));
}

// If the oracle fails, the world fails, but no rank does, and run() throws the oracle's exception. A program that
// swallows this exception stops at its next switch.
TEST_F(PointToPoint, OracleFailsInReceiveFromAny_ComesOutOfRun) {
  for (const bool swallowed : {false, true}) {
    bool went_on = false;
    ON_CALL(oracle, choose(ChoiceKind::receive_any_source, _, _))
        .WillByDefault(testing::Throw(std::out_of_range("no such decision")));
    const auto body = [&](int rank, const ProcessGroup& group) {
      if (rank > 0) {
        send(group, at::ones({1}), 0)->wait();
        return;
      }
      exec::this_rank::yield();
      exec::this_rank::yield();
      try {
        recv_any(group, at::zeros({1}));
        ADD_FAILURE() << "there was an answer";
      } catch (const std::out_of_range&) {
        if (!swallowed) throw;
      }
      exec::this_rank::yield();
      went_on = true;
    };
    try {
      run(3, body);
      ADD_FAILURE() << "run() returned";
    } catch (const std::out_of_range& error) {
      EXPECT_STREQ(error.what(), "no such decision");
    }
    EXPECT_FALSE(went_on);
  }
}

TEST_F(PointToPoint, ReceivesAndCollectives_CountApart) {
  const auto outcome = run(2, [this](int rank, const ProcessGroup& group) {
    ON_CALL(fabric, launch).WillByDefault([](const Transfer&, Completion& done) { done.on_complete(); });
    if (rank == 0) send(group, at::ones({1}), 1);
    const auto work = allreduce(group, at::ones({1}));
    EXPECT_EQ(work->getSequencenumber(), 1u);
    work->wait();
    if (rank == 1) {
      EXPECT_EQ(recv(group, at::ones({1}), 0)->getSequencenumber(), 1u);
    }
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

}  // namespace
}  // namespace rehearse::comm
