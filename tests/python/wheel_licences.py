# SPDX-License-Identifier: Apache-2.0
"""The licences in a wheel are those of the libraries that it holds: beside the package, and within its binaries.

    tests/python/wheel_licences.py WHEEL
"""
import re
import sys
import zipfile

wheel = zipfile.ZipFile(sys.argv[1])
names = wheel.namelist()


def read(pattern):
    return {n: wheel.read(n).decode() for n in names if re.fullmatch(r"[^/]+\.dist-info/" + pattern, n)}


[archives] = read("licenses/libraries").values()
shared = {m.group(1) for m in (re.search(r"\.libs/(lib.+?)(-[0-9a-f]{8})?\.so", n) for n in names) if m}
texts = {re.sub(r".*/|\.txt$", "", n): t for n, t in read("licenses/licenses/lib.*").items()}
libraries = shared | set(archives.split())
if len(libraries) < 8 or libraries | {"libquadmath"} != set(texts):  # that one is in wheels for musl alone
    sys.exit(f"the wheel holds {sorted(libraries)}, and the licences of {sorted(texts)}")
[metadata] = read("METADATA").values()
stated = re.search(r"^License-Expression: (.*)$", metadata, re.M).group(1)
own = {"Apache-2.0"}.union(*(re.match("SPDX-License-Identifier: (.*)", t).group(1).split(" AND ") for t in texts.values()))
if set(stated.split(" AND ")) != own:
    sys.exit(f"License-Expression: {stated}, expected {sorted(own)}")
for file in ("LICENSE", "licenses/LGPL-3.0.txt", "licenses/GPL-3.0.txt"):
    if not read("licenses/" + file):
        sys.exit(f"licenses/{file} is missing")
print(f"licences of {len(libraries)} libraries are in the wheel: {stated}")
