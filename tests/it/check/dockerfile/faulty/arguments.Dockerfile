# A template that everything is an argument of.
ARG PYTORCH_VERSION=2.3.0
ARG CUDA_VERSION=12.1
ARG CUDNN_VERSION=8.9.7

FROM python:3.11-slim-bookworm
ARG PYTORCH_VERSION
ARG CUDA_VERSION
SHELL ["/bin/bash", "-c"]
RUN pip install --no-cache-dir torch==${PYTORCH_VERSION} \
    --index-url https://download.pytorch.org/whl/cu${CUDA_VERSION//./}
