// SPDX-License-Identifier: BSD-3-Clause
#include "nccl_types.h"

#include <string>

#include <c10/util/Exception.h>

namespace rehearse::real {
namespace {

using Op = c10d::ReduceOp::RedOpType;

[[noreturn]] void refuse_bitwise(Op op) {
  const char* const name = op == Op::BAND ? "BAND" : op == Op::BOR ? "BOR" : "BXOR";
  TORCH_CHECK_VALUE(false, "Cannot use ReduceOp.", name, " with NCCL");
}

}  // namespace

NcclElements elements_moved(c10::ScalarType dtype) {
  switch (dtype) {
    case at::kChar:
      return {ncclInt8};
    case at::kByte:
    case at::kBool:
    case at::kFloat8_e4m3fnuz:
    case at::kFloat8_e5m2fnuz:
      return {ncclUint8};
    case at::kFloat8_e4m3fn:
      return {ncclFloat8e4m3};
    case at::kFloat8_e5m2:
      return {ncclFloat8e5m2};
    case at::kInt:
      return {ncclInt32};
    case at::kLong:
      return {ncclInt64};
    case at::kHalf:
      return {ncclFloat16};
    case at::kBFloat16:
      return {ncclBfloat16};
    case at::kFloat:
      return {ncclFloat32};
    case at::kDouble:
      return {ncclFloat64};
    case at::kComplexFloat:
      return {ncclFloat32, 2};
    case at::kComplexDouble:
      return {ncclFloat64, 2};
    default:
      TORCH_CHECK_TYPE(false, "Input tensor data type is not supported for NCCL process group: ", dtype);
  }
}

void require_reducible(const comm::Operation& call, c10::ScalarType dtype) {
  const bool adds = call.reduce_op == Op::SUM || call.reduce_op == Op::AVG || call.reduce_op == Op::PREMUL_SUM;
  TORCH_CHECK(!c10::isComplexType(dtype) || adds, comm::name_of(call.type), " does not support ",
              comm::name_of(call.reduce_op), " on complex tensors");
  static_cast<void>(reduction_of(call, dtype));
}

ncclRedOp_t reduction_of(const comm::Operation& call, c10::ScalarType dtype) {
  switch (call.reduce_op) {
    case Op::SUM:
      return dtype == at::kBool ? ncclMax : ncclSum;
    case Op::AVG:
      TORCH_CHECK_TYPE(dtype != at::kBool, "Cannot use ReduceOp.AVG with boolean inputs");
      return ncclAvg;
    case Op::PRODUCT:
      return ncclProd;
    case Op::MIN:
      return ncclMin;
    case Op::MAX:
      return ncclMax;
    case Op::PREMUL_SUM:
      TORCH_CHECK_TYPE(dtype == at::kHalf || dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kDouble,
                       "PreMulSum Data type must be half, float, bfloat16 or double");
      return ncclSum;
    case Op::BAND:
    case Op::BOR:
    case Op::BXOR:
      refuse_bitwise(call.reduce_op);
    default:
      TORCH_CHECK_VALUE(false, "Unhandled ReduceOp");
  }
}

}  // namespace rehearse::real
