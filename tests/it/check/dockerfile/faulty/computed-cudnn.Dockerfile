ARG CUDA_VERSION=12.1
FROM nvidia/cuda:12.1.1-cudnn8-runtime-ubuntu22.04
ARG CU
RUN pip install torch==2.3.0 --index-url https://download.pytorch.org/whl/cu${CU}
ENV NCCL_SOCKET_IFNAMES=eth0 PYTORCH_CUDA_ALLOC_CONFIG=x TORCH_NCCL_BLOCKINGWAIT=1
