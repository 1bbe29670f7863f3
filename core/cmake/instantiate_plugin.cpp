// SPDX-License-Identifier: BSD-3-Clause
// A plugin of g++ that makes precompiled headers hold more.
//
// LibTorch's inline functions use some 11,000 templates. g++ instantiates templates at the end of a unit, and it writes
// a precompiled header before that, so each unit that uses the header would instantiate them anew: 2.5 s. With this
// plugin, `#pragma rehearse instantiate` at the end of the header does it once. The units are compiled without the
// plugin, and their objects stay the same. It waits for a flag of g++ like clang's -fpch-instantiate-templates.
#include <gcc-plugin.h>

#include <c-family/c-pragma.h>
#include <cp/cp-tree.h>
#include <plugin-version.h>

int plugin_is_GPL_compatible;

namespace {

void instantiate(cpp_reader*) {
  const int before = at_eof;
  at_eof = 1;  // otherwise g++ only puts the templates off again
  instantiate_pending_templates(0);
  at_eof = before;
}

void register_pragma(void*, void*) { c_register_pragma("rehearse", "instantiate", instantiate); }

}  // namespace

int plugin_init(plugin_name_args* info, plugin_gcc_version* version) {
  if (!plugin_default_version_check(version, &gcc_version)) return 1;
  register_callback(info->base_name, PLUGIN_PRAGMAS, register_pragma, nullptr);
  return 0;
}
