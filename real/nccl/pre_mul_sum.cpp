// SPDX-License-Identifier: BSD-3-Clause
#include "pre_mul_sum.h"

#include <array>
#include <cstring>

#include <ATen/core/Tensor.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "nccl_error.h"
#include "nccl_types.h"

namespace rehearse::real {
namespace {

const c10d::NCCLPreMulSumSupplement* supplement_of(const comm::Operation& call) {
  return dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(call.reduce_supplement.get());
}

std::array<std::byte, sizeof(double)> as_element(double factor, c10::ScalarType dtype) {
  std::array<std::byte, sizeof(double)> element{};
  const auto put = [&element](auto value) { std::memcpy(element.data(), &value, sizeof value); };
  switch (dtype) {
    case at::kHalf:
      put(c10::Half(static_cast<float>(factor)));
      break;
    case at::kBFloat16:
      put(c10::BFloat16(static_cast<float>(factor)));
      break;
    case at::kFloat:
      put(static_cast<float>(factor));
      break;
    default:
      put(factor);
  }
  return element;
}

}  // namespace

void require_factor(const comm::Operation& call) {
  const auto* const supplement = supplement_of(call);
  TORCH_CHECK_VALUE(supplement != nullptr, "ReduceOp.PREMUL_SUM needs its factor; make it with makeNCCLPreMulSum()");
  const at::Tensor& factor = supplement->tensor_factor;
  if (!factor.defined()) return;
  TORCH_CHECK_VALUE(factor.numel() == 1, "ReduceOp.PREMUL_SUM's factor has ", factor.numel(), " elements; it has one");
  TORCH_CHECK_VALUE(factor.scalar_type() == call.inputs[0].scalar_type() && factor.device() == call.inputs[0].device(),
                    "ReduceOp.PREMUL_SUM's factor is of ", factor.scalar_type(), " on ", factor.device(),
                    "; it must be as the tensor is, of ", call.inputs[0].scalar_type(), " on ",
                    call.inputs[0].device());
}

Reduction::Reduction(NcclApi& nccl, const comm::Operation& call, c10::ScalarType dtype, ncclComm_t comm)
    : nccl_(nccl), comm_(comm), op_(reduction_of(call, dtype)) {
  if (call.reduce_op != c10d::ReduceOp::PREMUL_SUM) return;
  require_factor(call);
  const auto& supplement = *supplement_of(call);
  const auto type = elements_moved(dtype).type;
  auto element = as_element(supplement.double_factor, dtype);
  const bool on_device = supplement.tensor_factor.defined();
  void* const scalar = on_device ? supplement.tensor_factor.mutable_data_ptr() : element.data();
  const auto residence = on_device ? ncclScalarDevice : ncclScalarHostImmediate;
  require_success(nccl_, "ncclRedOpCreatePreMulSum",
                  nccl_.red_op_create_pre_mul_sum(&op_, scalar, type, residence, comm_), comm_);
  own_ = true;
}

Reduction::~Reduction() {
  if (own_) static_cast<void>(nccl_.red_op_destroy(op_, comm_));
}

}  // namespace rehearse::real
