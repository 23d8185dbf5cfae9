FROM nvidia/cuda:12.1.1-base-ubuntu22.04
ARG NCCL_VERSION=2.18.3-1+cuda12.1
RUN apt-get update && apt-get install -y python3-pip libnccl2=${NCCL_VERSION}
RUN pip install torch==2.3.0
