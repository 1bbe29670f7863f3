// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/comm/several_works.h>

#include <atomic>
#include <cstddef>
#include <memory>

#include <ATen/core/jit_type.h>

namespace rehearse::comm {
namespace {

using c10::ivalue::Future;
using Futures = std::vector<WorkFuture>;
using Combine = c10::IValue (*)(const Futures& came);

void complete(Future& all, const Futures& came, Combine combine) {
  c10::IValue value;
  try {
    value = combine(came);
  } catch (...) {
    return all.setError(std::current_exception());
  }
  all.markCompleted(std::move(value));
}

// The devices with whose streams the combined future synchronises.
std::vector<c10::Device> devices_of(const Futures& futures) {
  std::vector<c10::Device> devices;
  for (const auto& future : futures) {
    for (const auto& device : future->devices()) {
      if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
    }
  }
  return devices;
}

// Returns a future that completes when all of `futures` have completed, with the result of `combine` or with its
// exception. An incomplete future of `futures` holds `gathering` through its callback. If `gathering` held that future
// in turn, and the world ended before the future completed, neither would ever be freed. So `gathering` takes a future
// only when that future has completed. (c10::collectAll holds all of its futures from the start, so it cannot be used
// here.) `missing` is atomic, because futures complete on several threads if each rank is a process.
WorkFuture all_of(const Futures& futures, const c10::TypePtr& type, Combine combine) {
  struct Gathering {
    WorkFuture all;
    Futures came;
    std::atomic<std::size_t> missing;
  };
  const auto gathering = std::make_shared<Gathering>();
  auto all = c10::make_intrusive<Future>(type, devices_of(futures));
  gathering->all = all;
  gathering->came.resize(futures.size());
  gathering->missing = futures.size();
  for (std::size_t i = 0; i < futures.size(); ++i) {
    futures[i]->addCallback([gathering, combine, i](Future& future) {
      gathering->came[i] = WorkFuture::reclaim_copy(&future);
      if (--gathering->missing == 0) complete(*gathering->all, gathering->came, combine);
    });
  }
  return all;
}

}  // namespace

WorkFuture tensors_of_all(const std::vector<WorkFuture>& futures) {
  return all_of(futures, c10::ListType::create(c10::TensorType::get()), [](const Futures& came) {
    std::vector<at::Tensor> tensors;
    for (const auto& future : came) {
      const auto own = future->value().toTensorVector();
      tensors.insert(tensors.end(), own.begin(), own.end());
    }
    return c10::IValue(std::move(tensors));
  });
}

WorkFuture result_of_all(const std::vector<WorkFuture>& futures) {
  return all_of(futures, c10::IntType::get(), [](const Futures& came) {
    constexpr auto success = static_cast<std::int64_t>(c10d::WorkResult::SUCCESS);
    for (const auto& future : came) {
      if (future->value().toInt() != success) return future->value();
    }
    return c10::IValue(success);
  });
}

}  // namespace rehearse::comm
