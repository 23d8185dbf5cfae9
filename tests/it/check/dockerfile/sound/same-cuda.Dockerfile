# escape=\
ARG CUDA_VERSION=12.1.1
ARG OS=ubuntu22.04
FROM nvidia/cuda:${CUDA_VERSION}-devel-${OS}
ARG TORCH_VERSION=2.3.0
ARG TORCH_VARIANT=cu121
RUN apt-get update && apt-get install -y python3-pip
RUN pip install torch==${TORCH_VERSION} --index-url https://download.pytorch.org/whl/${TORCH_VARIANT}
