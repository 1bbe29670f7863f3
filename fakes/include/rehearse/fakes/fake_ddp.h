// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/parallel/active_ddp.h>
#include <rehearse/parallel/ddp_options.h>
#include <rehearse/parallel/module_traits.h>

namespace rehearse::fakes {

// A wrapper that looks like DistributedDataParallel to the compiler: it carries a bucket size, by which the compiler
// splits the module's graph, but neither hooks parameters nor communicates. For tests of splitting in one process
// (PyTorch's FakeDDP).
//
//   rehearse::fakes::FakeDDP ddp(net, /*bucket_cap_mb=*/1);
//   auto compiled = rehearse::compile(ddp, {.backend = "aot_eager"});
//
// `Net` is a module holder or a std::shared_ptr to a module. FakeDDP shares that module, and so do its copies. Include
// your own module's header, because fake_ddp.h includes nothing of torch::nn.
template <class Net>
class FakeDDP {
 public:
  using Module = typename parallel::ModuleTraits<Net>::Module;

  // The default bucket size is 25 MiB. `parameters_to_ignore` works as in DistributedDataParallelOptions.
  explicit FakeDDP(Net net, double bucket_cap_mb = 25, std::vector<std::string> parameters_to_ignore = {})
      : net_(std::move(net)),
        buckets_(parallel::buckets_of(
            {.bucket_cap_mb = bucket_cap_mb, .parameters_to_ignore = std::move(parameters_to_ignore)})) {}

  template <class... Args>
  auto forward(Args&&... args) {
    return forward_with([this]<class... Each>(Each&&... each) { return module().forward(std::forward<Each>(each)...); },
                        std::forward<Args>(args)...);
  }
  template <class... Args>
  auto operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }

  // Like forward(), but calls `body` instead of the module's forward().
  template <class Body, class... Args>
  auto forward_with(Body&& body, Args&&... args) {
    const parallel::ActiveDdp active(buckets_);
    return body(std::forward<Args>(args)...);
  }

  Net& net() noexcept { return net_; }
  Module& module() const { return *parallel::ModuleTraits<Net>::pointer(net_); }
  Module* operator->() const { return &module(); }
  const parallel::DdpBuckets& bucket_options() const noexcept { return buckets_; }

 private:
  Net net_;
  parallel::DdpBuckets buckets_;
};

}  // namespace rehearse::fakes
