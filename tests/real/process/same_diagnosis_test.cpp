// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/comm/errors.h>
#include <rehearse/exec/observer.h>
#include <rehearse/exec/wait_queue.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/archive/archive.h>
#include <rehearse_internal/comm/described_backend.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/exec/this_rank.h>

#include "process/check/coordinator.h"
#include "process/run_records.h"
#include "random_calls.h"
#include "report/diagnosis/report_builder.h"

// Contract: the matcher of a simulation and the coordinator of a job of processes reach the same verdict, in the same
// words, for the same calls in the same order. The simulation's texts are the reference.
namespace rehearse::real {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Converts a rank's calls on one group into the messages that a process would send to its coordinator.
class Recorder final : public comm::DescribedBackend {
 public:
  Recorder(comm::GroupIdentity group, int rank)
      : DescribedBackend(rank, group.size(), std::chrono::minutes(30)), group_(std::move(group)) {}

  CallMade body(const RandomCall& call) {
    make(call, *this);
    return std::exchange(last_, {});
  }

  const comm::GroupIdentity& identity() const noexcept override { return group_; }
  void name_payload(const at::Tensor& tensor, const std::string& name) override {
    names_[tensor.unsafeGetTensorImpl()] = texts_.payload(name);
  }
  void forget_payload(const c10::TensorImpl*) noexcept override {}
  BackendPtr companion(const std::string&) override { return nullptr; }
  void extend_timeout_once(std::chrono::milliseconds) override {}

 private:
  WorkPtr call(const Called& called, Describe describe, c10::function_ref<Replay()>) override {
    comm::Operation call;
    call.type = called.type;
    call.timeout = timeout_of(called);
    describe(call);
    if (call.inputs.size() == 1) {
      const auto name = names_.find(call.inputs[0].unsafeGetTensorImpl());
      if (name != names_.end()) call.payload = name->second;
    }
    names_.clear();
    last_ = {group_.name, comm::is_point_to_point(call.type) ? ++messages_ : ++collectives_, facts_of(call)};
    return nullptr;
  }
  bool is_coalescing() const noexcept override { return false; }

  const comm::GroupIdentity group_;
  CallTexts texts_;
  std::unordered_map<const c10::TensorImpl*, const comm::PayloadName*> names_;
  std::uint64_t collectives_ = 0, messages_ = 0;
  CallMade last_;
};

// A rank's message, and its time.
struct Message {
  FromRank from;
  VirtualTime at;
};

// Processes wait in new_group() until all members are there. Ranks of a simulation need not, so this class makes them
// wait.
class NewGroupArrivals {
 public:
  void wait_in(std::size_t index, const std::vector<int>& members, int rank) {
    auto& arrived = arrivals_[index];
    arrived.here.insert(rank);
    arrived.queue.notify_all();
    const Missing missing(fmt::format("new_group #{}", index), members, arrived.here);
    while (!missing.wait().waits_for.empty()) arrived.queue.wait(missing);
  }

 private:
  struct Arrivals {
    std::set<int> here;
    exec::WaitQueue queue;
  };

  class Missing final : public exec::Observer {
   public:
    Missing(std::string call, const std::vector<int>& members, const std::set<int>& here)
        : call_(std::move(call)), members_(members), here_(here) {}

   private:
    exec::Wait describe() const override {
      exec::Wait wait{call_};
      for (const int rank : members_) {
        if (!here_.contains(rank)) wait.waits_for.push_back(rank);
      }
      return wait;
    }

    const std::string call_;
    const std::vector<int>& members_;
    const std::set<int>& here_;
  };

  std::map<std::size_t, Arrivals> arrivals_;
};

// Runs one rank's part of a program in a simulation, and records the messages that a process would send.
class RecordedRank {
 public:
  RecordedRank(RankContext& ctx, std::vector<Message>& body, NewGroupArrivals& arrivals)
      : ctx_(ctx), told_(body), arrivals_(arrivals) {
    groups_.push_back(ctx.group());
    recorders_.push_back(recorder_of(ctx.group()));
  }

  void run(const std::vector<RandomCall>& calls) {
    try {
      make_all(calls);
      record_message(RankEnded{exec::RankEnd::returned, FailureKind::plain, "", ctx_.now()});
    } catch (const rehearse::MismatchError&) {
      throw;  // no message here and below: a process gets these errors from its coordinator
    } catch (const rehearse::TimeoutError&) {
      throw;
    } catch (const rehearse::RankAborted&) {
      throw;
    } catch (...) {
      record_message(ended_by_exception(false, ctx_.now()));
      throw;
    }
  }

