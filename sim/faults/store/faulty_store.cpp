// SPDX-License-Identifier: BSD-3-Clause
#include "faulty_store.h"

#include <type_traits>
#include <utility>

#include <rehearse_internal/exec/this_rank.h>

namespace rehearse::sim {

FaultyStore::FaultyStore(c10::intrusive_ptr<c10d::Store> below, std::shared_ptr<StoreFaults> faults)
    : ForwardingStore(std::move(below)), faults_(std::move(faults)) {}

c10::intrusive_ptr<c10d::Store> FaultyStore::clone() {
  return c10::make_intrusive<FaultyStore>(below()->clone(), faults_);
}

template <class Call>
auto FaultyStore::meet(std::string_view name, const std::vector<std::string>& keys, const Call& call,
                       std::optional<std::chrono::milliseconds> timeout) {
  exec::this_rank::make_store_call([&] { faults_->before(name, keys, timeout ? *timeout : getTimeout()); });
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    faults_->after(name, keys);
  } else {
    auto result = call();
    faults_->after(name, keys);
    return result;
  }
}

void FaultyStore::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  meet("set", {key}, [&] { below()->set(key, value); });
}

std::vector<std::uint8_t> FaultyStore::compareSet(const std::string& key, const std::vector<std::uint8_t>& expected,
                                                  const std::vector<std::uint8_t>& desired) {
  return meet("compareSet", {key}, [&] { return below()->compareSet(key, expected, desired); });
}

std::vector<std::uint8_t> FaultyStore::get(const std::string& key) {
  auto value = meet("get", {key}, [&] { return below()->get(key); });
  if (auto former = faults_->stale("get", key)) return std::move(*former);
  return value;
}

std::int64_t FaultyStore::add(const std::string& key, std::int64_t amount) {
  return meet("add", {key}, [&] { return below()->add(key, amount); });
}

bool FaultyStore::deleteKey(const std::string& key) {
  return meet("deleteKey", {key}, [&] { return below()->deleteKey(key); });
}

bool FaultyStore::check(const std::vector<std::string>& keys) {
  return meet("check", keys, [&] { return below()->check(keys); });
}

std::int64_t FaultyStore::getNumKeys() {
  return meet("getNumKeys", {}, [&] { return below()->getNumKeys(); });
}

void FaultyStore::append(const std::string& key, const std::vector<std::uint8_t>& value) {
  meet("append", {key}, [&] { below()->append(key, value); });
}

std::vector<std::vector<std::uint8_t>> FaultyStore::multiGet(const std::vector<std::string>& keys) {
  auto values = meet("multiGet", keys, [&] { return below()->multiGet(keys); });
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (auto former = faults_->stale("multiGet", keys[i])) values[i] = std::move(*former);
  }
  return values;
}

void FaultyStore::multiSet(const std::vector<std::string>& keys, const std::vector<std::vector<std::uint8_t>>& values) {
  meet("multiSet", keys, [&] { below()->multiSet(keys, values); });
}

std::vector<std::string> FaultyStore::listKeys() {
  return meet("listKeys", {}, [&] { return below()->listKeys(); });
}

void FaultyStore::queuePush(const std::string& key, const std::vector<std::uint8_t>& value) {
  meet("queuePush", {key}, [&] { below()->queuePush(key, value); });
}

std::vector<std::uint8_t> FaultyStore::queuePop(const std::string& key, bool block) {
  return meet("queuePop", {key}, [&] { return below()->queuePop(key, block); });
}

std::int64_t FaultyStore::queueLen(const std::string& key) {
  return meet("queueLen", {key}, [&] { return below()->queueLen(key); });
}

void FaultyStore::wait(const std::vector<std::string>& keys) {
  meet("wait", keys, [&] { below()->wait(keys); });
}

void FaultyStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
  meet("wait", keys, [&] { below()->wait(keys, timeout); }, timeout);
}

}  // namespace rehearse::sim
