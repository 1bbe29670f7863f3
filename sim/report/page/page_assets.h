// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

// The parts of every page, from the folder assets; embed_assets.cmake makes the definitions when they change.
namespace rehearse::sim::page {

std::string_view skeleton();  // page.html
std::string_view style();     // style.css and the others, one after the other
std::string_view script();    // all scripts, in the order of CMakeLists.txt

}  // namespace rehearse::sim::page
