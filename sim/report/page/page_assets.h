// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

// The parts of every page, from the folder `assets`. embed_assets.cmake writes the definitions whenever an asset
// changes.
namespace rehearse::sim::page {

std::string_view skeleton();  // page.html
std::string_view style();     // style.css and the other style sheets, one after the other
std::string_view script();    // all scripts, in the order of page_assets.cmake

}  // namespace rehearse::sim::page
