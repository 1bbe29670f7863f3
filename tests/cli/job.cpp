// SPDX-License-Identifier: BSD-3-Clause
// A user's small executable: programs, linked with rehearse::main.
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <thread>

#include <ATen/ops/full.h>
#include <unistd.h>

#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/this_rank.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using rehearse::Parameters;
using rehearse::RankContext;

REHEARSE_PROGRAM(sum){.summary = "adds the ranks up, and checks the sum",
                      .parameters = {{"steps", std::int64_t{4}, "all-reduces, one after the other", 1, 1000},
                                     {"scale", 1.0, "what each rank's number is multiplied by"},
                                     {"greeting", std::string("hello"), "shown with the progress"},
                                     {"show", true, "show progress"}},
                      .body = [](RankContext& ctx, const Parameters& parameters) {
                        const auto steps = parameters.integer("steps");
                        const double scale = parameters.number("scale");
                        for (std::int64_t step = 1; step <= steps; ++step) {
                          auto value = at::full({1}, scale * ctx.rank(), at::kDouble);
                          ctx.group().allreduce(value)->wait();
                          ctx.expect(value.item<double>() == scale * ctx.size() * (ctx.size() - 1) / 2,
                                     "the sum is right");
                          if (parameters.flag("show")) ctx.progress(step, steps, parameters.text("greeting"));
                        }
                      }};

REHEARSE_PROGRAM(skip){.summary = "rank 1 leaves out one all-reduce", .body = [](RankContext& ctx, const Parameters&) {
                         auto value = at::full({1}, 1.0);
                         ctx.group().allreduce(value)->wait();
                         if (ctx.rank() != 1) ctx.group().allreduce(value)->wait();
                       }};

[[noreturn]] void compute_for_ever() {
  std::cout << "computing" << std::endl;
  for (volatile unsigned value = 0;;) value = value + 1;
}

REHEARSE_PROGRAM(forever){.summary = "all-reduces until somebody stops it",
                          .parameters = {{"compute", false, "rank 2 computes, and never switches"}},
                          .body = [](RankContext& ctx, const Parameters& parameters) {
                            if (ctx.rank() == 2 && parameters.flag("compute")) compute_for_ever();
                            auto value = at::full({1}, 1.0);
                            for (std::int64_t step = 1;; ++step) {
                              ctx.group().allreduce(value)->wait();
                              ctx.progress(step, 0, "");
                            }
                          }};

REHEARSE_PROGRAM(prints){.summary = "each rank prints a line", .body = [](RankContext& ctx, const Parameters&) {
                           std::cout << "rank " << ctx.rank() << " is here" << std::endl;
                         }};

[[noreturn]] void block_for_ever() {
  for (;;) ::pause();
}

REHEARSE_PROGRAM(blocks){.summary = "rank 1 waits in the kernel", .body = [](RankContext& ctx, const Parameters&) {
                           if (ctx.rank() == 1) block_for_ever();
                           ctx.group().barrier()->wait();
                         }};

// The schedule decides which rank is first. Different seeds therefore show different bugs.
REHEARSE_PROGRAM(races){
    .summary = "throws when rank 1 is first, hangs when rank 2 is, dies when rank 3 is and may",
    .parameters = {{"may_die", false, "end the process then"},
                   {"may_compute", false, "rank 2 computes forever, instead of the hang"}},
    .body = [](RankContext& ctx, const Parameters& parameters) {
      const auto place = ctx.store()->add("arrivals", 1);
      if (place == 1 && ctx.rank() == 1)
        throw std::runtime_error("too early by " + std::to_string(ctx.now().time_since_epoch().count()));
      if (place == 1 && ctx.rank() == 2 && parameters.flag("may_compute")) compute_for_ever();
      if (place == 1 && ctx.rank() == 2) return;
      if (place == 1 && ctx.rank() == 3 && parameters.flag("may_die")) {
        std::cerr << "something is null" << std::endl;
        std::raise(SIGSEGV);
      }
      ctx.group().barrier()->wait();
    }};

REHEARSE_PROGRAM(swap){.summary = "rank 1 broadcasts where the others reduce",
                       .body = [](RankContext& ctx, const Parameters&) {
                         auto value = at::full({1}, 1.0);
                         if (ctx.rank() == 1) {
                           ctx.group().broadcast(value)->wait();
                         } else {
                           ctx.group().allreduce(value)->wait();
                         }
                       }};

