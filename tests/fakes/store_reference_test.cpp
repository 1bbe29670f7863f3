// SPDX-License-Identifier: BSD-3-Clause
// Contract: a FakeStore with one caller behaves like c10d::HashStore. Any sequence of calls gives the same results and
// the same types of errors, with and without prefixes, inside a rank and outside.
#include <algorithm>
#include <ostream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "store_fixture.h"

namespace rehearse::fakes::testing {

enum class Kind {
  set,
  compare_set,
  get,
  add,
  delete_key,
  check,
  wait,
  num_keys,
  append,
  multi_set,
  multi_get,
  queue_push,
  queue_pop,
  queue_pop_block,
  queue_len,
  list_keys,
  extended,
  watch,
  count,
};

// One call. Fields that it does not need are ignored.
struct Call {
  Kind kind{};
  bool prefixed = false;  // through a PrefixStore
  std::string key, other_key;
  std::string value, other_value;
  std::int64_t amount = 0;
};

void showValue(const Call& call, std::ostream& out) {
  out << "{kind " << static_cast<int>(call.kind) << (call.prefixed ? " prefixed" : "") << ' ' << call.key << ','
      << call.other_key << " \"" << call.value << "\",\"" << call.other_value << "\" " << call.amount << '}';
}

namespace {

std::vector<std::uint8_t> bytes(std::string_view text) { return {text.begin(), text.end()}; }
std::string text(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

rc::Gen<Call> any_call() {
  const auto key = rc::gen::element<std::string>("a", "b", "c");
  const auto value = rc::gen::element<std::string>("", "7", "-3", "x", "12y", "99999999999999999999");
  const auto kind = rc::gen::map(rc::gen::inRange(0, static_cast<int>(Kind::count)),
                                 [](int number) { return static_cast<Kind>(number); });
  return rc::gen::build<Call>(rc::gen::set(&Call::kind, kind), rc::gen::set(&Call::prefixed),
                              rc::gen::set(&Call::key, key), rc::gen::set(&Call::other_key, key),
                              rc::gen::set(&Call::value, value), rc::gen::set(&Call::other_value, value),
                              rc::gen::set(&Call::amount, rc::gen::element<std::int64_t>(0, 1, -5, 1'000'000'000'000)));
}

std::string result(c10d::Store& store, const Call& call) {
  switch (call.kind) {
    case Kind::set:
      return store.set(call.key, bytes(call.value)), "done";
    case Kind::compare_set:
      return store.compareSet(call.key, call.value, call.other_value);
    case Kind::get:
      return text(store.get(call.key));
    case Kind::add:
      return std::to_string(store.add(call.key, call.amount));
    case Kind::delete_key:
      return store.deleteKey(call.key) ? "deleted" : "was not there";
    case Kind::check:
      return store.check({call.key, call.other_key}) ? "yes" : "no";
    case Kind::wait:
      return store.wait({call.key, call.other_key}), "there";
    case Kind::num_keys:
      return std::to_string(store.getNumKeys());
    case Kind::append:
      return store.append(call.key, bytes(call.value)), "done";
    case Kind::multi_set:
      return store.multiSet({call.key, call.other_key}, {bytes(call.value), bytes(call.other_value)}), "done";
    case Kind::multi_get: {
      const auto values = store.multiGet({call.key, call.other_key});
      return text(values[0]) + '|' + text(values[1]);
    }
    case Kind::queue_push:
      return store.queuePush(call.key, bytes(call.value)), "done";
    case Kind::queue_pop:
      return text(store.queuePop(call.key, false));
    case Kind::queue_pop_block:
      return text(store.queuePop(call.key, true));
    case Kind::queue_len:
      return std::to_string(store.queueLen(call.key));
    case Kind::list_keys: {
      auto keys = store.listKeys();
      std::sort(keys.begin(), keys.end());
      return fmt::format("{}", fmt::join(keys, " "));
    }
    case Kind::extended:
      return store.hasExtendedApi() ? "extended" : "basic";
    case Kind::watch:
      return store.watchKey(call.key, {}), "done";
    case Kind::count:
      break;
  }
  return "no such call";
}

// The call's result, or the type of its error. The stores have error texts of their own.
std::string outcome(const c10::intrusive_ptr<c10d::Store>& store, const Call& call) {
  try {
    if (!call.prefixed) return result(*store, call);
    return result(*c10::make_intrusive<c10d::PrefixStore>("a", store), call);
  } catch (const RankAborted&) {
    throw;
  } catch (const std::exception& error) {
    return fmt::format("throws {}", typeid(error).name());
  }
}

c10::intrusive_ptr<c10d::Store> hash_store() {
  auto store = c10::make_intrusive<c10d::HashStore>();
  store->setTimeout(std::chrono::milliseconds(1));  // real milliseconds
  return store;
}

void expect_same(const std::vector<Call>& calls) {
  const auto reference = hash_store();
  const c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<FakeStore>(std::make_shared<StoreState>());
  for (const Call& call : calls) RC_ASSERT(outcome(store, call) == outcome(reference, call));
}

TEST(StoreReference, AnyCalls_OutsideOfRanks) {
  EXPECT_TRUE(rc::check([] { expect_same(*rc::gen::container<std::vector<Call>>(any_call())); }));
}

class StoreReferenceInARank : public StoreTest {};

// The reference runs first, outside of ranks, because inside a rank its waits would be simulated, too.
TEST_F(StoreReferenceInARank, AnyCalls) {
  EXPECT_TRUE(rc::check([this] {
    const auto calls = *rc::gen::container<std::vector<Call>>(any_call());
    const auto reference = hash_store();
    std::vector<std::string> expected, found;
    for (const Call& call : calls) expected.push_back(outcome(reference, call));
    shared = std::make_shared<StoreState>();
    const auto ending = run(1, [&](int, FakeStore& handle) {
      const auto store = handle.clone();
      for (const Call& call : calls) found.push_back(outcome(store, call));
    });
    RC_ASSERT(ending.ending == exec::Ending::all_returned);
    RC_ASSERT(found == expected);
  }));
}

TEST(StoreReference, Add_WrapsAround) {
  const auto reference = hash_store();
  const c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<FakeStore>(std::make_shared<StoreState>());
  for (const auto& each : {reference, store}) {
    each->set("n", std::string("9223372036854775807"));
    EXPECT_EQ(each->add("n", 1), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(each->get_to_str("n"), "-9223372036854775808");
  }
}

}  // namespace
}  // namespace rehearse::fakes::testing
