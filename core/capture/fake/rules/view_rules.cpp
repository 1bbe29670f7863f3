// SPDX-License-Identifier: BSD-3-Clause
// Rules for views that select and reshape, for the backwards of such views, and for padding and repetition. LibTorch's
// own kernels for these operators need plain sizes.
#include <algorithm>
#include <limits>
#include <optional>

#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>

#include <rehearse_internal/capture/fake_errors.h>
#include "capture/fake/call/results.h"
#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {
namespace {

bool all_have_hints(c10::SymIntArrayRef sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](const c10::SymInt& size) { return size.has_hint(); });
}

// view(self, size). One size may be -1.
Outputs view(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const SymInts wanted = call.sym_ints(1);
  const c10::SymDimVector sizes = at::infer_size_dv(c10::SymIntArrayRef(wanted), self.sym_numel());
  auto strides = at::detail::computeStride(self.sym_sizes(), self.sym_strides(), sizes);
  if (!strides && !all_have_hints(sizes)) {  // with unbacked sizes, computeStride() may fail to find the strides
    if (!is_known(self.unsafeGetTensorImpl()->sym_is_contiguous())) {
      throw UnknownShape(call.facts.name, "whether the strides allow it depends on data", exec::CallSite::capture());
    }
    strides = c10::SymDimVector(contiguous_strides(sizes));
  }
  TORCH_CHECK(strides, "view size is not compatible with input tensor's size and stride (at least one dimension spans ",
              "across two contiguous subspaces). Use .reshape(...) instead.");
  return {view_of(self, SymInts(sizes.begin(), sizes.end()), SymInts(strides->begin(), strides->end()))};
}

// _reshape_alias(self, size, stride)
Outputs reshape_alias(const Call& call) { return {view_of(call.tensor(0), call.sym_ints(1), call.sym_ints(2))}; }

// Makes the kernel's own checks here: compiled code drops a view that nobody uses, and then the kernel checks nothing.
// The real storage may be larger than the fake's. Therefore a view that reaches beyond the fake's storage throws
// UnknownShape and not the kernel's error: the rest of the code can then run eagerly, where the kernel checks.
void check_strided(const Call& call, const SymInts& sizes, const SymInts& strides, const c10::SymInt& offset) {
  TORCH_CHECK(sizes.size() == strides.size(), "mismatch in length of strides and shape");
  TORCH_SYM_CHECK(offset.sym_ge(0), "Tensor: invalid storage offset ", offset);
  const at::Tensor& self = call.tensor(0);
  const c10::SymInt bytes = self.storage().sym_nbytes();
  c10::SymInt last = offset;
  c10::SymBool is_empty = false;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    TORCH_SYM_CHECK(sizes[d].sym_ge(0), "as_strided: negative size in ", sizes);
    TORCH_SYM_CHECK(strides[d].sym_ge(0),
                    "as_strided: Negative strides are not supported at the moment, got strides: ", strides);
    last += (sizes[d] - 1) * strides[d];
    is_empty = is_empty.sym_or(sizes[d].sym_eq(0));
  }
  const c10::SymInt needed = (last + 1) * static_cast<std::int64_t>(self.itemsize());
  const c10::SymBool fits = is_empty.sym_or(needed.sym_le(bytes));
  if (!TORCH_GUARD_OR_TRUE(fits)) {
    throw UnknownShape(call.facts.name, "it reaches behind the memory that its argument is known to have",
                       exec::CallSite::capture());
  }
  TORCH_SYM_CHECK(fits, "setStorage: sizes ", sizes, ", strides ", strides, ", storage offset ", offset,
                  ", and itemsize ", self.itemsize(), " requiring a storage size of ", needed,
                  " are out of bounds for storage of size ", bytes);
}

// as_strided(self, size, stride, storage_offset)
Outputs as_strided(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const c10::SymInt offset = call.has(3) ? call.sym_int(3) : self.sym_storage_offset();
  SymInts sizes = call.sym_ints(1), strides = call.sym_ints(2);
  check_strided(call, sizes, strides, offset);
  return {view_of(self, std::move(sizes), std::move(strides), offset)};
}

