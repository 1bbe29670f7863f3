// SPDX-License-Identifier: BSD-3-Clause
#include "process_rendezvous.h"

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <vector>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <rehearse/job/runner.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/job/store_socket.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace rehearse::real {
namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::uint16_t port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error == std::errc() && end == text.data() + text.size() && port > 0) return port;
  throw RunnerUnavailable(
      fmt::format("MASTER_PORT is \"{}\" in the environment; it takes the port at which rank 0 serves the job's store, "
                  "an integer from 1 to 65535, the same for all ranks",
                  text));
}

// The ranks that have not announced themselves.
std::vector<int> missing(c10d::Store& store, int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) {
    if (!store.check({fmt::format("here/{}", rank)})) ranks.push_back(rank);
  }
  return ranks;
}

void wait_for_all(c10d::Store& store, const LaunchedProcess& process, std::chrono::milliseconds timeout) {
  store.set(fmt::format("here/{}", process.rank), "here");
  std::vector<std::string> keys;
  for (int rank = 0; rank < process.size; ++rank) keys.push_back(fmt::format("here/{}", rank));
  try {
    store.wait(keys, timeout);
  } catch (const c10::DistStoreError&) {
    const auto ranks = missing(store, process.size);
    if (ranks.empty()) return;
    throw RunnerUnavailable(fmt::format("{} did not join the job within {} s: rank {} of {} waited for {}",
                                        describe_ranks(ranks), std::chrono::duration<double>(timeout).count(),
                                        process.rank, process.size, ranks.size() == 1 ? "it" : "them"));
  }
}

std::string no_store(const LaunchedProcess& process, const StoreAddress& address, bool serves, std::string_view why) {
  return fmt::format("rank {} of {} cannot {} the job's store at {}:{}: {}", process.rank, process.size,
                     serves ? "serve" : "reach", address.host, address.port, why);
}

// gloo and the store's server write to sockets without MSG_NOSIGNAL. So a write to a process that is gone would end
// this process silently, too. With the signal ignored, as in Python, the call throws. Keeps a handler of the program's
// own.
void ignore_broken_pipes() {
  struct sigaction action{};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL)
    std::signal(SIGPIPE, SIG_IGN);
}

StorePtr connected(const LaunchedProcess& process, std::chrono::milliseconds timeout) {
  ignore_broken_pipes();
  const auto address = store_address(process);
  c10d::TCPStoreOptions options;
  options.port = address.port;
  options.isServer = process.rank == 0 && !address.is_served;
  options.waitWorkers = false;
  options.timeout = timeout;
  try {
    if (options.isServer) {
      if (const auto socket = listen_at(address.host, address.port)) options.masterListenFd = socket->file;
    }
    auto store = c10::make_intrusive<c10d::PrefixStore>(address.prefix,
                                                        c10::make_intrusive<c10d::TCPStore>(address.host, options));
    wait_for_all(*store, process, timeout);
    return store;
  } catch (const c10::Error& error) {
    throw RunnerUnavailable(no_store(process, address, options.isServer, error.what_without_backtrace()));
  } catch (const std::system_error& error) {
    throw RunnerUnavailable(no_store(process, address, options.isServer, error.what()));
  }
}

}  // namespace

StoreAddress store_address(const LaunchedProcess& process) {
  StoreAddress address;
  address.host = variable("MASTER_ADDR");
  if (address.host.empty()) {
    throw RunnerUnavailable(
        fmt::format("the environment has {} and no MASTER_ADDR: set it to the host of rank 0, for all ranks, and "
                    "MASTER_PORT to a free port of that host",
                    process.rank_variable));
  }
  address.port = port_of(variable("MASTER_PORT"));
  address.is_served = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const auto attempt = variable("TORCHELASTIC_RESTART_COUNT");
  address.prefix = fmt::format("rehearse/attempt_{}", attempt.empty() ? "0" : attempt);
  return address;
}

StorePtr join_store(const LaunchedProcess& process, std::chrono::milliseconds timeout) {
  static const StorePtr store = connected(process, timeout);
  return store;
}

}  // namespace rehearse::real
