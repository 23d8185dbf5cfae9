ARG CUDA_VERSION=12.8.1
ARG PYTHON_VERSION=3.12
FROM nvidia/cuda:${CUDA_VERSION}-devel-ubuntu22.04 AS build
ARG PYTHON_VERSION
ARG TORCH_CUDA_ARCH_LIST="8.0 9.0a 10.0"
ENV TORCH_CUDA_ARCH_LIST=${TORCH_CUDA_ARCH_LIST} UV_HTTP_TIMEOUT=500 UV_LINK_MODE=copy
COPY --from=ghcr.io/astral-sh/uv:0.8.4 /uv /bin/
RUN uv venv --python ${PYTHON_VERSION} /opt/venv
ENV PATH=/opt/venv/bin:$PATH VIRTUAL_ENV=/opt/venv
RUN --mount=type=cache,target=/root/.cache/uv \
    uv pip install torch==2.8.0 torchvision --index-url https://download.pytorch.org/whl/cu128
RUN --mount=type=bind,source=.,target=/src uv pip install --no-build-isolation /src
FROM nvidia/cuda:${CUDA_VERSION}-base-ubuntu22.04
ARG PYTHON_VERSION
RUN apt-get update && apt-get install -y --no-install-recommends python${PYTHON_VERSION} && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH
