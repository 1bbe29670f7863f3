# SPDX-License-Identifier: BSD-3-Clause
"""The library of core to which each file belongs, and the libraries that it may include because it links them.

core/CMakeLists.txt makes the libraries, and docs/ARCHITECTURE.md shows them. The houses above core are simulation, the
real mode and fakes. They do not link the compiler, except for the command `split`.
"""

import rooms

# The first matching prefix determines the library.
PARTS = (
    ("core/graph/pt2/", "pt2"), ("rehearse/graph/exported_program.h", "pt2"),
    ("core/exec/", "exec"), ("rehearse/exec/", "exec"),
    *((prefix, "compile") for area in ("shapes", "graph", "capture", "compile")
      for prefix in (f"core/{area}/", f"rehearse/{area}/")),
    ("core/parallel/splitter/", "compile"), ("rehearse/parallel/bucket_splitter.h", "compile"),
    ("core/comm/collectives/", "collectives"), ("rehearse/comm/async_tensor.h", "collectives"),
    ("rehearse/comm/functional.h", "collectives"),
    ("rehearse/comm/object_collectives.h", "collectives"),
    ("core/elastic/", "elastic"), ("rehearse/elastic/", "elastic"),
    ("sim/cli/split/", "split"),
    *((prefix, "core") for area in ("formatting", "operators", "torch_state", "comm", "job", "checks", "parallel")
      for prefix in (f"core/{area}/", f"rehearse/{area}/")),
    ("fakes/", "above"), ("sim/", "above"), ("real/", "above"),
)
MAY_INCLUDE = {
    "exec": {"exec"},
    "core": {"exec", "core"},
    "collectives": {"exec", "core", "collectives"},
    "elastic": {"exec", "core", "elastic"},
    "compile": {"exec", "core", "compile"},
    "pt2": {"exec", "core", "compile", "pt2"},
    "above": {"exec", "core", "above"},
    "split": {"exec", "core", "compile", "pt2", "above", "split"},
}


def library_of(path):
    """The library of a file, or of an include that names a public, internal or private header from its house. None: it
    has none."""
    header = rooms.header_of(path)
    return next((library for prefix, library in PARTS if header.startswith(prefix)), None)


def wrong_link(path, included):
    """The reason why a file must not include that; None: it may."""
    library, other = library_of(path), library_of(included) or library_of("core/" + included)
    if library is None or other is None or other in MAY_INCLUDE[library]:
        return None
    who = "sim, fakes and real" if library == "above" else f"the library {library}"
    may = ", ".join(sorted(MAY_INCLUDE[library] - {"above", library})) or "no other"
    return f"{who} must link without {other}, but this includes {included}; of core it may include {may}"