 private:
  void make_all(const std::vector<RandomCall>& calls) {
    for (const auto& call : calls) {
      std::this_thread::sleep_for(std::chrono::microseconds(call.pause));
      if (call.kind == RandomCall::Kind::new_group) {
        make_group(call);
      } else {
        make_call(call);
      }
      if (call.waits) wait_for_all();
    }
    wait_for_all();
  }

  static comm::DescribedBackend& backend_of(const Group& group) {
    return dynamic_cast<comm::DescribedBackend&>(*group->getDefaultBackend());
  }

  static std::unique_ptr<Recorder> recorder_of(const Group& group) {
    return group ? std::make_unique<Recorder>(backend_of(group).identity(), group.rank()) : nullptr;
  }

  void record_message(RankMessage body) { told_.push_back({{ctx_.rank(), std::move(body)}, ctx_.now()}); }

  // The coordinator assumes that a rank waits in its oldest call. So no older call may be in flight here.
  void make_group(const RandomCall& call) {
    wait_for_all();
    const auto index = groups_.size();
    const auto name = call.name.empty() ? fmt::format("group{}", index) : call.name;
    record_message(GroupMade{"new_group", index, call.name, name, name, call.members});
    groups_.push_back(ctx_.new_group(call.members, call.name));
    recorders_.push_back(recorder_of(groups_.back()));
    if (groups_.back()) arrivals_.wait_in(index, call.members, ctx_.rank());
  }

  void make_call(const RandomCall& call) {
    const auto index = static_cast<std::size_t>(call.group);
    if (index >= groups_.size() || !groups_[index]) return;
    const auto& group = groups_[index];
    const bool is_message = call.kind == RandomCall::Kind::send || call.kind == RandomCall::Kind::recv;
    if (is_message && call.peer % group.size() == group.rank()) return;
    record_message(recorders_[index]->body(call));
    works_.push_back(make(call, backend_of(group)));
  }

  void wait_for_all() {
    for (const auto& work : std::exchange(works_, {})) work->wait();
  }

  RankContext& ctx_;
  std::vector<Message>& told_;
  NewGroupArrivals& arrivals_;
  std::vector<Group> groups_;
  std::vector<std::unique_ptr<Recorder>> recorders_;
  std::vector<Work> works_;
};

// Always takes the first candidate. So the ranks' pauses decide when ranks run, and a receive takes the oldest message.
class FirstChoice final : public Oracle {
  std::uint32_t choose(ChoiceKind, std::span<const std::uint32_t>, std::span<const std::uint32_t>) override {
    return 0;
  }
};

struct Simulated {
  Report report;
  std::vector<Message> body;
};

Simulated simulate(const RandomProgram& program) {
  Simulated simulated;
  NewGroupArrivals arrivals;
  FirstChoice oracle;
  World world({.ranks = program.ranks, .explain_failures = false, .explain_remarks = false});
  world.use_oracle(oracle);
  simulated.report = world.run([&](RankContext& ctx) {
    RecordedRank(ctx, simulated.body, arrivals).run(program.calls[static_cast<std::size_t>(ctx.rank())]);
  });
  return simulated;
}

// A coordinator that gets the ranks' messages. Ranks go on until they have sent all their messages, and then wait for
// the coordinator's outcome.
class CoordinatedJob {
 public:
  explicit CoordinatedJob(int ranks)
      : ended_(static_cast<std::size_t>(ranks)), coordinator_(ranks, 10s, [this](int, const ToRank& message) {
          if (const auto* const over = std::get_if<Over>(&message)) job_outcome_ = over->job_outcome;
          stops_ = stops_ || std::holds_alternative<Stop>(message);
        }) {
    std::vector<int> all;
    for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
    coordinator_.check_deadlines(now_);
    for (const int rank : all) receive({rank, GroupMade{"new_group", 0, "world", "world", "world", all}});
  }

  JobOutcome outcome_of(const std::vector<Message>& body) {
    for (const auto& [from, at] : body) {
      now_ = at + 1s;
      coordinator_.check_deadlines(now_);
      receive(from);
    }
    for (int seconds = 0; seconds < 60 && !stops_ && !job_outcome_; ++seconds) {
      now_ += 1s;
      receive_from_live_ranks(StillAlive{});
      coordinator_.check_deadlines(now_);
    }
    if (!job_outcome_) receive_from_live_ranks(RankEnded{exec::RankEnd::aborted, FailureKind::plain, "", now_});
    EXPECT_TRUE(job_outcome_.has_value()) << "the coordinator did not decide how the job ended";
    return job_outcome_.value_or(JobOutcome{});
  }

