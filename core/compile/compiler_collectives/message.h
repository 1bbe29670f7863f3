// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rehearse/compile/errors.h>
#include <rehearse_internal/archive/archive.h>

namespace rehearse::compiler {

// The value of which `sender` sent the bytes. Throws CompileError, which names the sender, if they are damaged.
template <class T>
T received(std::string_view bytes, std::string_view sender) {
  try {
    return archive::unpacked<T>(bytes, fmt::format("what {} sent about a compilation", sender));
  } catch (const archive::DamagedBytes& error) {
    throw CompileError(error.what());
  }
}

}  // namespace rehearse::compiler
