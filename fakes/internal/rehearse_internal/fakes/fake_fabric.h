// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <rehearse/exec/time.h>
#include <rehearse_internal/comm/fabric.h>
#include <rehearse_internal/exec/clock.h>
#include <rehearse_internal/exec/timer_queue.h>
#include <rehearse_internal/fakes/cost_model.h>

namespace rehearse::fakes {

struct Workspace;

// FakeFabric asks a MoveInterceptor about each transfer right before the bytes move. The call may come in any context,
// so it must not run user code.
class MoveInterceptor {
 public:
  virtual ~MoveInterceptor() = default;

  // False: the bytes do not move, and the fabric does not report the transfer's end. Return false only if the
  // interceptor has just ended the world.
  virtual bool may_move(const comm::Transfer& transfer) = 0;
};

// Moves the bytes of all ranks within this process: every rank's outputs hold what real ranks would compute.
//
// When: launch() asks the cost model how long the transfer takes. After this virtual time (at once if it is zero), the
// fabric moves the data and reports the completion. Until then it reads no input and writes no output.
//
// What: any strides, empty and 0-dim tensors, any group size from 1. Elements are taken in their logical, row-major
// order. Sizes may differ between ranks if c10d allows it.
//   coalesced     each part like a call of its own; all inputs are read before any output is written
//   copies        every dtype
//   reductions    float, double, half, bfloat16, int8, uint8, int32, int64, bool, float8_e4m3fn, float8_e5m2, and
//                 complex64, complex128 for SUM, AVG and PREMUL_SUM: what Gloo or NCCL reduce. Others (int16 too) fail
//                 with Gloo's "Invalid scalar type".
//   sparse        SUM of sparse COO tensors, of the dtypes that reductions have: the union of the ranks' indices,
//                 sorted, each with the sum of its values; the result is coalesced, and each rank gets its own copy
//   BAND BOR BXOR integers and bool. PREMUL_SUM: floating (except float8), complex. AVG: all but bool.
//
// How it reduces:
//   - in the order rank 0, 1, 2, ..., whatever the schedule was. So all ranks get equal bits, in every run and on every
//     CPU, apart from the payloads of NaNs.
//   - half, bfloat16 and float8 are summed in float and rounded once, to nearest even. float8_e4m3fn has no infinity: a
//     result that does not fit becomes its largest number, 448, as LibTorch converts since 2.13 (until then, NaN).
//   - AVG divides the sum by the number of ranks. Quotients of floating types are exactly rounded (NCCL multiplies by
//     1/n before it adds). Sums of integers wrap in their own width, as in NCCL, and their quotients are rounded
//     towards zero.
//   - bool: SUM is the logical "or", PRODUCT the logical "and".
//   - sparse: if one rank has several values with the same index, the fabric adds these first, in the order in which
//     the tensor stores them (Gloo: in any order), and then the ranks' sums as above.
//   - MIN and MAX: if a rank's element is a NaN, the ranks' elements are combined in the order of Gloo's ring
//     (reduce/ring_order.h). The result is a NaN or not, depending on that rank and on the element's place. NCCL drops
//     every NaN.
//   - PREMUL_SUM: each rank's values are multiplied by its own factor (rounded to the dtype) and summed.
//
// The fabric leaves unchanged: every input that is not also an output; the rest of a receive's tensor after a shorter
// message; the tensors of reduce() on ranks other than the root (as with NCCL; Gloo uses them as scratch). An input may
// share storage with its own rank's outputs (in-place allgather and reduce_scatter). Tensors of different ranks must
// not overlap, just as they cannot across processes.
//
// Blocking: never. Threads: one. Ownership: keeps no tensors; the constructor's arguments must outlive the fabric.
// Errors: if the cost model throws, launch() throws the same exception, moves nothing, and does not call `done`.
class FakeFabric final : public comm::Fabric {
 public:
  FakeFabric(exec::TimerQueue& timers, exec::Clock& clock, const CostModel& costs);
  FakeFabric(const FakeFabric&) = delete;
  FakeFabric& operator=(const FakeFabric&) = delete;
  ~FakeFabric() override;  // drops pending transfers

  // Throws c10::Error for
  //   * an undefined tensor, and an unresolved conjugate or negative view;
  //   * a tensor that is not a strided CPU tensor or, in a sparse all-reduce, not a sparse CPU tensor;
  //   * an output in which two elements share memory (an expanded tensor);
  //   * a dtype or reduce op that is not in the list above, and a PREMUL_SUM without a valid factor.
  void prepare(comm::Operation& call, const comm::GroupIdentity& group, int rank) override;

  // True, because Gloo takes messages that are shorter than the receive.
  bool takes_shorter_messages() const noexcept override { return true; }

  void launch(const comm::Transfer& transfer, comm::Completion& done) override;
  void cancel(comm::Completion& done) noexcept override;

  // Call this at most once. `interceptor` must outlive the fabric's transfers. Without one, everything moves.
  void ask_before_moving(MoveInterceptor& interceptor) noexcept;

  std::size_t pending() const noexcept;

 private:
  class Pending;
  bool move(const comm::Transfer& transfer);
  void finish(Pending& pending);
  void release(Pending& pending) noexcept;

  exec::TimerQueue& timers_;
  exec::Clock& clock_;
  const CostModel& costs_;
  MoveInterceptor* interceptor_ = nullptr;
  std::unique_ptr<Workspace> workspace_;
  std::vector<std::unique_ptr<Pending>> pool_;  // timers run for the first `in_flight_` of them
  std::size_t in_flight_ = 0;
};

}  // namespace rehearse::fakes
