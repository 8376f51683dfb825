# SPDX-License-Identifier: Apache-2.0
"""What tests ask of ELF files."""

import re
import subprocess


def dynamic_names(file, tag):
    """The names that the dynamic section of a library or program gives under SONAME or NEEDED."""
    text = subprocess.run(["readelf", "--dynamic", "--wide", file], check=True, capture_output=True, text=True).stdout
    return re.findall(rf"\({tag}\) .*\[(.*)\]", text)
