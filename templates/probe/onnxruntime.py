# Loads the libraries of the CUDA provider, as a session with it does.
import ctypes
import os
import pathlib
import sys

import onnxruntime

print("onnxruntime", onnxruntime.__version__, onnxruntime.get_available_providers(), flush=True)
if hasattr(onnxruntime, "preload_dlls"):
    onnxruntime.preload_dlls()
folder = pathlib.Path(onnxruntime.__file__).parent / "capi"


def driver():
    try:
        return ctypes.CDLL("libcuda.so.1") is not None
    except OSError:
        return False


# In a process of its own: where there is no driver, some releases cannot be loaded and some crash (1.22).
child = os.fork()
if child == 0:
    for name in ["libonnxruntime_providers_shared.so", "libonnxruntime_providers_cuda.so"]:
        try:
            if (folder / name).exists():
                ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            os._exit(0 if str(error).startswith("libcuda.so.1:") else 1)
    os._exit(0)
status = os.waitpid(child, 0)[1]
if os.WIFSIGNALED(status) and not driver():
    print("the CUDA provider does not start on a machine without driver: signal", os.WTERMSIG(status))
elif status:
    raise SystemExit("the CUDA provider cannot be loaded")
