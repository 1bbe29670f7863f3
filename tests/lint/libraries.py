# SPDX-License-Identifier: BSD-3-Clause
"""Which library of core a file belongs to, and which libraries it may include: what it would link with them.

core/CMakeLists.txt makes the libraries, and docs/ARCHITECTURE.md draws them. The houses above core are simulation, the
real mode and fakes: they do without the compiler, but for the command `split`.
"""

import rooms

# The first prefix that fits says the library.
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
    """Of a file, or of an include that names a public, internal or private header from its house; None: of none."""
    header = rooms.header_of(path)
    return next((library for prefix, library in PARTS if header.startswith(prefix)), None)


def wrong_link(path, included):
    """Why a file must not include that; None: it may."""
    library, other = library_of(path), library_of(included) or library_of("core/" + included)
    if library is None or other is None or other in MAY_INCLUDE[library]:
        return None
    who = "sim, fakes and real" if library == "above" else f"the library {library}"
    may = ", ".join(sorted(MAY_INCLUDE[library] - {"above", library})) or "no other"
    return f"{who} must link without {other}, but this includes {included}; of core it may include {may}"
