# SPDX-License-Identifier: BSD-3-Clause
"""The user's own modules: each rank imports its own, as each process would.

sys.modules is one dictionary for all ranks. For a module of the user's, it holds a stand-in that passes everything on
to the calling rank's module.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import sysconfig
import types

from . import _ranks

_get = object.__getattribute__


def _library_folders():
    """Folders whose modules all ranks share: the standard library, site-packages, this package."""
    paths = sysconfig.get_paths()
    folders = {os.path.realpath(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {os.path.dirname(path(__file__)) for path in (os.path.realpath, os.path.abspath)}
    endings = ("site-packages", "dist-packages")
    folders |= {os.path.realpath(path) for path in sys.path if path.rstrip("/").endswith(endings)}
    return sorted(folder + os.sep for folder in folders)


LIBRARY_FOLDERS = tuple(_library_folders())

# Packages of which each rank has its own although they are libraries (--own).
OWN = set(filter(None, os.environ.get("REHEARSE_OWN", "").split(",")))


# Whether the host runs a script that starts its own ranks. Then it has its own modules, too.
of_parent = False


def is_users(spec):
    """Whether each rank has its own of the module."""
    is_source = isinstance(spec.loader, importlib.machinery.SourceFileLoader) and spec.origin is not None
    is_own = spec.name.partition(".")[0] in OWN
    return is_source and (is_own or not os.path.realpath(spec.origin).startswith(LIBRARY_FOLDERS))


class RankModule(types.ModuleType):
    """Stands in sys.modules for one module of each rank."""

    def __getattribute__(self, name):
        find = _get(self, "__dict__").get("_rehearse_module")
        if find is None or name == "__class__":
            return RankModule if name == "__class__" else _get(self, name)
        module = find()
        try:
            return getattr(module, name)
        except AttributeError:
            inner = sys.modules.get(f"{module.__name__}.{name}")
            if not isinstance(inner, RankModule):
                raise
            inner.__spec__  # imports it in this rank
            setattr(module, name, inner)
            return inner

    def __setattr__(self, name, value):
        find = _get(self, "__dict__").get("_rehearse_module")
        if find is None:  # importlib prepares it
            object.__setattr__(self, name, value)
        else:
            setattr(find(), name, value)

    def __delattr__(self, name):
        delattr(_get(self, "__dict__")["_rehearse_module"](), name)

    def __dir__(self):
        return dir(_get(self, "__dict__")["_rehearse_module"]())

    def __repr__(self):
        return repr(_get(self, "__dict__")["_rehearse_module"]())


def _stand_in(name, find):
    module = RankModule(name)
    _get(module, "__dict__")["_rehearse_module"] = find
    return module


def _module_of_rank(name, spec):
    modules = _ranks.current().modules
    if name in modules:
        return modules[name]
    module = types.ModuleType(name)
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    module.__package__ = spec.parent
    if spec.submodule_search_locations is not None:
        module.__path__ = spec.submodule_search_locations
    modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        modules.pop(name, None)
        raise
    return module


class _Loader(importlib.abc.Loader):
    def __init__(self, spec):
        self.spec = spec

    def create_module(self, spec):
        return RankModule(spec.name)

    # By now sys.modules has it, where the module's own code may look for itself.
    def exec_module(self, module):
        find = _get(module, "__dict__")["_rehearse_module"] = lambda: _module_of_rank(self.spec.name, self.spec)
        find()


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if not _ranks.in_rank() and not of_parent:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not is_users(spec):
            return None
        is_package = spec.submodule_search_locations is not None
        own = importlib.machinery.ModuleSpec(name, _Loader(spec), origin=spec.origin, is_package=is_package)
        own.submodule_search_locations = spec.submodule_search_locations
        return own


def install():
    for name in sorted(OWN.intersection(sys.modules)):
        sys.exit(f"rehearse: --own={name}: Rehearse or torch uses this package, so all ranks share it")
    sys.meta_path.insert(0, _Finder())
    of_host = sys.modules["__main__"]
    main = _stand_in("__main__", lambda: _ranks.current().modules.get("__main__", of_host))
    sys.modules["__main__"] = sys.modules["__mp_main__"] = main


def new_main(path, name="__main__"):
    """A rank's own __main__ for the script at `path`. `name`: what it takes itself for."""
    module = types.ModuleType(name)
    module.__file__, module.__builtins__ = path, __builtins__
    _ranks.current().modules["__main__"] = module
    return module
