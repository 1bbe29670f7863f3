// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rehearse::sim {

// One call of a rank on the store.
struct StoreCall {
  using Value = std::vector<std::uint8_t>;

  std::string_view name;  // as in c10d
  std::vector<std::string> keys;
  std::chrono::milliseconds timeout = {};  // of the store
  std::span<const Value> values = {};  // for the keys, from the caller of set(), compareSet(), append() and multiSet()
  std::int64_t amount = 0;             // from the caller of add()

  // Set after the call.
  std::span<Value> answers = {};  // of get(), multiGet() and compareSet(); an interceptor may change them
  std::int64_t result = 0;        // of add(), check() and deleteKey()
};

// Sees each call of a rank on the store. May outlive its world, as stores do.
class StoreInterceptor {
 public:
  virtual ~StoreInterceptor() = default;

  // May block. If it throws, the caller gets the exception, and the store does not get the call.
  virtual void before(const StoreCall& call) = 0;
  // Omitted if the call threw.
  virtual void after(const StoreCall& call) = 0;
};

// A store in front of `below`. Interceptors see each call before it in their order, and after it in the opposite order.
// Blocks and throws as they and `below` do.
c10::intrusive_ptr<c10d::Store> intercepted(c10::intrusive_ptr<c10d::Store> below,
                                            std::vector<std::shared_ptr<StoreInterceptor>> interceptors);

}  // namespace rehearse::sim
