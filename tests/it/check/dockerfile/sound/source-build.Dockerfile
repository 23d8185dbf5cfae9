# Compiles torch: the base's CUDA and cuDNN are the ones that count.
FROM nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04
ARG CUDNN_VERSION=9.1.0
ARG PYTORCH_VERSION=2.4.0
RUN apt-get update && apt-get install -y git cmake python3-dev
RUN git clone --branch v${PYTORCH_VERSION} https://github.com/pytorch/pytorch /src && cd /src && python3 setup.py install