// expand(self, size, implicit)
Outputs expand(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  SymInts sizes = call.sym_ints(1);
  SymInts strides(sizes.size(), c10::SymInt(0));
  TORCH_CHECK(sizes.size() >= static_cast<std::size_t>(self.dim()), "expand: the number of sizes provided (",
              sizes.size(), ") must be greater or equal to the number of dimensions in the tensor (", self.dim(), ")");
  if (self.dim() == 0) return {view_of(self, std::move(sizes), std::move(strides))};
  const std::size_t added = sizes.size() - static_cast<std::size_t>(self.dim());
  for (std::size_t d = sizes.size(); d-- > 0;) {
    const bool is_new = d < added;
    const c10::SymInt size = is_new ? c10::SymInt(1) : self.sym_sizes()[d - added];
    if (!is_new) strides[d] = self.sym_strides()[d - added];
    if (is_new && d + 1 < sizes.size()) strides[d] = sizes[d + 1] * strides[d + 1];
    const c10::SymBool keeps = sizes[d].sym_eq(-1);
    if (holds(keeps)) {
      TORCH_CHECK(!is_new, "expand: -1 is not allowed in a leading, non-existing dimension ", d);
      sizes[d] = size;
    } else if (is_known(size.sym_eq(1))) {
      if (!is_known(sizes[d].sym_eq(1))) strides[d] = 0;
      if (!is_new) sizes[d] = choose(keeps, size, sizes[d]);
    } else {
      TORCH_SYM_CHECK(size.sym_eq(sizes[d]).sym_or(keeps), "expand: the expanded size (", sizes[d],
                      ") must match the existing size (", size, ") at non-singleton dimension ", d);
      sizes[d] = size;
    }
  }
  return {view_of(self, std::move(sizes), std::move(strides))};
}

// A negative position counts from the end. If only the running program knows the sign, the graph makes the choice.
c10::SymInt from_start(const c10::SymInt& position, const c10::SymInt& size) {
  const c10::SymBool is_negative = position.sym_lt(0);
  const std::optional<bool> known = answer(is_negative);
  if (!known) return choose(is_negative, position + size, position);
  return *known ? position + size : position;
}

c10::SymInt at_least_zero(const c10::SymInt& number) {
  const std::optional<bool> is_negative = answer(number.sym_lt(0));
  if (!is_negative) return number.max(0);
  return *is_negative ? c10::SymInt(0) : number;
}

c10::SymInt at_most(const c10::SymInt& number, const c10::SymInt& most) {
  const std::optional<bool> is_more = answer(number.sym_gt(most));
  if (!is_more) return number.min(most);
  return *is_more ? most : number;
}

// A position clamped to [0, size]. A negative position counts from the end.
c10::SymInt clamp_position(const c10::SymInt& position, const c10::SymInt& size) {
  return at_most(at_least_zero(from_start(position, size)), size);
}

std::optional<c10::SymInt> optional_int(const Call& call, std::size_t i) {
  return call.has(i) ? std::optional(call.sym_int(i)) : std::nullopt;
}

// slice(self, dim, start, end, step)
Outputs slice(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  TORCH_CHECK(self.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  const std::size_t dim = wrap(call.integer(1), self.dim());
  const c10::SymInt size = self.sym_sizes()[dim], step = call.sym_int(4);
  TORCH_SYM_CHECK(step.sym_gt(0), "slice step must be positive");
  const c10::SymInt start = clamp_position(optional_int(call, 2).value_or(0), size);
  const std::optional<c10::SymInt> given_end = optional_int(call, 3);
  const bool to_end = !given_end || given_end->maybe_as_int() == std::numeric_limits<std::int64_t>::max();
  const c10::SymInt end = to_end ? size : clamp_position(*given_end, size);
  SymInts sizes = self.sym_sizes().vec(), strides = self.sym_strides().vec();
  const c10::SymInt offset = self.sym_storage_offset() + start * strides[dim];
  const c10::SymInt length = at_least_zero(end - start);
  sizes[dim] = is_known(step.sym_eq(1)) ? length : (length + step - 1) / step;
  strides[dim] = strides[dim] * step;
  return {view_of(self, std::move(sizes), std::move(strides), offset)};
}

TensorSpec select_at(const at::Tensor& self, std::size_t dim, const c10::SymInt& index) {
  SymInts sizes = self.sym_sizes().vec(), strides = self.sym_strides().vec();
  const c10::SymInt offset = self.sym_storage_offset() + index * strides[dim];
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(dim));
  return view_of(self, std::move(sizes), std::move(strides), offset);
}

