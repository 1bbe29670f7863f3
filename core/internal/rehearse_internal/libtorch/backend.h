// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace rehearse::libtorch {

// Since 2.14, c10d calls these functions by new names. c10d's own definitions of the new names hold a thread-local flag
// while they call the older names, and refuse a second call meanwhile. Ranks share a thread, so a rank that waits in
// such a call would make the calls of all other ranks fail. These definitions hold no flag.
template <class Base, bool has_new_names>
class WithNewNames : public Base {
 public:
  using Base::Base;
};

template <class Base>
class WithNewNames<Base, true> : public Base {
 public:
  using Base::Base;
  using Tensors = std::vector<at::Tensor>;
  using Splits = std::vector<std::int64_t>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  WorkPtr all_gather_single(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override {
    return this->_allgather_base(output, input, options);
  }
  WorkPtr all_gather_single_coalesced(Tensors& outputs, Tensors& inputs,
                                      const c10d::AllgatherOptions& options) override {
    return this->allgather_into_tensor_coalesced(outputs, inputs, options);
  }
  // New since 2.14, without an older name that does the same.
  WorkPtr gather_single(at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& options) override {
    std::vector<Tensors> outputs;
    if (options.rootRank == this->getRank()) outputs.push_back(parts_of(output, input));
    Tensors inputs = {input};
    return this->gather(outputs, inputs, options);
  }
  WorkPtr reduce_scatter_single(at::Tensor& output, at::Tensor& input,
                                const c10d::ReduceScatterOptions& options) override {
    return this->_reduce_scatter_base(output, input, options);
  }
  WorkPtr reduce_scatter_single_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override {
    return this->reduce_scatter_tensor_coalesced(outputs, inputs, options);
  }
  WorkPtr all_to_all_single(at::Tensor& output, at::Tensor& input, Splits& output_splits, Splits& input_splits,
                            const c10d::AllToAllOptions& options) override {
    return this->alltoall_base(output, input, output_splits, input_splits, options);
  }

 private:
  Tensors parts_of(const at::Tensor& whole, const at::Tensor& like) const {
    Tensors parts = whole.view({-1}).chunk(this->getSize());
    for (at::Tensor& part : parts) part = part.view(like.sizes());
    return parts;
  }
};

template <class Base>
concept HasNewNames = requires { &Base::all_gather_single; };

// A c10d::Backend whose subclasses override the older names, in every LibTorch that Rehearse builds with.
using Backend = WithNewNames<c10d::Backend, HasNewNames<c10d::Backend>>;

}  // namespace rehearse::libtorch
