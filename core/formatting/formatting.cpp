// SPDX-License-Identifier: BSD-3-Clause
// LibTorch's include folder contains its own fmt (12), which hides the system's fmt. No library exports the functions
// of LibTorch's fmt. If every source file compiled them inline, they would take half of the build time. Therefore only
// this source file compiles them: core/cmake/RehearseDependencies.cmake removes FMT_HEADER_ONLY from our build. Users'
// own sources still compile with FMT_HEADER_ONLY.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
// The templates that fmt declares as instantiated elsewhere.
template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
}  // namespace detail
FMT_END_NAMESPACE
