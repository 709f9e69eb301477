"""Where kernels, hardware profiles and model descriptions live.

A wheel carries them inside the package (``snnmap/_kernels`` and so on); a checkout and an editable
install have them at the top of the tree. The package is looked at first, the checkout second.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource_dir(kind: str) -> Path:
    """Return the folder of `kind`: ``"kernels"``, ``"hardware_profiles"`` or ``"models"``.

    Raises:
        FileNotFoundError: neither the package nor a checkout around it has the folder.
    """
    for folder in (_PACKAGE / f"_{kind}", _PACKAGE.parent / kind):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"snnmap's {kind} are missing beside {_PACKAGE}; reinstall snnmap")


def resource_names(kind: str, suffix: str) -> list[str]:
    """Sorted names (without `suffix`) of the files of one kind, e.g. all profiles."""
    return sorted(path.name.removesuffix(suffix) for path in resource_dir(kind).glob(f"*{suffix}"))
