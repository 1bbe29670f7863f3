// SPDX-License-Identifier: BSD-3-Clause
// Jobs in which something goes wrong, or nearly. In most of them, the last rank behaves differently from the others.
#include <chrono>
#include <csignal>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse/compile/compile.h>

#include "launched_job.h"

namespace rehearse::test {
namespace {

bool is_odd_one(const RankContext& context) { return context.rank() == context.size() - 1; }

void sum(const RankContext& context, at::IntArrayRef sizes = {2}, at::ScalarType dtype = at::kFloat,
         c10d::ReduceOp op = c10d::ReduceOp::SUM) {
  context.group().allreduce(at::ones(sizes, dtype), std::move(op))->wait();
}

void shape(RankContext& context, Tensors&) {
  sum(context);
  sum(context, {is_odd_one(context) ? 3 : 2});
}

void dtype(RankContext& context, Tensors&) { sum(context, {2}, is_odd_one(context) ? at::kDouble : at::kFloat); }

void reduce_op(RankContext& context, Tensors&) {
  sum(context, {2}, at::kFloat, is_odd_one(context) ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM);
}

void root(RankContext& context, Tensors&) {
  context.group().broadcast(at::ones({2}), is_odd_one(context) ? 1 : 0)->wait();
}

void order(RankContext& context, Tensors&) {
  if (is_odd_one(context)) context.group().barrier()->wait();
  sum(context);
  if (!is_odd_one(context)) context.group().barrier()->wait();
}

void message_length(RankContext& context, Tensors&) {
  if (context.rank() == 0) context.group().send(at::ones({3}), 1)->wait();
  if (context.rank() == 1) context.group().recv(at::ones({2}), 0)->wait();
}

void shorter_message(RankContext& context, Tensors&) {
  auto tensor = at::full({3}, static_cast<float>(context.rank()));
  for (int step = 0; step < 2; ++step) {
    if (context.rank() == 0) context.group().send(tensor.narrow(0, 0, 2), 1)->wait();
    if (context.rank() == 1) context.group().recv(tensor, 0)->wait();
  }
  context.expect(tensor[1].item<float>() == 0 && tensor[2].item<float>() == static_cast<float>(context.rank()),
                 "the rest of the tensor stays");
}

void labels(RankContext& context, Tensors&) {
  const auto label = context.label(is_odd_one(context) ? "two" : "one");
  sum(context);
}

void labels_of_a_thread(RankContext& context, Tensors& tensors) {
  std::exception_ptr error;
  std::thread([&] {
    try {
      labels(context, tensors);
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

void new_group(RankContext& context, Tensors&) {
  context.new_group(is_odd_one(context) ? std::vector<int>{0} : std::vector<int>{0, 1}, "pair");
}

void missing(RankContext& context, Tensors&) {
  sum(context);
  if (!is_odd_one(context)) sum(context);
}

void monitored(RankContext& context, Tensors&) {
  if (!is_odd_one(context)) context.group()->monitoredBarrier({}, false);
}

// The error of the rank's monitoredBarrier(); empty if it passes. `missing`: the ranks that a TimeoutError names.
std::string error_of_barrier(const RankContext& context, std::chrono::milliseconds timeout, bool wait_all_ranks,
                             std::vector<int>* missing = nullptr) {
  c10d::BarrierOptions options;
  options.timeout = timeout;
  try {
    context.group()->monitoredBarrier(options, wait_all_ranks);
    return "";
  } catch (const TimeoutError& error) {
    if (missing != nullptr) *missing = error.ranks();
    return error.what_without_backtrace();
  } catch (const CommError& error) {
    return error.what_without_backtrace();
  }
}

void expect_text(RankContext& context, const std::string& found, const std::string& wanted) {
  context.expect(found == wanted, "what the barrier throws", fmt::format("{} and not {}", found, wanted));
}

std::string left_by_rank_0(int rank) {
  return fmt::format(
      "Rank {} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. "
      "Please check rank 0 logs for faulty rank.",
      rank);
}

// Ranks from `first_late` on arrive after rank 0 has given the barrier up. The others must come within `timeout`.
void barrier_with_late_ranks(RankContext& context, int first_late, bool wait_all_ranks,
                             std::chrono::milliseconds timeout, const std::string& text) {
  const auto key = fmt::format("given up {} {}", first_late, wait_all_ranks);
  if (context.rank() >= first_late) context.store()->wait({key});
  std::vector<int> missing;
  const auto error = error_of_barrier(context, timeout, wait_all_ranks, &missing);
  if (context.rank() != 0) return expect_text(context, error, left_by_rank_0(context.rank()));
  context.store()->set(key, "so it is");
  expect_text(context, error, text);
  std::vector<int> late;
  for (int rank = first_late; rank < context.size(); ++rank) late.push_back(rank);
  context.expect(missing == late, "the error has all that are missing");
}

// Needs three ranks. The group still works after each barrier. Rank 1 must reach the first barrier within its timeout,
// also on a busy machine. The other barriers fail however long their timeouts are.
void monitored_and_given_up(RankContext& context, Tensors&) {
  using std::chrono::milliseconds;
  sum(context);
  barrier_with_late_ranks(context, 2, false, milliseconds(3000),
                          "[Rank 0]: Rank 2 failed to pass monitoredBarrier in 3000 ms");
  sum(context);
  barrier_with_late_ranks(context, 1, false, milliseconds(300),
                          "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 300 ms");
  barrier_with_late_ranks(context, 1, true, milliseconds(300),
                          "[Rank 0]: Ranks 1, 2 failed to pass monitoredBarrier in 300 ms");
  sum(context);
  expect_text(context, error_of_barrier(context, std::chrono::milliseconds(0), false),
              context.rank() != 0 ? left_by_rank_0(context.rank())
                                  : "Rank 0 timed out in monitoredBarrier after 0 ms.\n"
                                    "No ranks successfully processed in monitoredBarrier.");
  expect_text(context, error_of_barrier(context, std::chrono::milliseconds(0), true), "");
  sum(context);
}

// The timeout is long enough for the other ranks to come, also on a busy machine.
void monitored_and_not_caught(RankContext& context, Tensors&) {
  c10d::BarrierOptions options;
  options.timeout = std::chrono::seconds(2);
  if (is_odd_one(context)) std::this_thread::sleep_for(std::chrono::seconds(4));
  context.group()->monitoredBarrier(options, true);
}

void ring(RankContext& context, Tensors&) {
  context.group().recv(at::ones({2}), (context.rank() + 1) % context.size())->wait();
}

void receive_from_failed(RankContext& context, Tensors&) {
  sum(context);
  if (is_odd_one(context)) throw std::runtime_error("nothing to send");
  context.group().recv(at::ones({2}), context.size() - 1)->wait();
}

void exception(RankContext& context, Tensors&) {
  sum(context);
  if (is_odd_one(context)) throw std::runtime_error("no more data");
  sum(context);
}

void exception_without_text(RankContext& context, Tensors&) {
  if (is_odd_one(context)) throw 42;  // NOLINT: any type may be thrown
  sum(context);
}

void check(RankContext& context, Tensors&) {
  context.expect(!is_odd_one(context), "the loss falls", "it is 3");
  sum(context);
}

void killed(RankContext& context, Tensors&) {
  sum(context);
  if (is_odd_one(context)) raise(SIGKILL);
  sum(context);
}

void first_killed(RankContext& context, Tensors&) {
  sum(context);
  if (context.rank() == 0) raise(SIGKILL);
  sum(context);
}

// The others go on sending to the rank after its process has died. A send announces itself to its receiver at once.
void killed_while_others_send(RankContext& context, Tensors&) {
  sum(context);
  if (is_odd_one(context)) raise(SIGKILL);
  std::vector<c10::intrusive_ptr<c10d::Work>> sends;
  for (int i = 0; i < 2000; ++i) sends.push_back(context.group().send(at::ones({2}), context.size() - 1));
  sends.back()->wait();
}

// The test harness lets the process continue when the others have ended.
void first_stopped(RankContext& context, Tensors&) {
  sum(context);
  if (context.rank() == 0) raise(SIGSTOP);
  sum(context);
}

// Another rank's death ends the world while this rank still computes.
void long_step(RankContext& context, Tensors&) {
  sum(context);
  if (is_odd_one(context)) raise(SIGKILL);
  std::this_thread::sleep_for(std::chrono::minutes(10));
}

// The last rank comes later than the others, but before they give up.
void late(RankContext& context, Tensors& results) {
  auto tensor = at::ones({2});
  if (is_odd_one(context)) std::this_thread::sleep_for(std::chrono::seconds(1));
  context.group().allreduce(tensor)->wait();
  results.push_back(tensor);
}

// The last rank comes, but long after the others have given up.
void too_late(RankContext& context, Tensors&) {
  if (is_odd_one(context)) std::this_thread::sleep_for(std::chrono::seconds(6));
  std::vector<at::Tensor> tensors{at::ones({2})};
  c10d::AllreduceOptions options;
  options.timeout = std::chrono::seconds(3);
  context.group()->allreduce(tensors, options)->wait(std::chrono::minutes(1));
}

// The last rank computes for longer than the check timeout, but not as long as the call's timeout.
void long_computation(RankContext& context, Tensors&) {
  if (is_odd_one(context)) std::this_thread::sleep_for(std::chrono::seconds(5));
  sum(context);
}

// The extension applies to the first call after it. The second call begins while the first is in flight, so the
// extension applies to the second call, too.
void extended(RankContext& context, Tensors&) {
  if (is_odd_one(context)) std::this_thread::sleep_for(std::chrono::seconds(2));
  context.group().extend_timeout_once(std::chrono::seconds(30));
  std::vector<at::Tensor> first{at::ones({2})}, second{at::ones({2})};
  c10d::AllreduceOptions options;
  options.timeout = std::chrono::seconds(1);
  const auto owner = context.group()->allreduce(first, options);
  context.group()->allreduce(second, options)->wait();
  owner->wait();
}

void shrink_that_aborts(RankContext& context, Tensors&) {
  if (is_odd_one(context)) return;
  try {
    context.group().shrink({context.size() - 1}, /*abort=*/true);
    context.expect(false, "nothing is aborted");
  } catch (const c10::ValueError& error) {
    const std::string text = error.what();
    context.expect(text.find("cannot be aborted where ranks are processes") != std::string::npos, text);
  }
}

void backend_in_a_capture(RankContext& context, Tensors&) {
  auto compiled = compile([&](const at::Tensor& x) {
    context.group()->getBackend(c10::kCPU)->barrier()->wait();
    return x + 1;
  });
  compiled(at::ones({2}));
  const auto refusal = compiled.explain().refusal;
  context.expect(refusal.find("an operation of a c10d::Backend") == 0, refusal);
}

}  // namespace

std::vector<Job> faulty_jobs() {
  return {{"shape", shape},
          {"dtype", dtype},
          {"reduce_op", reduce_op},
          {"root", root},
          {"order", order},
          {"message_length", message_length},
          {"shorter_message", shorter_message},
          {"labels", labels},
          {"labels_of_a_thread", labels_of_a_thread},
          {"new_group", new_group},
          {"missing", missing},
          {"monitored", monitored},
          {"monitored_and_given_up", monitored_and_given_up},
          {"monitored_and_not_caught", monitored_and_not_caught},
          {"ring", ring},
          {"receive_from_failed", receive_from_failed},
          {"exception", exception},
          {"exception_without_text", exception_without_text},
          {"check", check},
          {"killed", killed},
          {"first_killed", first_killed},
          {"killed_while_others_send", killed_while_others_send},
          {"first_stopped", first_stopped},
          {"long_step", long_step},
          {"long_computation", long_computation},
          {"late", late},
          {"extended", extended},
          {"shrink_that_aborts", shrink_that_aborts},
          {"backend_in_a_capture", backend_in_a_capture},
          {"too_late", too_late}};
}

}  // namespace rehearse::test
