# SPDX-License-Identifier: BSD-3-Clause
"""Values as pipes between processes carry them."""

import io
import multiprocessing.shared_memory
import pickle

import torch

from . import _ranks


def _is_plain(value):
    is_tensor = type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided
    return is_tensor and value.is_leaf and not value.is_meta


def _is_shared_memory(value):
    return isinstance(value, multiprocessing.shared_memory.SharedMemory)


class _Pickler(pickle.Pickler):
    """Keeps shared objects and tensors as they are."""

    def __init__(self, file, kept):
        super().__init__(file)
        self._kept = kept

    def persistent_id(self, value):
        if getattr(type(value), "stays_itself", False) or _is_shared_memory(value) or _is_plain(value):
            self._kept.append(value)
            return len(self._kept) - 1
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, kept, shares_tensors):
        super().__init__(file)
        self._kept, self._shares_tensors = kept, shares_tensors
        self._given = {}  # by index: one tensor stays one

    def persistent_load(self, index):
        value = self._kept[index]
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self._given:
            own = value.detach()
            if not self._shares_tensors and not value.is_shared():
                own = own.clone()
            is_parameter = isinstance(value, torch.nn.Parameter)
            own = torch.nn.Parameter(own, False) if is_parameter else own
            self._given[id(value)] = own.requires_grad_(value.requires_grad)
        return self._given[id(value)]


class Packed:
    """A value that each rank unpacks for itself: a copy, made now, but for shared objects and tensors.

    Tensors are shared by all, as torch's processes share them; or each unpacks a copy of those that are not in shared
    memory.
    """

    def __init__(self, value, shares_tensors=True):
        data = io.BytesIO()
        self._kept, self._shares_tensors = [], shares_tensors
        _Pickler(data, self._kept).dump(value)
        self._data = data.getvalue()
        self.sender = _ranks.current().number

    def has_tensors(self):
        return any(isinstance(each, torch.Tensor) for each in self._kept)

    def size(self):
        return len(self._data)

    def unpack(self):
        return _Unpickler(io.BytesIO(self._data), self._kept, self._shares_tensors).load()
