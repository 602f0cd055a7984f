#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the arrays beside this file with NumPy itself; tests/tool/npy_test.cpp knows their values."""
import os

import numpy as np
from numpy.lib import format as npy

here = os.path.dirname(os.path.abspath(__file__))


def save(name, array, version=None):
    with open(os.path.join(here, name + ".npy"), "wb") as file:
        npy.write_array(file, array, version=version)


for code in ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]:
    low = 0 if code[0] == "u" else -5
    save(code, np.arange(low, low + 15).astype(code).reshape(3, 5))
save("bool", np.array([[True, False, True]]))
save("scalar", np.full((), 2.5, dtype="f4"))
save("one_axis", np.arange(7, dtype="f4"))
save("four_axes", np.arange(24, dtype="f2").reshape(2, 1, 3, 4))
save("empty", np.zeros((0, 4), dtype="f4"))
save("version2", np.arange(6, dtype="f4").reshape(2, 3), (2, 0))
save("version3", np.arange(6, dtype="f4").reshape(2, 3), (3, 0))

save("refused_fortran", np.asfortranarray(np.arange(6, dtype="f4").reshape(2, 3)))
save("refused_big_endian", np.arange(6, dtype=">f4"))
save("refused_complex", np.arange(6, dtype="c8"))
save("refused_text", np.array(["key", "value"]))
save("refused_structured", np.zeros(2, dtype=[("key", "f4"), ("value", "f2")]))
save("refused_object", np.array([{}, None], dtype=object))
