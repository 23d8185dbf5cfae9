# The base is an argument, so that it can be another one.
ARG BASE_IMAGE=pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel
FROM ${BASE_IMAGE}
ARG INSTALL_FLASHATTN=false
ARG PIP_INDEX=https://pypi.org/simple
ENV MAX_JOBS=16 FLASH_ATTENTION_FORCE_BUILD=TRUE VLLM_WORKER_MULTIPROC_METHOD=spawn
WORKDIR /app
RUN pip config set global.index-url "${PIP_INDEX}"
COPY . /app
RUN pip install --no-cache-dir -e ".[metrics]" --no-build-isolation
RUN if [ "${INSTALL_FLASHATTN}" = "true" ]; then \
        pip uninstall -y ninja && pip install --no-cache-dir flash-attn --no-build-isolation; \
    fi