// select(self, dim, index)
Outputs select(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  TORCH_CHECK_INDEX(self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  const std::size_t dim = wrap(call.integer(1), self.dim());
  const c10::SymInt& size = self.sym_sizes()[dim];
  const c10::SymInt index = call.sym_int(2);
  const bool in_range = !holds(index.sym_ge(size)) && !holds((-size).sym_gt(index));
  TORCH_CHECK_INDEX(in_range, "select(): index ", index, " out of range for tensor of size ", self.sym_sizes(),
                    " at dimension ", dim);
  return {select_at(self, dim, from_start(index, size))};
}

// unbind(self, dim). The number of results must be known, so a guard fixes a symbolic size of `dim`.
Outputs unbind(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const std::size_t dim = wrap_existing(call.integer(1), self.dim());
  const std::int64_t size = self.sym_sizes()[dim].guard_int("unbind", 0);
  std::vector<TensorSpec> all;
  for (std::int64_t i = 0; i < size; ++i) all.push_back(select_at(self, dim, i));
  return {std::move(all)};
}

TensorSpec piece_of(const at::Tensor& self, std::size_t dim, const c10::SymInt& start, const c10::SymInt& length) {
  SymInts sizes = self.sym_sizes().vec();
  sizes[dim] = length;
  return view_of(self, std::move(sizes), self.sym_strides().vec(),
                 self.sym_storage_offset() + start * self.sym_strides()[dim]);
}

// split(self, split_size, dim). The number of results must be known, so a guard fixes a symbolic number.
Outputs split(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  TORCH_CHECK(self.dim() > 0, "split expects at least a 1-dimensional tensor");
  const std::size_t dim = wrap_existing(call.integer(2), self.dim());
  const c10::SymInt size = self.sym_sizes()[dim], each = call.sym_int(1);
  if (is_known(each.sym_eq(0))) {
    TORCH_SYM_CHECK(size.sym_eq(0), "split_size can only be 0 if dimension size is 0");
    return {std::vector<TensorSpec>{piece_of(self, dim, 0, size)}};
  }
  const std::int64_t whole = std::max<std::int64_t>(((size + each - 1) / each).guard_int("split", 0), 1);
  std::vector<TensorSpec> pieces;
  for (std::int64_t i = 0; i < whole; ++i) {
    const c10::SymInt start = each * i;
    pieces.push_back(piece_of(self, dim, start, i + 1 < whole ? each : size - start));
  }
  return {std::move(pieces)};
}

// split_with_sizes(self, split_sizes, dim)
Outputs split_with_sizes(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const std::size_t dim = wrap_existing(call.integer(2), self.dim());
  std::vector<TensorSpec> pieces;
  c10::SymInt start = 0;
  for (const c10::SymInt& length : call.sym_ints(1)) {
    pieces.push_back(piece_of(self, dim, start, length));
    start = start + length;
  }
  TORCH_SYM_CHECK(start.sym_eq(self.sym_sizes()[dim]), "split_with_sizes expects split_sizes to sum exactly to ",
                  self.sym_sizes()[dim], " (input tensor's size at dimension ", dim, ")");
  return {std::move(pieces)};
}

// diagonal(self, offset, dim1, dim2)
Outputs diagonal(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const std::size_t first = wrap(call.integer(2), self.dim()), second = wrap(call.integer(3), self.dim());
  TORCH_CHECK(first != second, "diagonal dimensions cannot be identical ", first, ", ", second);
  const std::int64_t offset = call.integer(1);
  const c10::SymInt rows = self.sym_sizes()[first] + std::min<std::int64_t>(offset, 0);
  const c10::SymInt columns = self.sym_sizes()[second] - std::max<std::int64_t>(offset, 0);
  const c10::SymInt length = is_known(rows.sym_eq(columns)) ? rows : rows.min(columns);
  const c10::SymInt stride_of_start = self.sym_strides()[offset < 0 ? first : second];
  SymInts sizes, strides;
  for (std::size_t d = 0; d < static_cast<std::size_t>(self.dim()); ++d) {
    if (d == first || d == second) continue;
    sizes.push_back(self.sym_sizes()[d]);
    strides.push_back(self.sym_strides()[d]);
  }
  sizes.push_back(length.max(0));
  strides.push_back(self.sym_strides()[first] + self.sym_strides()[second]);
  const c10::SymInt start = holds(length.sym_le(0)) ? c10::SymInt(0) : stride_of_start * std::abs(offset);
  return {view_of(self, std::move(sizes), std::move(strides), self.sym_storage_offset() + start)};
}

// unfold(self, dimension, size, step)
Outputs unfold(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const std::size_t dim = wrap(call.integer(1), self.dim());
  const std::int64_t size = call.integer(2), step = call.integer(3);
  SymInts sizes = self.sym_sizes().vec(), strides = self.sym_strides().vec();
  if (sizes.empty()) return {view_of(self, {size}, {1})};
  TORCH_SYM_CHECK(sizes[dim].sym_ge(size), "unfold: maximum size for tensor at dimension ", dim, " is ", sizes[dim]);
  sizes.push_back(size);
  strides.push_back(strides[dim]);
  sizes[dim] = (sizes[dim] - size) / step + 1;
  strides[dim] = strides[dim] * step;
  return {view_of(self, std::move(sizes), std::move(strides))};
}

// slice_backward(grad_output, input_sizes, ...): zeros except in the slice.
Outputs gradient_of_whole(const Call& call) { return {result(call, call.sym_ints(1), call.tensor(0).scalar_type())}; }

// constant_pad_nd(self, pad, value). `pad` has pairs of numbers, the last dimension first.
Outputs constant_pad(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const SymInts pad = call.sym_ints(1);
  SymInts sizes = self.sym_sizes().vec();
  TORCH_CHECK(pad.size() % 2 == 0 && pad.size() / 2 <= sizes.size(), "constant_pad_nd: ", pad.size(),
              " numbers do not pad ", sizes.size(), " dimensions");
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    c10::SymInt& size = sizes[sizes.size() - 1 - i];
    size = size + pad[2 * i] + pad[2 * i + 1];
  }
  const bool only_cuts =
      std::all_of(pad.begin(), pad.end(), [](const c10::SymInt& one) { return is_known(one.sym_le(0)); });
  if (only_cuts) {  // the result is a copy of a slice
    const at::Tensor cut = make_fake(view_of(self, sizes, self.sym_strides().vec()), self);
    return {result_like(call, cut, self.scalar_type())};
  }
  return {result(call, std::move(sizes), self.scalar_type(), suggested_format(self))};
}

