# Loads the libraries of the CUDA provider, as a session with it does.
import ctypes
import pathlib

import onnxruntime

print("onnxruntime", onnxruntime.__version__, onnxruntime.get_available_providers())
if hasattr(onnxruntime, "preload_dlls"):
    onnxruntime.preload_dlls()
folder = pathlib.Path(onnxruntime.__file__).parent / "capi"
for name in ["libonnxruntime_providers_shared.so", "libonnxruntime_providers_cuda.so"]:
    if (folder / name).exists():
        try:
            ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            # Where there is no GPU there is no driver.
            if not str(error).startswith("libcuda.so.1:"):
                raise SystemExit(f"{name}: {error}")
            print(f"{name} is not tried further: this machine has no driver ({error})")
