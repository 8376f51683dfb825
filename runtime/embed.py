# SPDX-License-Identifier: Apache-2.0
"""Writes files, one behind the other, as a C++ array: embed.py INPUT... OUTPUT FUNCTION. FUNCTION, in namespace fa4, returns its
address."""

import struct
import sys

*sources, target, function = sys.argv[1:]
data = b""
for source in sources:
    with open(source, "rb") as file:
        data += file.read()
# The driver wants a fatbinary aligned to 8 bytes; zeros after it end a PTX text.
data += bytes(8 + -len(data) % 8)
words = [f"0x{word:x}" for (word,) in struct.iter_unpack("<Q", data)]
rows = ",\n".join(",".join(words[i : i + 8]) for i in range(0, len(words), 8))
with open(target, "w", encoding="ascii") as file:
    file.write(f"namespace fa4 {{\nstatic const unsigned long long image[] = {{\n{rows}}};\n")
    file.write(f"extern const void* {function}();\nconst void* {function}() {{ return image; }}\n}}  // namespace fa4\n")
