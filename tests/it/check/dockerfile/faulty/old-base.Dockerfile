# syntax=docker/dockerfile:1
ARG BASE=nvidia/cuda:11.8.0-runtime-ubuntu22.04
FROM ${BASE} AS base
RUN apt-get update && \
    # the interpreter
    apt-get install -y python3-pip
FROM base
RUN --mount=type=cache,target=/root/.cache/pip \
    python3 -m pip install "torch==2.8.0" \
        transformers
