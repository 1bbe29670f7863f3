// SPDX-License-Identifier: BSD-3-Clause
// poll(), select() and epoll_wait() on a rank return the files that are ready. If a call would block the process, the
// rank fails.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include <rehearse_internal/exec/blocking_call.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class BlockingIo : public Worlds {};
REHEARSE_IN_WORLDS(BlockingIo);

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_), 0); }
  ~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  int reader() const { return ends_[0]; }
  void write_something() { EXPECT_EQ(::write(ends_[1], "x", 1), 1); }

 private:
  int ends_[2] = {-1, -1};
};

int select_on(int file, timeval* timeout) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(file, &set);
  return ::select(file + 1, &set, nullptr, nullptr, timeout);
}

TEST_P(BlockingIo, WhatIsReady_IsReturned) {
  auto w = world();
  Pipe pipe;
  pipe.write_something();
  const auto outcome = w.run([&](int) {
    pollfd file{pipe.reader(), POLLIN, 0};
    EXPECT_EQ(::poll(&file, 1, -1), 1);
    EXPECT_EQ(::ppoll(&file, 1, nullptr, nullptr), 1);
    EXPECT_EQ(select_on(pipe.reader(), nullptr), 1);
    const int epoll = ::epoll_create1(0);
    epoll_event event{};
    event.events = EPOLLIN;
    EXPECT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, pipe.reader(), &event), 0);
    EXPECT_EQ(::epoll_wait(epoll, &event, 1, -1), 1);
    EXPECT_EQ(::epoll_pwait(epoll, &event, 1, -1, nullptr), 1);
    ::close(epoll);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(BlockingIo, TimeoutZero_PassesThrough) {
  auto w = world();
  Pipe pipe;
  const auto outcome = w.run([&](int) {
    pollfd file{pipe.reader(), POLLIN, 0};
    EXPECT_EQ(::poll(&file, 1, 0), 0);
    timeval none{};
    EXPECT_EQ(select_on(pipe.reader(), &none), 0);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

void expect_reported(World w, const std::string& call, const std::function<void()>& blocks) {
  const auto outcome = w.run([&](int rank) {
    if (rank == 1) blocks();
    this_rank::sleep_for(1ms);
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  const auto text = "rank 1 called " + call +
                    ", which would block all ranks: they share one thread, so none of them could end the wait. Use the "
                    "simulated process group and store instead of sockets, or call it with timeout 0";
  EXPECT_EQ(w.sink.told, std::vector<std::string>{"rank 1: " + text});
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_THROW(std::rethrow_exception(outcome.failures[0].error), BlockingCallError);
}

TEST_P(BlockingIo, WhatWouldBlock_IsReported) {
  Pipe pipe;
  pollfd file{pipe.reader(), POLLIN, 0};
  expect_reported(world(), "poll()", [&] { ::poll(&file, 1, 1'000); });
  expect_reported(world(), "ppoll()", [&] { ::ppoll(&file, 1, nullptr, nullptr); });
  expect_reported(world(), "select()", [&] { select_on(pipe.reader(), nullptr); });
  const int epoll = ::epoll_create1(0);
  epoll_event event{};
  expect_reported(world(), "epoll_wait()", [&] { ::epoll_wait(epoll, &event, 1, -1); });
  expect_reported(world(), "epoll_pwait()", [&] { ::epoll_pwait(epoll, &event, 1, 5, nullptr); });
  ::close(epoll);
}

void poll_and_must_not_throw(int file) noexcept {
  pollfd entry{file, POLLIN, 0};
  ::poll(&entry, 1, -1);
}

TEST_P(BlockingIo, InANoexceptFunction_IsReportedAllTheSame) {
  Pipe pipe;
  expect_reported(world(), "poll()", [&] { poll_and_must_not_throw(pipe.reader()); });
}

}  // namespace
}  // namespace rehearse::exec::test
