FROM python:3.11-slim-bookworm
ARG DEBIAN_FRONTEND=noninteractive
ARG PIP_INDEX_URL
ENV NCCL_DEBUG=WARN PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
RUN pip install --no-cache-dir torch==2.8.0
USER 1000
