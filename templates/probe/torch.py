# Loads what PyTorch opens when it is first used, as far as that needs no GPU.
import torch

print("torch", torch.__version__, "CUDA", torch.version.cuda, "cuDNN", torch.backends.cudnn.version())
if torch.version.cuda:
    print("NCCL", ".".join(map(str, torch.cuda.nccl.version())))
print("GPU", torch.cuda.is_available())
torch.linalg.inv(torch.eye(2))
if torch.cuda.is_available():
    torch.linalg.inv(torch.eye(2, device="cuda"))
