// SPDX-License-Identifier: BSD-3-Clause
// LibTorch's include folder carries an fmt of its own (12), which hides the system's, and no library exports its
// functions. Inline in every unit they took half of the time that a build took, so this source file alone has them:
// our build leaves FMT_HEADER_ONLY out (core/cmake/RehearseDependencies.cmake), users' own sources keep it.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
// What fmt declares as instantiated elsewhere.
template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
}  // namespace detail
FMT_END_NAMESPACE
