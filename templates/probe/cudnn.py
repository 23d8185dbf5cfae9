# Makes cuDNN open its parts, each of which checks the version of the one below it.
import ctypes

import torch

version = torch.backends.cudnn.version()
print("cuDNN", version)
if version is None:
    raise SystemExit("this torch has no cuDNN")
shim = ctypes.CDLL(f"libcudnn.so.{9 if version >= 90000 else 8}")
if version >= 90000:
    checks = ["cudnnGraphVersionCheck", "cudnnOpsVersionCheck", "cudnnCnnVersionCheck", "cudnnAdvVersionCheck"]
else:
    checks = [f"cudnn{part}VersionCheck" for part in ["OpsInfer", "CnnInfer", "AdvInfer", "OpsTrain", "CnnTrain", "AdvTrain"]]
for check in checks:
    function = getattr(shim, check, None)
    status = function() if function else 0
    print(check, status)
    if status:
        raise SystemExit(f"{check} returns {status}")
if torch.cuda.is_available():
    torch.nn.functional.conv2d(torch.ones(1, 1, 8, 8, device="cuda"), torch.ones(1, 1, 3, 3, device="cuda"))