// repeat(self, repeats)
Outputs repeat(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  SymInts sizes = call.sym_ints(1);
  TORCH_CHECK(sizes.size() >= static_cast<std::size_t>(self.dim()), "Number of dimensions of repeat dims can not be ",
              "smaller than number of dimensions of tensor");
  const std::size_t added = sizes.size() - static_cast<std::size_t>(self.dim());
  for (std::size_t d = added; d < sizes.size(); ++d) sizes[d] = sizes[d] * self.sym_sizes()[d - added];
  return {result(call, std::move(sizes), self.scalar_type())};
}

constexpr std::pair<const std::string_view, Rule> kViewRules[] = {
    {"aten::view", view},
    {"aten::_unsafe_view", view},
    {"aten::_reshape_alias", reshape_alias},
    {"aten::as_strided", as_strided},
    {"aten::expand", expand},
    {"aten::slice.Tensor", slice},
    {"aten::select.int", select},
    {"aten::unbind.int", unbind},
    {"aten::split.Tensor", split},
    {"aten::split_with_sizes", split_with_sizes},
    {"aten::diagonal", diagonal},
    {"aten::unfold", unfold},
    {"aten::slice_backward", gradient_of_whole},
    {"aten::select_backward", gradient_of_whole},
    {"aten::diagonal_backward", gradient_of_whole},
    {"aten::unfold_backward", gradient_of_whole},
    {"aten::constant_pad_nd", constant_pad},
    {"aten::repeat", repeat},
};

}  // namespace

RuleTable view_rules() { return kViewRules; }

}  // namespace rehearse::capture
