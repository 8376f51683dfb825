# SPDX-License-Identifier: Apache-2.0
"""Times a problem unchecked and checked, in turns, and prints the fastest of each, their ratio and the peak memory. Fails
beyond the limits: three times the time, 4 GiB.

    checking_costs.py FA4 [SHAPE OPTION...]
"""
import json
import os
import re
import subprocess
import sys
import tempfile

ROUNDS, LIMIT_RATIO, LIMIT_MEBIBYTES = 5, 3.0, 4096


def main():
    fa4, shape = sys.argv[1], sys.argv[2:]
    unchecked, checked, memory = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, 'report.json')
        for _ in range(ROUNDS):
            text = subprocess.run([fa4, 'run', '--device', 'sim', *shape], check=True, capture_output=True, text=True).stdout
            unchecked.append(float(re.search(r'time\s+([0-9.]+) s, simulated', text)[1]))
            subprocess.run([fa4, 'check', '--full', '--seeds', '0', '--json', report, *shape], check=True, stdout=subprocess.DEVNULL)
            with open(report) as file:
                found = json.load(file)
            checked.append(found['seconds'])
            memory.append(found['peak_mebibytes'])
    ratio = min(checked) / min(unchecked)
    print('unchecked %.3f s, checked %.3f s: %.2f times; peak memory %.0f MiB' % (min(unchecked), min(checked), ratio, max(memory)))
    return 0 if ratio <= LIMIT_RATIO and max(memory) <= LIMIT_MEBIBYTES else 1


if __name__ == '__main__':
    sys.exit(main())
