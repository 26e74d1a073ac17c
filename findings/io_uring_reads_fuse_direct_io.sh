#!/usr/bin/env bash
# io_uring returns wrong bytes, with the full count and no error, where a FUSE server with direct_io answers a
# read with fewer bytes than asked for.
#
# read(2) may return fewer bytes than asked for, and libfuse says that a server may do so with direct_io. For regular files
# io_uring continues such a read itself (REQ_F_PARTIAL_IO). One would guess that it does so as a loop around pread
# does. On a connection without FUSE_ASYNC_DIO, as libfuse 2 makes them, it moves the buffer and not the offset:
# the second part of the buffer has the bytes of the file's beginning again. pread of the same descriptor is right.
# libfuse 3 asks for FUSE_ASYNC_DIO by default; there the count is short, and the bytes are right.
# Seen with Linux 6.18.44, libfuse 2.9.9, mfusepy 3.1.1, liburing (PyPI) 2026.3.30; also without O_DIRECT.
set -euo pipefail
work=$(mktemp -d)
trap 'umount "$work/mnt" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q mfusepy==3.1.1 liburing==2026.3.30
apt-get download -q libfuse2 >/dev/null 2>&1 || apt-get download -q libfuse2t64 >/dev/null
dpkg -x ./*.deb lib
FUSE_LIBRARY_PATH=$(find lib -name 'libfuse.so.2' -print -quit)
export FUSE_LIBRARY_PATH=$PWD/$FUSE_LIBRARY_PATH
cat >server.py <<'END'
import errno, stat, sys
import mfusepy as fuse
PIECE, SIZE = 192 << 10, 1 << 20
data = b"".join(i.to_bytes(4, "little") for i in range(SIZE // 4))
class View(fuse.Operations):
    use_ns = True
    def getattr(self, path, fh=None):
        if path == "/":
            return dict(st_mode=stat.S_IFDIR | 0o755, st_nlink=2)
        if path == "/file":
            return dict(st_mode=stat.S_IFREG | 0o444, st_nlink=1, st_size=SIZE)
        raise fuse.FuseOSError(errno.ENOENT)
    def readdir(self, path, fh):
        return [".", "..", "file"]
    def read(self, path, size, offset, fh):
        return data[offset : min(offset + size, (offset // PIECE + 1) * PIECE)]  # not across a piece
fuse.FUSE(View(), sys.argv[1], foreground=True, ro=True, direct_io=True)
END
cat >client.py <<'END'
import os, sys
from liburing import *
def by_uring(fd, size):
    ring, buffer = Ring(), bytearray(size)
    io_uring_queue_init(4, ring)
    io_uring_prep_read(io_uring_get_sqe(ring), fd, buffer, 0)
    io_uring_submit(ring)
    cqe = Cqe()
    io_uring_wait_cqe(ring, cqe)
    count = cqe[0].res
    io_uring_queue_exit(ring)
    return bytes(buffer[:count])
def by_pread(fd, size):
    out = b""
    while len(out) < size and (part := os.pread(fd, size - len(out), len(out))):
        out += part
    return out
size = 256 << 10
fd = os.open(sys.argv[1], os.O_RDONLY)
expected = b"".join(i.to_bytes(4, "little") for i in range(size // 4))
print("pread:", "right" if by_pread(fd, size) == expected else "wrong")
got = by_uring(fd, size)
first = next((i for i in range(0, len(got), 4) if got[i : i + 4] != expected[i : i + 4]), None)
print(f"io_uring: {len(got)} of {size} bytes,",
      "right" if first is None else f"wrong from byte {first} on, where the file's byte {int.from_bytes(got[first:first+4], 'little') * 4} is")
END
mkdir mnt
venv/bin/python server.py mnt 2>server.log &
for _ in $(seq 100); do [ -e mnt/file ] && break; sleep 0.1; done
uname -r
venv/bin/python client.py mnt/file | tee found
diff found - <<'END'
pread: right
io_uring: 262144 of 262144 bytes, wrong from byte 196608 on, where the file's byte 0 is
END
