"""What the real loader does with files: for each, `ctypes.CDLL` in a forked process, alone or after `import torch`.

Usage: oracle.py alone|torch < LIST. Prints JSON: the files that are mapped before, and for each file the error or the
files that it maps besides.
"""

import ctypes
import json
import os
import sys

if sys.argv[1] == "torch":
    import torch  # noqa: F401


def mapped():
    with open("/proc/self/maps") as maps:
        columns = (line.rstrip("\n").split(None, 5) for line in maps)
        return list(dict.fromkeys(entry[5] for entry in columns if len(entry) == 6 and entry[5].startswith("/")))


before = mapped()
files = {}
for file in sys.stdin.read().splitlines():
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        null = os.open("/dev/null", os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        try:
            ctypes.CDLL(file)
            answer = [None, [path for path in mapped() if path not in before]]
        except OSError as error:
            answer = [str(error), []]
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    files[file] = json.loads(text) if text else ["the process died", []]
json.dump({"before": before, "files": files}, sys.stdout)