REHEARSE_PROGRAM(throws){.summary = "rank 1 throws", .body = [](RankContext& ctx, const Parameters&) {
                           if (ctx.rank() == 1) throw std::runtime_error("the dataset is empty");
                           ctx.group().barrier()->wait();
                         }};

REHEARSE_PROGRAM(wrong){.summary = "its own check does not hold", .body = [](RankContext& ctx, const Parameters&) {
                          ctx.expect(ctx.rank() == 0, "the loss falls", "2.5 after 2.4");
                        }};

REHEARSE_PROGRAM(waits){.summary = "rank 0 polls for what never comes",
                        .body = [](RankContext& ctx, const Parameters&) {
                          if (ctx.rank() != 0) return;
                          while (!ctx.store()->check({"never"})) {
                          }
                        }};

REHEARSE_PROGRAM(saves){.summary = "rank 1 writes a file",
                        .parameters = {{"file", std::string("{scratch}/model"), "where"},
                                       {"holds", true, "whether the check after it holds"}},
                        .body = [](RankContext& ctx, const Parameters& parameters) {
                          if (ctx.rank() != 1) return;
                          std::ofstream(parameters.text("file")) << "weights";
                          ctx.expect(parameters.flag("holds"), "the model is good");
                        }};

// Not deterministic, on purpose: the system's random numbers decide how often each rank yields.
REHEARSE_PROGRAM(moody){.summary = "takes another way each time",
                        .parameters = {{"fails", false, "rank 1 throws, or leaves out the barrier"}},
                        .body = [](RankContext& ctx, const Parameters& parameters) {
                          const int times = 1 + std::ifstream("/dev/urandom", std::ios::binary).get() % 64;
                          for (int i = 0; i < times; ++i) rehearse::exec::this_rank::yield();
                          if (parameters.flag("fails") && ctx.rank() == 1) {
                            if (times % 2 == 0) throw std::runtime_error("bad luck");
                            return;
                          }
                          ctx.group().barrier()->wait();
                        }};

[[gnu::noinline]] int recurse(volatile int& depth) {
  volatile char frame[4096];
  frame[0] = 1;
  depth = depth + 1;
  return depth > 0 ? recurse(depth) + frame[0] : 0;
}

[[gnu::noinline]] void end_process(const std::string& by) {
  if (by == "abort") std::abort();
  volatile int depth = 0;
  if (by == "recursion") recurse(depth);
  if (by == "check") REHEARSE_CHECK(depth == 1, 7);
  // An address in the unmapped first page, and not a null pointer, which UndefinedBehaviorSanitizer would report.
  auto* volatile nowhere = reinterpret_cast<volatile int*>(64);
  if (by == "fault") *nowhere = 1;
  if (by == "alarm") std::raise(SIGALRM);
  if (by == "kill") std::raise(SIGKILL);
  if (by == "stop") std::raise(SIGSTOP);
  if (by == "exit0") std::exit(0);
  if (by == "exit3") std::exit(3);
  if (by == "_exit") ::_exit(3);
  if (by == "syscall") ::syscall(SYS_exit_group, 3);
  if (by == "terminate") std::terminate();
  if (by == "thread") std::thread([] { throw std::runtime_error("the disk is full"); }).join();
  if (by == "fork") {
    const pid_t child = fork();  // the child runs on, too
    if (child > 0) waitpid(child, nullptr, 0);
  }
}

// Closes all files but the standard ones, as a program does if it becomes a daemon.
void close_files_of_others() {
  for (int file = 3; file < 256; ++file) ::close(file);
}

REHEARSE_PROGRAM(dies){
    .summary = "rank 2 ends the process",
    .parameters = {{"by", std::string("abort"), "or fault, kill, exit3 and so on: see end_process()"},
                   {"closes", false, "it closes the files that others have opened, before that"}},
    .body = [](RankContext& ctx, const Parameters& parameters) {
      auto value = at::full({1}, 1.0);
      ctx.group().allreduce(value)->wait();
      if (ctx.rank() == 2 && parameters.flag("closes")) close_files_of_others();
      if (ctx.rank() == 2) end_process(parameters.text("by"));
      ctx.group().barrier()->wait();
    }};
