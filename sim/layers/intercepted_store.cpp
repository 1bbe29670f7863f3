// SPDX-License-Identifier: BSD-3-Clause
#include "intercepted_store.h"

#include <type_traits>
#include <utility>

namespace rehearse::sim {
namespace {

using StoreValue = StoreCall::Value;
using Keys = std::vector<std::string>;

std::span<StoreValue> answers_in(StoreValue& result) { return {&result, 1}; }
std::span<StoreValue> answers_in(std::vector<StoreValue>& result) { return result; }
std::span<StoreValue> answers_in(Keys&) { return {}; }

class InterceptedStore final : public c10d::Store {
  // Stands before its uses, which need its return type.
  template <class Call>
  auto make(StoreCall call, const Call& on_below, const std::chrono::milliseconds* own_timeout = nullptr) {
    call.timeout = own_timeout != nullptr ? *own_timeout : getTimeout();
    for (const auto& each : interceptors_) each->before(call);
    const auto tell = [&] {
      for (auto each = interceptors_.rbegin(); each != interceptors_.rend(); ++each) (*each)->after(call);
    };
    if constexpr (std::is_void_v<decltype(on_below())>) {
      on_below();
      tell();
    } else {
      auto result = on_below();
      if constexpr (std::is_integral_v<decltype(result)>) {
        call.result = result;
      } else {
        call.answers = answers_in(result);
      }
      tell();
      return result;
    }
  }

 public:
  InterceptedStore(c10::intrusive_ptr<c10d::Store> below, std::vector<std::shared_ptr<StoreInterceptor>> interceptors)
      : below_(std::move(below)), interceptors_(std::move(interceptors)) {}

  c10::intrusive_ptr<c10d::Store> clone() override { return intercepted(below_->clone(), interceptors_); }
  const std::chrono::milliseconds& getTimeout() const noexcept override { return below_->getTimeout(); }
  void setTimeout(const std::chrono::milliseconds& timeout) override { below_->setTimeout(timeout); }
  bool hasExtendedApi() const override { return below_->hasExtendedApi(); }

  using Store::set;
  void set(const std::string& key, const StoreValue& value) override {
    make({.name = "set", .keys = {key}, .values = {&value, 1}}, [&] { below_->set(key, value); });
  }
  using Store::compareSet;
  StoreValue compareSet(const std::string& key, const StoreValue& expected, const StoreValue& desired) override {
    return make({.name = "compareSet", .keys = {key}, .values = {&desired, 1}},
                [&] { return below_->compareSet(key, expected, desired); });
  }
  StoreValue get(const std::string& key) override {
    return make({.name = "get", .keys = {key}}, [&] { return below_->get(key); });
  }
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    return make({.name = "add", .keys = {key}, .amount = amount}, [&] { return below_->add(key, amount); });
  }
  bool deleteKey(const std::string& key) override {
    return make({.name = "deleteKey", .keys = {key}}, [&] { return below_->deleteKey(key); });
  }
  bool check(const Keys& keys) override {
    return make({.name = "check", .keys = keys}, [&] { return below_->check(keys); });
  }
  std::int64_t getNumKeys() override {
    return make({.name = "getNumKeys", .keys = {}}, [&] { return below_->getNumKeys(); });
  }
  void append(const std::string& key, const StoreValue& value) override {
    make({.name = "append", .keys = {key}, .values = {&value, 1}}, [&] { below_->append(key, value); });
  }
  std::vector<StoreValue> multiGet(const Keys& keys) override {
    return make({.name = "multiGet", .keys = keys}, [&] { return below_->multiGet(keys); });
  }
  void multiSet(const Keys& keys, const std::vector<StoreValue>& values) override {
    make({.name = "multiSet", .keys = keys, .values = values}, [&] { below_->multiSet(keys, values); });
  }
  Keys listKeys() override {
    return make({.name = "listKeys", .keys = {}}, [&] { return below_->listKeys(); });
  }
  void queuePush(const std::string& key, const StoreValue& value) override {
    make({.name = "queuePush", .keys = {key}}, [&] { below_->queuePush(key, value); });
  }
  StoreValue queuePop(const std::string& key, bool block) override {
    return make({.name = "queuePop", .keys = {key}}, [&] { return below_->queuePop(key, block); });
  }
  std::int64_t queueLen(const std::string& key) override {
    return make({.name = "queueLen", .keys = {key}}, [&] { return below_->queueLen(key); });
  }
  void wait(const Keys& keys) override {
    make({.name = "wait", .keys = keys}, [&] { below_->wait(keys); });
  }
  void wait(const Keys& keys, const std::chrono::milliseconds& timeout) override {
    make({.name = "wait", .keys = keys}, [&] { below_->wait(keys, timeout); }, &timeout);
  }

 private:
  const c10::intrusive_ptr<c10d::Store> below_;
  const std::vector<std::shared_ptr<StoreInterceptor>> interceptors_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> intercepted(c10::intrusive_ptr<c10d::Store> below,
                                            std::vector<std::shared_ptr<StoreInterceptor>> interceptors) {
  if (interceptors.empty()) return below;
  return c10::make_intrusive<InterceptedStore>(std::move(below), std::move(interceptors));
}

}  // namespace rehearse::sim
