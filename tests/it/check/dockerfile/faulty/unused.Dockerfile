FROM nvidia/cuda:12.8.1-base-ubuntu22.04
ARG PYTHON_VERSION=3.11
ARG TORCH_VERSION=2.8.0
ARG CUDNN_VERSION=9.7.1.26
ARG NCCL_VER=2.27.3
RUN apt-get update && apt-get install -y python3-pip
RUN pip install torch==$TORCH_VERSION
LABEL nccl=$NCCL_VER