 private:
  // Packs and unpacks the message, as the store does.
  void receive(const FromRank& message) {
    if (std::holds_alternative<RankEnded>(message.body)) ended_[static_cast<std::size_t>(message.rank)] = true;
    coordinator_.receive(archive::unpacked<FromRank>(archive::packed(FromRank(message)), "it"), now_);
  }

  void receive_from_live_ranks(const RankMessage& body) {
    for (int rank = 0; rank < static_cast<int>(ended_.size()); ++rank) {
      if (!ended_[static_cast<std::size_t>(rank)]) receive({rank, body});
    }
  }

  std::vector<bool> ended_;
  std::optional<JobOutcome> job_outcome_;
  bool stops_ = false;
  VirtualTime now_ = VirtualTime{} + 1s;
  Coordinator coordinator_;
};

// Makes the report of a job outcome, as a real run does.
Report report_of(const JobOutcome& job_outcome, int ranks) {
  RunRecord record(comm::EventLogOptions{.ranks = ranks});
  note_outcome(job_outcome, std::nullopt, VirtualTime{} + 1h, record);
  return sim::build_report({.ranks = ranks}, record);
}

// Expects that report and outcome agree about the waits: which rank waits in which call, and for which other ranks.
void expect_the_same_waits(const Report& report, const JobOutcome& job_outcome) {
  for (const auto& blocked : job_outcome.blocked) {
    const auto& line = report.rank_lines[static_cast<std::size_t>(blocked.rank)];
    EXPECT_THAT(line.doing, HasSubstr(blocked.waits_on)) << "rank " << blocked.rank;
    EXPECT_EQ(line.waits_for, blocked.waits_for) << "rank " << blocked.rank << ": " << line.doing;
  }
  for (const auto& failure : job_outcome.failures) {
    const auto& line = report.rank_lines[static_cast<std::size_t>(failure.rank)];
    EXPECT_THAT(line.doing, HasSubstr(failure.gave_up)) << "rank " << failure.rank;
  }
}

// Removes source lines, which only the simulation knows, and names of tensors. If only some ranks give a collective's
// tensor a name, the simulation and the coordinator may show the calls of different ranks.
std::string without_places(const std::string& text) {
  static const std::regex place(R"re((,? from| at) \w+\.cpp:\d+ in [\w:~]+| of "(weights|biases)")re");
  return std::regex_replace(text, place, "");
}

void expect_the_same(const Report& report, const JobOutcome& job_outcome) {
  const auto coordinated = report_of(job_outcome, static_cast<int>(report.rank_lines.size()));
  // The coordinator does not always know that a rank will never come. If it does not know, the job ends with a timeout.
  const bool timed_out = coordinated.verdict == Verdict::timeout;
  ASSERT_EQ(timed_out ? Verdict::deadlock : coordinated.verdict, report.verdict)
      << report.headline << "\nthe coordinator: " << coordinated.headline;
  if (timed_out) return expect_the_same_waits(report, job_outcome);
  if (report.verdict != Verdict::ok) {
    EXPECT_EQ(without_places(coordinated.headline), without_places(report.headline));
  }
}

// Compares programs with these seeds. Returns how often each verdict occurred.
std::map<Verdict, int> compare_programs(std::uint64_t first, std::uint64_t last) {
  std::map<Verdict, int> seen;
  for (auto seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(fmt::format("program {}", seed));
    const auto program = random_program(seed);
    const auto simulated = simulate(program);
    expect_the_same(simulated.report, CoordinatedJob(program.ranks).outcome_of(simulated.body));
    if (::testing::Test::HasFailure()) return seen;
    ++seen[simulated.report.verdict];
  }
  return seen;
}

TEST(SameDiagnosis, OfRandomCalls_HasTheSameWords) {
  const auto seen = compare_programs(1, 10'000);
  for (const auto verdict : {Verdict::ok, Verdict::mismatch, Verdict::deadlock}) {
    ASSERT_TRUE(seen.contains(verdict));
    EXPECT_GT(seen.at(verdict), 100) << to_string(verdict);
  }
}

}  // namespace
}  // namespace rehearse::real
