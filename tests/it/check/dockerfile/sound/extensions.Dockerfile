FROM nvidia/cuda:11.8.0-devel-ubuntu22.04
ARG DEBIAN_FRONTEND=noninteractive
ARG CUDA_ARCH="7.5;8.6"
ENV CUDA_HOME=/usr/local/cuda FORCE_CUDA=1 TORCH_CUDA_ARCH_LIST="7.5 8.6+PTX" TORCH_NVCC_FLAGS="-Xfatbin -compress-all" \
    NCCL_VERSION=2.16.5 NCCL_HOME=/usr NCCL_LIB_DIR=/usr/lib/x86_64-linux-gnu NCCL_INCLUDE_DIR=/usr/include \
    LD_LIBRARY_PATH=/usr/local/cuda/lib64
RUN pip install --no-cache-dir torch==2.1.2 torchvision==0.16.2 --index-url https://download.pytorch.org/whl/cu118
RUN pip install --no-cache-dir ninja && \
    git clone --depth 1 https://git.invalid/detection.git /opt/detection && \
    pip install --no-build-isolation -e /opt/detection
