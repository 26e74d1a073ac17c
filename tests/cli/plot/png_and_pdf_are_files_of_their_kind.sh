# A PNG has 1600 pixels for 800 units, a PDF page 600 points. A second run writes the same bytes.
"$phema" gen --quiet --count 4 run
"$phema" plot --quiet error run -o error.png
"$phema" plot --quiet error run -o error.pdf
"$phema" plot --quiet error run -o error.svg
python3 - <<'END'
import re, struct, zlib
svg = open("error.svg").read()
height = int(re.search(r'<svg [^>]*height="(\d+)"', svg)[1])
png = open("error.png", "rb").read()
width, rows = struct.unpack(">II", png[16:24])
print(png[:8], width, rows == 2 * height)
data, at = b"", 8
while at < len(png):
    size, kind = struct.unpack(">I4s", png[at:at + 8])
    data += png[at + 8:at + 8 + size] if kind == b"IDAT" else b""
    at += 12 + size
pixels = zlib.decompress(data)
# a row that is not the one above it: something is drawn, and most of it is white
rows = [pixels[i:i + 1 + 3 * width] for i in range(0, len(pixels), 1 + 3 * width)]
print(len(rows) * len(rows[0]) == len(pixels), 100 < len(set(rows)) < len(rows))
pdf = open("error.pdf", "rb").read()
print(pdf[:5], pdf.rstrip()[-5:], b"CreationDate" in pdf)
END
"$phema" plot --quiet error run -o again.pdf && cmp error.pdf again.pdf
