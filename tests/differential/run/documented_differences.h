// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <set>
#include <string>

#include "differential/run/observe.h"
#include "differential/run/settings.h"

// The differences between eager mode and graphs that docs/COMPILE.md lists. They are no findings.
namespace rehearse_test::differential {

// True for the error of a backward that needs a tensor which was changed in place.
bool changed_since(const std::string& error);

// True if compiled code alone throws DDP's error about a parameter that two backwards reach.
bool is_marked_ready_twice(const Difference& difference);

// Compares like compare(), with one exception. After the call, the caller may change a tensor that the backward needs.
// Then eager mode refuses the backward, but a graph may have its own copy of the tensor (docs/COMPILE.md). If only the
// graph's backward runs, its gradients must equal those of `copies`, a run in which the caller changed a copy. Returns
// nothing if that run throws or has twins (Observed::has_twins), because its gradients then say nothing.
std::optional<Difference> compare_with_copies(const Observed& eager, const Observed& copies, const Observed& compiled);

// Makes compare() tolerate small differences of floating-point and complex values, because sums over other layouts add
// in another order.
void allow_other_bits(Observed& expected);

// Makes compare() ignore the strides of empty tensors. If sizes depend on data, a graph computes strides as if each of
// these sizes were at least 2, so the strides of an empty tensor may differ from eager mode. If a back end chooses
// other layouts, the graph restores the computed strides.
void leave_out_strides_of_empty_tensors(Observed& seen);

// True if eager mode throws and the graph does not. Also true if eager mode throws in the forward, but the graph only
// in the backward.
bool misses_an_error(const Outcome& outcome);

// True for an error that only eager mode has, for one of these reasons. A graph has its own copies of the tensors that
// its backward needs. A graph's results are not leaves. A graph changes a checkpoint's inputs once, and eager mode
// twice. A graph has one autograd node for its results and the changed arguments, but eager DDP counts a parameter as
// unused if only changed arguments lead to it. A graph drops unused code, inside blocks too, so it does not throw the
// errors of this code.
bool is_error_of_eager_alone(const Outcome& outcome);

// True for a refusal that docs/COMPILE.md lists and that a program with these families of statements may cause.
bool is_documented_refusal(const std::string& refusal, const std::set<std::string>& families);

// The same for an error of compiled code alone. Calls behind the error run eagerly, or the error names a cure.
bool is_documented_error(const Difference& difference, const std::set<std::string>& families);

// True if a result is a new tensor in eager mode, but an earlier tensor in the graph, because a checkpoint's code
// returns a tensor from outside. (For example, dropout() in evaluation mode returns its argument.) A compiled
// checkpoint returns that tensor itself.
bool is_result_from_outside(const Outcome& outcome);

}  // namespace rehearse_test::differential
