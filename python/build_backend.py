"""Makes the wheel of this package (PEP 517, PEP 427) with only the standard library.

The metadata of the wheel repeats values of pyproject.toml, because Python's standard library reads TOML only from
version 3.11 on. tests/python checks that the values agree.
"""

import base64
import hashlib
import os
import tarfile
import zipfile
from pathlib import Path

NAME = "mltcp"
VERSION = "0.1.0"
HERE = Path(__file__).resolve().parent
METADATA = f"""Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: Userspace transport whose congestion control interleaves the bursts of training jobs
License: Apache-2.0
Requires-Python: >=3.9
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: mltcp\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _write(folder, files):
    name = f"{NAME}-{VERSION}-py3-none-any.whl"
    info = f"{NAME}-{VERSION}.dist-info"
    files = {**files, f"{info}/METADATA": METADATA.encode(), f"{info}/WHEEL": WHEEL.encode()}
    record = ""
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
    return name


def _sources():
    return [*sorted((HERE / NAME).glob("*.py")), HERE / NAME / "py.typed", HERE / NAME / "mltcp.h"]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _write(wheel_directory, {f"{NAME}/{source.name}": source.read_bytes() for source in _sources()})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _write(wheel_directory, {f"{NAME}.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    root = f"{NAME}-{VERSION}"
    with tarfile.open(os.path.join(sdist_directory, f"{root}.tar.gz"), "w:gz", dereference=True) as archive:
        for path in [HERE / "pyproject.toml", HERE / "build_backend.py", *_sources()]:
            archive.add(path, f"{root}/{path.relative_to(HERE)}")
    return f"{root}.tar.gz"
