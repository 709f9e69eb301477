"""A stand-in for the part of ``cupyx.scipy.sparse`` that snnmap uses: SciPy's on device arrays."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from tests.emulator.cupy_on_host import bare, device


class csr_matrix:  # noqa: N801  (CuPy's name)
    """A matrix of float64 (products of integers do not exist in CuPy) on the device."""

    def __init__(self, values: Any, shape: tuple[int, int] | None = None) -> None:
        own = values if sparse.issparse(values) else sparse.csr_matrix(bare(values), shape=shape)
        assert own.dtype == "float64"
        self._own = own

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, csr_matrix):
            return csr_matrix(self._own @ other._own)
        return device(self._own @ bare(other))

    def __getitem__(self, rows: slice) -> csr_matrix:
        return csr_matrix(self._own[rows])

    def tocsr(self) -> csr_matrix:
        return csr_matrix(self._own.tocsr())

    @property
    def nnz(self) -> int:
        return int(self._own.nnz)

    @property
    def data(self) -> Any:
        return device(self._own.data)

    @data.setter
    def data(self, values: Any) -> None:
        self._own.data[:] = bare(values)

    @property
    def shape(self) -> tuple[int, int]:
        return self._own.shape

    @property
    def indices(self) -> Any:
        return device(self._own.indices)

    @property
    def T(self) -> csr_matrix:
        return csr_matrix(self._own.T)

    def copy(self) -> csr_matrix:
        return csr_matrix(self._own.copy())

    def toarray(self) -> Any:
        return device(self._own.toarray())
