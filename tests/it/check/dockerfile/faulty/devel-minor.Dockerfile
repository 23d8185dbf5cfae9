FROM nvidia/cuda:12.4.1-devel-ubuntu22.04
RUN apt-get update && apt-get install -y git python3-pip ninja-build
ENV TORCH_CUDA_ARCH_LIST="8.0;9.0"
RUN pip install --no-cache-dir torch==2.3.0
RUN pip install --no-build-isolation flash-attn
