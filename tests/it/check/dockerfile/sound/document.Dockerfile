# syntax=docker/dockerfile:1.7
FROM pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime@sha256:0000000000000000000000000000000000000000000000000000000000000000
ARG CUDNN_VERSION=8.9.7
RUN <<EOF
set -e
FROM=cu$CUDA
pip install numpy==1.26.4
EOF
COPY <<-"CONF" /etc/job.conf
FROM nvidia/cuda:latest
ENV NCCL_TIMEOUT=1
CONF
RUN --mount=type=bind,from=alpine,target=/mnt \
    # ENV NCCL_TIMEOUT=1
    mkdir -p /data/cu$USER
