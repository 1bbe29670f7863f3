// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <any>
#include <map>
#include <memory>
#include <string_view>

#include <rehearse/job/rank_context.h>
#include <rehearse/job/runner.h>
#include <rehearse_internal/job/run_record.h>

namespace rehearse {

// Implements the parts of RankContext that are the same in all modes.
class RankContextBase : public RankContext {
 public:
  at::Generator& generator() const noexcept final { return generator_; }
  at::Device device() const noexcept final { return device_; }
  void compute(VirtualDuration duration) final;
  void progress(std::int64_t done, std::int64_t total, std::string_view text) final;

 protected:
  // `record` and `show` must outlive it.
  RankContextBase(RunRecord& record, const ShowProgress& show, at::Generator generator, at::Device device);

  std::shared_ptr<void> begin_label(std::string_view name) final;
  void count_check(std::string_view what) final;
  void keep_result(std::string_view name, at::Tensor value) final;
  std::any& local_slot(const void* key) final { return locals_[key]; }

 private:
  // `duration` is positive.
  virtual void spend(VirtualDuration duration) = 0;

  RunRecord& record_;
  const ShowProgress& show_;
  mutable at::Generator generator_;
  const at::Device device_;
  std::map<const void*, std::any> locals_;  // looked up by address; never iterated
};

}  // namespace rehearse
