#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a PyTorch Distributed Checkpoint with the standard library alone, for tests/dcp_bytes.py.

torch 2.15 loads what it writes: dcp.load in one to three processes, resharded; dcp_to_torch_save;
torch.load(weights_only=True) of each piece.
"""
import os
import struct
import sys
import zlib

# ---- one piece: a torch zip ------------------------------------------------------------------------------------------
STORAGE = {'F64': 'DoubleStorage', 'F32': 'FloatStorage', 'F16': 'HalfStorage', 'BF16': 'BFloat16Storage', 'I64': 'LongStorage', 'I32': 'IntStorage',
           'I16': 'ShortStorage', 'I8': 'CharStorage', 'U8': 'ByteStorage', 'BOOL': 'BoolStorage', 'C64': 'ComplexFloatStorage'}
TORCH = {'F64': 'float64', 'F32': 'float32', 'F16': 'float16', 'BF16': 'bfloat16', 'I64': 'int64', 'I32': 'int32', 'I16': 'int16', 'I8': 'int8', 'U8': 'uint8',
         'BOOL': 'bool', 'C64': 'complex64', 'F8_E4M3': 'float8_e4m3fn', 'F8_E5M2': 'float8_e5m2', 'F8_E8M0': 'float8_e8m0fnu', 'U16': 'uint16', 'U32': 'uint32',
         'U64': 'uint64'}
SIZE = {'F64': 8, 'F32': 4, 'F16': 2, 'BF16': 2, 'I64': 8, 'I32': 4, 'I16': 2, 'I8': 1, 'U8': 1, 'BOOL': 1, 'C64': 8, 'F8_E4M3': 1, 'F8_E5M2': 1, 'F8_E8M0': 1,
        'U16': 2, 'U32': 4, 'U64': 8}


def numel(shape):
    n = 1
    for s in shape:
        n *= s
    return n


def p_int(n):
    """protocol 2: BININT1, BININT2, BININT (signed 32), LONG1 (little-endian two's complement, as short as it goes)."""
    if 0 <= n < 256:
        return b'K' + bytes([n])
    if 0 <= n < 65536:
        return b'M' + struct.pack('<H', n)
    if -2**31 <= n < 2**31:
        return b'J' + struct.pack('<i', n)
    b = n.to_bytes((n.bit_length() // 8) + 1, 'little', signed=True)
    return b'\x8a' + bytes([len(b)]) + b


def p_text(s):
    b = s.encode()
    return b'X' + struct.pack('<I', len(b)) + b          # BINUNICODE


def p_tuple(items):
    n = len(items)
    return b')' if n == 0 else b''.join(items) + b'\x85\x86\x87'[n - 1:n] if n <= 3 else b'(' + b''.join(items) + b't'


def p_global(m, n):
    return b'c' + m.encode() + b'\n' + n.encode() + b'\n'  # GLOBAL


def tensor_pickle(dtype, shape):
    """data.pkl of torch.save(tensor), protocol 2, without memo (torch's own has BINPUTs; both load, weights_only too).
    dtypes without a storage class (float8, uint16..64) go by _rebuild_tensor_v3: an UntypedStorage whose count is in bytes, and the dtype."""
    stride, acc = [], 1
    for s in reversed(shape):
        stride.insert(0, acc)
        acc *= max(s, 1)
    v3 = dtype not in STORAGE
    count = numel(shape) * (SIZE[dtype] if v3 else 1)
    cls = p_global('torch.storage', 'UntypedStorage') if v3 else p_global('torch', STORAGE[dtype])
    pid = p_tuple([p_text('storage'), cls, p_text('0'), p_text('cpu'), p_int(count)]) + b'Q'                     # BINPERSID
    hooks = p_global('collections', 'OrderedDict') + b')R'
    args = [pid, p_int(0), p_tuple([p_int(s) for s in shape]), p_tuple([p_int(s) for s in stride]), b'\x89', hooks]  # \x89 NEWFALSE: requires_grad
    if v3:
        args.append(p_global('torch', TORCH[dtype]))
    return b'\x80\x02' + p_global('torch._utils', '_rebuild_tensor_v3' if v3 else '_rebuild_tensor_v2') + p_tuple(args) + b'R.'


def zip_piece(entries):
    """Stored zip, sizes and CRC in the local headers, no descriptors; every entry's data starts at a multiple of 64 *of the piece* (extra field 'FB').
    zip64: central extra (id 1) for sizes or offsets of 4 GiB and more, local extra for sizes, and the zip64 end record and locator (always, as torch does)."""
    out, central = bytearray(), bytearray()
    M = 0xffffffff
    for name, data in entries:
        n, at, crc, size = name.encode(), len(out), zlib.crc32(data), len(data)
        big = size >= M
        ext = struct.pack('<HHQQ', 1, 16, size, size) if big else b''
        fill = -(at + 30 + len(n) + len(ext) + 4) % 64
        ext += b'FB' + struct.pack('<H', fill) + b'Z' * fill
        z = M if big else size
        out += struct.pack('<IHHHHHIIIHH', 0x04034b50, 45 if big else 0, 0x800, 0, 0, 0, crc, z, z, len(n), len(ext)) + n + ext + data
        c = (struct.pack('<QQ', size, size) if big else b'') + (struct.pack('<Q', at) if at >= M else b'')
        c = struct.pack('<HH', 1, len(c)) + c if c else b''
        central += struct.pack('<IHHHHHHIIIHHHHHII', 0x02014b50, 0, 45 if c else 0, 0x800, 0, 0, 0, crc, z, z, len(n), len(c), 0, 0, 0, 0, min(at, M)) + n + c
    cd, k = len(out), len(entries)
    out += central
    out += struct.pack('<IQHHIIQQQQ', 0x06064b50, 44, 45, 45, 0, 0, k, k, len(central), cd) + struct.pack('<IIQI', 0x07064b50, 0, cd + len(central), 1)
    out += struct.pack('<IHHHHIIH', 0x06054b50, 0, 0, k, k, min(len(central), M), min(cd, M), 0)
    return bytes(out)


def tensor_piece(dtype, shape, data):
    assert len(data) == numel(shape) * SIZE[dtype]
    return zip_piece([('archive/data.pkl', tensor_pickle(dtype, shape)), ('archive/byteorder', b'little'), ('archive/data/0', data), ('archive/version', b'3\n')])


def int_piece(n):
    return zip_piece([('archive/data.pkl', b'\x80\x02' + p_int(n) + b'.'), ('archive/byteorder', b'little'), ('archive/version', b'3\n')])


# ---- .metadata ---------------------------------------------------------------------------------------------------
MD = 'torch.distributed.checkpoint.metadata'


class Pickle:
    """Appends opcodes in order. Class names are long: each is written once (GLOBAL, then BINPUT i) and fetched by BINGET i after, i = 0, 1, 2 ... densely.
    With 10^5 tensors this makes .metadata three times smaller; without it (GLOBAL everywhere) it loads as well."""

    def __init__(self):
        self.b, self.memo = bytearray(b'\x80\x02'), {}

    def g(self, m, n):
        if (m, n) in self.memo:
            self.b += b'h' + bytes([self.memo[m, n]])
        else:
            self.memo[m, n] = len(self.memo)
            self.b += p_global(m, n) + b'q' + bytes([self.memo[m, n]])

    def call(self, m, n, arg):                       # REDUCE with one argument
        self.g(m, n)
        self.b += p_tuple([arg]) + b'R'

    def size(self, s):
        self.call('torch', 'Size', p_tuple([p_int(x) for x in s]))

    def obj(self, m, n, fields=()):
        """NEWOBJ (class, no arguments) + BUILD with a dict of fields, in this order; no fields: no BUILD. A field is bytes or a function that appends."""
        self.g(m, n)
        self.b += b')\x81'
        if fields:
            self.b += b'}('
            for k, v in fields:
                self.b += p_text(k)
                self.b += v if isinstance(v, bytes) else v() or b''
            self.b += b'ub'


def metadata_pickle(tensors, objects, paths):
    """tensors: {fqn: (dtype, shape, [(offsets, sizes, file, offset, length)])}; objects: {fqn: (file, offset, length)};
    paths: {fqn: tuple of dict keys and list indices from the root of the saved state dict}."""
    FS = 'torch.distributed.checkpoint.filesystem'
    p = Pickle()

    def properties(dtype):
        # state of TensorProperties, a tuple: (dtype, layout, requires_grad, memory format, pinned); torch 2.15 writes a sixth, the strides, and reads both
        p.g(MD, 'TensorProperties')
        p.b += b')\x81('
        p.g('torch', TORCH[dtype])
        p.call('torch.serialization', '_get_layout', p_text('torch.strided'))
        p.b += b'\x89'
        p.call(MD, '_MEM_FORMAT_ENCODING', p_int(0))
        p.b += b'\x89tb'

    def chunks(cs):
        p.b += b']('
        for o, s, *_ in cs:
            p.obj(MD, 'ChunkStorageMetadata', [('offsets', lambda o=o: p.size(o)), ('sizes', lambda s=s: p.size(s))])
        p.b += b'e'

    def state_dict():
        p.b += b'}('
        for fqn, (dtype, shape, cs) in tensors.items():
            p.b += p_text(fqn)
            p.obj(MD, 'TensorStorageMetadata', [('properties', lambda: properties(dtype)), ('size', lambda: p.size(shape)), ('chunks', lambda: chunks(cs))])
        for fqn in objects:
            p.b += p_text(fqn)
            p.obj(MD, 'BytesStorageMetadata')
        p.b += b'u'

    def storage():
        # a key must be whole before it goes into the dict: hash and equality use fqn and offset; index is a hint (place in chunks) and may be None
        p.b += b'}('
        rows = [(fqn, i, c[0], c[2:]) for fqn, (_, _, cs) in tensors.items() for i, c in enumerate(cs)] + [(fqn, None, None, x) for fqn, x in objects.items()]
        for fqn, i, o, (f, off, n) in rows:
            p.obj(MD, 'MetadataIndex', [('fqn', p_text(fqn)), ('index', b'N' if i is None else p_int(i)), ('offset', b'N' if o is None else lambda: p.size(o))])
            p.obj(FS, '_StorageInfo', [('relative_path', p_text(f)), ('offset', p_int(off)), ('length', p_int(n))])
        p.b += b'u'

    el = lambda x: p_int(x) if isinstance(x, int) else p_text(x)
    plan = b'}(' + b''.join(p_text(k) + p_tuple([el(x) for x in v]) for k, v in paths.items()) + b'u'
    p.obj(MD, 'Metadata', [('state_dict_metadata', state_dict), ('planner_data', plan), ('storage_data', storage), ('storage_meta', b'N'), ('version', p_text('1.0.0'))])
    return bytes(p.b) + b'.'


def write(outdir, tensors, objects=(), paths=None, align=64):
    """tensors: {fqn: (dtype, shape, [(offsets, sizes, bytes, rank)])}; objects: {fqn: (piece, rank)}. Each rank's pieces go into __RANK_0.distcp in this order."""
    os.makedirs(outdir, exist_ok=True)
    objects = dict(objects)
    files, t2, o2 = {}, {}, {}

    def put(rank, piece):
        f = f'__{rank}_0.distcp'
        buf = files.setdefault(f, bytearray())
        buf += bytes(-len(buf) % align)            # gaps are allowed; torch leaves none, and then inner data lie on odd addresses
        at = len(buf)
        buf += piece
        return f, at, len(piece)

    for fqn, (piece, rank) in objects.items():
        o2[fqn] = put(rank, piece)
    for fqn, (dtype, shape, chunks) in tensors.items():
        t2[fqn] = (dtype, shape, [(o, s, *put(r, tensor_piece(dtype, s, b))) for o, s, b, r in chunks])
    for f, b in files.items():
        with open(os.path.join(outdir, f), 'wb') as h:
            h.write(b)
            h.flush()
            os.fsync(h.fileno())
    paths = paths or {k: (k,) for k in [*o2, *t2]}
    tmp = os.path.join(outdir, '.metadata.tmp')
    with open(tmp, 'wb') as h:
        h.write(metadata_pickle(t2, o2, paths))
        h.flush()
        os.fsync(h.fileno())
    os.rename(tmp, os.path.join(outdir, '.metadata'))
