FROM nvidia/cuda:12.1.1-cudnn8-runtime-ubuntu22.04
ARG CUDNN_VERSION=8
RUN apt-get update && apt-get install -y python3-pip && echo "cuDNN $CUDNN_VERSION"
RUN pip install torch==2.3.0 faster-whisper
