FROM nvidia/cuda:12.1.1-base-ubuntu22.04
ARG NCCL_VERSION=2.18.3
ARG CUDNN_VERSION=8.9.7
COPY install.sh requirements.txt ./
RUN ./install.sh
RUN pip install -r requirements.txt
