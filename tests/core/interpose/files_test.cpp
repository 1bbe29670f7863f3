// SPDX-License-Identifier: BSD-3-Clause
// Pipes, sockets and file locks between ranks: a rank that waits for another rank's call suspends, and reports name its
// wait.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class RankFiles : public Worlds {};
INSTANTIATE_TEST_SUITE_P(Sizes, RankFiles, ::testing::Combine(::testing::Values(2, 3, 8), ::testing::Values(1, 2, 3)),
                         world_name);

// The two ends of a pipe or of a pair of sockets.
struct Ends {
  explicit Ends(const std::function<int(int*)>& make) { EXPECT_EQ(make(files), 0); }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  ~Ends() {
    close(0);
    close(1);
  }
  void close(int end) {
    if (files[end] >= 0) ::close(std::exchange(files[end], -1));
  }
  int files[2] = {-1, -1};
};

int make_pipe(int* files) { return ::pipe(files); }
int make_sockets(int* files) { return ::socketpair(AF_UNIX, SOCK_STREAM, 0, files); }

TEST_P(RankFiles, ReadOfAPipe_WaitsForTheWriter) {
  auto w = world();
  Ends pipe(make_pipe);
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      char byte = 0;
      EXPECT_EQ(::read(pipe.files[0], &byte, 1), 1);
      EXPECT_EQ(byte, 'x');
      EXPECT_EQ(this_rank::now(), at(1s));
      EXPECT_EQ(::read(pipe.files[0], &byte, 1), 0);  // end of file
      EXPECT_EQ(this_rank::now(), at(2s));
    } else if (rank == 1) {
      this_rank::sleep_for(1s);
      EXPECT_EQ(::write(pipe.files[1], "x", 1), 1);
      this_rank::sleep_for(1s);
      pipe.close(1);
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

std::vector<char> much_data() {
  std::vector<char> data(300'000);
  std::iota(data.begin(), data.end(), '\0');
  return data;
}

void expect_much_data(int file) {
  std::vector<char> got;
  std::vector<char> piece(7'000);
  while (got.size() < much_data().size()) {
    const auto bytes = ::read(file, piece.data(), piece.size());
    ASSERT_GT(bytes, 0);
    got.insert(got.end(), piece.begin(), piece.begin() + bytes);
  }
  EXPECT_EQ(got, much_data());
}

// The data exceeds a pipe's capacity, so the writer waits for the reader.
TEST_P(RankFiles, MuchData_GoesThrough) {
  for (const auto make : {make_pipe, make_sockets}) {
    auto w = world();
    Ends ends(make);
    const auto outcome = w.run([&](int rank) {
      const auto data = much_data();
      if (rank == 0) {
        EXPECT_EQ(::write(ends.files[1], data.data(), data.size()), static_cast<ssize_t>(data.size()));
      } else if (rank == 1) {
        this_rank::sleep_for(1s);
        expect_much_data(ends.files[0]);
      }
    });
    EXPECT_EQ(outcome.ending, Ending::all_returned);
  }
}

TEST_P(RankFiles, Sockets_GoBothWays) {
  auto w = world();
  Ends sockets(make_sockets);
  const auto outcome = w.run([&](int rank) {
    if (rank > 1) return;
    const int file = sockets.files[rank];
    auto data = much_data();
    for (int round = 0; round < 3; ++round) {
      if (rank == 0) {
        EXPECT_EQ(::send(file, data.data(), data.size(), 0), static_cast<ssize_t>(data.size()));
      }
      std::vector<char> got(data.size());
      EXPECT_EQ(::recv(file, got.data(), got.size(), MSG_WAITALL), static_cast<ssize_t>(got.size()));
      EXPECT_EQ(got, data);
      if (rank == 1) {
        EXPECT_EQ(::send(file, data.data(), data.size(), 0), static_cast<ssize_t>(data.size()));
      }
    }
    char byte = 0;
    EXPECT_EQ(::recv(file, &byte, 1, MSG_DONTWAIT), -1);
    EXPECT_EQ(errno, EAGAIN);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(RankFiles, PipeWithoutAWriter_IsADeadlockWithItsName) {
  auto w = world();
  Ends pipe(make_pipe);
  const auto outcome = w.run([&](int) {
    char byte = 0;
    ::read(pipe.files[0], &byte, 1);
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(lines(outcome.blocked),
            same_line(0, ranks() - 1, "read() of a pipe (file descriptor " + std::to_string(pipe.files[0]) + ")"));
  for (const auto& entry : outcome.blocked) EXPECT_FALSE(entry.polls);
}

TEST_P(RankFiles, SocketWithoutAReader_IsADeadlockWithItsName) {
  auto w = world();
  Ends sockets(make_sockets);
  const auto outcome = w.run([&](int rank) {
    const std::vector<char> data(10'000'000);
    if (rank == 0) ::write(sockets.files[0], data.data(), data.size());
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(lines(outcome.blocked),
            same_line(0, 0, "write() of a socket (file descriptor " + std::to_string(sockets.files[0]) + ")"));
}

TEST_P(RankFiles, AReaderBesidesOthers_GoesOn) {
  auto w = world();
  Ends pipe(make_pipe);
  bool read = false;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      char byte = 0;
      EXPECT_EQ(::read(pipe.files[0], &byte, 1), 1);
      read = true;
    } else if (rank == 1) {
      for (int k = 0; k < 100; ++k) this_rank::sleep_for(1ms);
      EXPECT_EQ(::write(pipe.files[1], "x", 1), 1);
    } else {
      while (!read) this_rank::poll();
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(RankFiles, Accept_WaitsForAnotherRanksConnect) {
  for (const int domain : {AF_UNIX, AF_INET}) {
    const int listener = ::socket(domain, SOCK_STREAM, 0);
    sockaddr_storage address{};
    address.ss_family = static_cast<sa_family_t>(domain);
    if (domain == AF_INET) reinterpret_cast<sockaddr_in*>(&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // The kernel chooses the address: an unnamed AF_UNIX socket gets an abstract name.
    const socklen_t bytes = domain == AF_INET ? sizeof(sockaddr_in) : sizeof(sa_family_t);
    ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), bytes), 0);
    ASSERT_EQ(::listen(listener, 5), 0);
    socklen_t own_bytes = sizeof address;
    ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &own_bytes), 0);
    auto w = world();
    const auto outcome = w.run([&](int rank) {
      if (rank > 1) return;
      if (rank == 1) this_rank::sleep_for(1s);
      const int file = rank == 0 ? ::accept(listener, nullptr, nullptr) : ::socket(domain, SOCK_STREAM, 0);
      if (rank == 1) {
        EXPECT_EQ(::connect(file, reinterpret_cast<sockaddr*>(&address), own_bytes), 0);
      }
      EXPECT_EQ(this_rank::now(), at(1s));
      char byte = static_cast<char>('a' + rank);
      if (rank == 1) this_rank::sleep_for(1s);
      EXPECT_EQ(::send(file, &byte, 1, 0), 1);
      EXPECT_EQ(::recv(file, &byte, 1, 0), 1);
      EXPECT_EQ(byte, static_cast<char>('b' - rank));
      EXPECT_EQ(this_rank::now(), at(2s));
      ::close(file);
    });
    EXPECT_EQ(outcome.ending, Ending::all_returned);
    ::close(listener);
  }
}

class TemporaryFile {
 public:
  TemporaryFile() { ::close(::mkstemp(name_)); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(name_); }
  int open() const { return ::open(name_, O_RDWR); }
  const char* name() const { return name_; }

 private:
  char name_[32] = "/tmp/rehearse_files_XXXXXX";
};

TEST_P(RankFiles, Flock_KeepsRanksApart) {
  auto w = world();
  const TemporaryFile file;
  int inside = 0, visits = 0;
  const auto outcome = w.run([&](int) {
    const int own = file.open();
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(::flock(own, LOCK_EX), 0);
      EXPECT_EQ(++inside, 1);
      this_rank::sleep_for(1ms);
      --inside;
      ++visits;
      EXPECT_EQ(::flock(own, LOCK_UN), 0);
    }
    ::close(own);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(visits, 3 * ranks());
  EXPECT_EQ(outcome.end_time, at(1ms * visits));
}

TEST_P(RankFiles, FlockThatIsNeverGivenBack_IsADeadlockWithItsName) {
  auto w = world();
  const TemporaryFile file;
  const int held = file.open(), wanted = file.open();
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      EXPECT_EQ(::flock(held, LOCK_EX), 0);
    }
    if (rank != 1) return;
    this_rank::sleep_for(1ms);
    EXPECT_EQ(::flock(wanted, LOCK_EX | LOCK_NB), -1);
    ::flock(wanted, LOCK_EX);
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(lines(outcome.blocked),
            same_line(1, 1, "flock() of a file (file descriptor " + std::to_string(wanted) + ")"));
  ::close(held);
  ::close(wanted);
}

// The rank waits in the kernel for another process, and does not count as hung.
TEST_P(RankFiles, PipeOfAnotherProcess_IsReadToItsEnd) {
  Ends there(make_pipe), back(make_pipe);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    there.close(1);
    const bool got = ::read(there.files[0], &byte, 1) == 1;
    ::_exit(got && ::write(back.files[1], "y", 1) == 1 ? 0 : 1);
  }
  there.close(0);
  back.close(1);
  auto w = world();
  const auto outcome = w.run([&](int rank) {
    if (rank != 0) return;
    EXPECT_EQ(::write(there.files[1], "x", 1), 1);
    char byte = 0;
    EXPECT_EQ(::read(back.files[0], &byte, 1), 1);
    EXPECT_EQ(byte, 'y');
    EXPECT_EQ(::read(back.files[0], &byte, 1), 0);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_P(RankFiles, RegularFiles_AreNoReasonToSwitch) {
  const TemporaryFile file;
  const auto use = [&](int) {
    std::ofstream(file.name()) << "text";
    std::string text;
    std::ifstream(file.name()) >> text;
    EXPECT_EQ(text, "text");
  };
  auto with = world(), without = world();
  const auto outcome = with.run(use);
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.switches, without.run([](int) {}).switches);
}

}  // namespace
}  // namespace rehearse::exec::test
