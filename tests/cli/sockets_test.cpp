// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/process.h"
#include "own_process.h"

// Contract: no other host can reach a run that uses this host alone. A stranger who connects to one of the run's
// sockets and sends garbage does not harm the run.
namespace rehearse::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Listener {
  std::string address;  // as in /proc/net/tcp, in hexadecimal
  std::uint16_t port = 0;
  bool is_on_loopback() const {
    return address == "0100007F" || address == "00000000000000000000000001000000" ||
           address == "0000000000000000FFFF00000100007F";
  }
};

pid_t parent_of(const std::filesystem::path& process) {
  const auto text = read_file(process / "stat");
  // The text begins like "4711 (name) S 4710": pid, name, state and the pid of the parent.
  std::istringstream rest(text.substr(std::min(text.rfind(')') + 1, text.size())));
  char state = 0;
  pid_t parent = -1;
  rest >> state >> parent;
  return parent;
}

std::set<pid_t> family_of(pid_t process) {
  std::set<pid_t> family = {process};
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid > 0 && family.contains(parent_of(entry.path()))) grew |= family.insert(pid).second;
    }
  }
  return family;
}

std::set<std::string> sockets_of(const std::set<pid_t>& family) {
  std::set<std::string> numbers;
  std::error_code gone;
  for (const pid_t pid : family) {
    for (const auto& file : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone)) {
      const auto target = std::filesystem::read_symlink(file, gone).string();
      if (target.starts_with("socket:[")) numbers.insert(target.substr(8, target.size() - 9));
    }
  }
  return numbers;
}

std::vector<Listener> listeners_of(pid_t process) {
  const auto sockets = sockets_of(family_of(process));
  std::vector<Listener> listeners;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    std::string line, number, local, remote, state, word, inode;
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      words >> number >> local >> remote >> state;
      for (int skipped = 0; skipped < 5; ++skipped) words >> word;
      words >> inode;
      if (state != "0A" || !sockets.contains(inode)) continue;
      const auto colon = local.find(':');
      listeners.push_back(
          {local.substr(0, colon), static_cast<std::uint16_t>(std::stoul(local.substr(colon + 1), nullptr, 16))});
    }
  }
  return listeners;
}

// An address in the form of /proc/net/tcp: "0200007F" is 127.0.0.2.
std::string as_in_tables(const std::string& host) {
  in_addr address{};
  EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &address), 1) << host;
  char text[9];
  std::snprintf(text, sizeof text, "%08X", address.s_addr);
  return text;
}

// IPv4 addresses of this host that other hosts could reach. A container may have none.
std::vector<std::string> addresses_beyond_the_loopback() {
  std::vector<std::string> addresses;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return addresses;
  for (const auto* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    if ((each->ifa_flags & IFF_UP) == 0 || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET_ADDRSTRLEN];
    const auto* const address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    addresses.emplace_back(inet_ntop(AF_INET, &address->sin_addr, text, sizeof text));
  }
  freeifaddrs(all);
  return addresses;
}

void disturb(const Listener& listener, std::size_t bytes, std::mt19937& random) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(listener.port);
  EXPECT_EQ(connect(file, reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << listener.port;
  std::string noise(bytes, '\0');
  for (auto& byte : noise) byte = static_cast<char>(random());
  send(file, noise.data(), noise.size(), MSG_NOSIGNAL);
  close(file);
}

class Sockets : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef CLI_HAS_REAL
    GTEST_SKIP() << "built without the real mode (REHEARSE_REAL=OFF)";
#endif
    write_file(folder_ / "until_told.toml", "program = \"until_told\"\n[world]\nranks = 2\n");
  }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(Sockets, OfARunOnThisHost_AreOnItsLoopbackAndTakeNoHarm) {
  std::vector<Listener> listeners;
  const auto finished = run_and_act(CLI_MODES_JOB, {"run", "until_told.toml", "--with=gloo"}, folder_, "[1] under way",
                                    [&](pid_t process) {
                                      listeners = listeners_of(process);
                                      std::mt19937 random(7);
                                      for (const auto& listener : listeners) {
                                        if (!listener.is_on_loopback()) continue;
                                        for (const std::size_t bytes : {0, 1, 4, 64, 100'000})
                                          disturb(listener, bytes, random);
                                      }
                                      write_file(folder_ / "enough", "");
                                    });
  // One listener is the store's, the others are gloo's.
  EXPECT_GE(listeners.size(), 2u);
  for (const auto& listener : listeners) EXPECT_TRUE(listener.is_on_loopback()) << listener.address;
  EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  EXPECT_EQ(finished.err, "");
  EXPECT_THAT(finished.out, HasSubstr("\nOK: 2 ranks returned after "));
  EXPECT_THAT(finished.out, Not(HasSubstr("rror")));
}

TEST_F(Sockets, UnderALauncher_AreWhereMasterAddrSays) {
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    SCOPED_TRACE(host);
    std::filesystem::remove(folder_ / "enough");
    std::vector<Listener> listeners;
    const auto finished =
        run_and_act(CLI_MODES_JOB, {"run", "until_told.toml", "--with=gloo"}, folder_, "under way",
                    [&](pid_t process) {
                      listeners = listeners_of(process);
                      write_file(folder_ / "enough", "");
                    },
                    {"RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=" + host, "MASTER_PORT=" + std::to_string(free_port())});
    EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
    EXPECT_GE(listeners.size(), 1u);
    for (const auto& listener : listeners) EXPECT_TRUE(listener.is_on_loopback()) << listener.address;
  }
}

// The store listens at MASTER_ADDR only: not on the loopback's usual address, and not on all interfaces.
TEST_F(Sockets, UnderALauncher_OfAnotherAddress_AreThereAlone) {
  std::vector<std::string> hosts = {"127.0.0.2"};
  const auto own = addresses_beyond_the_loopback();
  if (!own.empty()) hosts.push_back(own.front());
  for (const auto& host : hosts) {
    SCOPED_TRACE(host);
    std::filesystem::remove(folder_ / "enough");
    const auto port = std::to_string(free_port());
    std::vector<Listener> listeners;
    const auto finished =
        run_and_act(CLI_MODES_JOB, {"run", "until_told.toml", "--with=gloo"}, folder_, "under way",
                    [&](pid_t process) {
                      listeners = listeners_of(process);
                      write_file(folder_ / "enough", "");
                    },
                    {"RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=" + host, "MASTER_PORT=" + port, "GLOO_SOCKET_IFNAME=lo"});
    EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
    std::vector<std::string> of_store;
    for (const auto& listener : listeners) {
      if (std::to_string(listener.port) == port) of_store.push_back(listener.address);
    }
    EXPECT_EQ(of_store, std::vector{as_in_tables(host)});
  }
}

TEST_F(Sockets, PortThatIsTaken_IsNamed) {
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(file, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(file, 1), 0);
  ASSERT_EQ(getsockname(file, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto port = std::to_string(ntohs(address.sin_port));
  const auto finished = run_process(CLI_MODES_JOB, {"run", "until_told.toml", "--with=gloo", "--quiet"}, folder_,
                                    {"RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port});
  close(file);
  EXPECT_EQ(finished.exit_code, 69);
  EXPECT_THAT(finished.err, HasSubstr("rank 0 of 1 cannot serve the job's store at 127.0.0.1:" + port + ": "));
  EXPECT_THAT(finished.err, HasSubstr("Address already in use"));
}

}  // namespace
}  // namespace rehearse::test
