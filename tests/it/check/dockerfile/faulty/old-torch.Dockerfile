FROM nvidia/cuda:12.1.1-base-ubuntu22.04 AS build
RUN apt-get update && apt-get install -y python3-venv
RUN python3 -m venv /opt/venv && /opt/venv/bin/pip install torch==2.1.2

FROM nvidia/cuda:11.8.0-base-ubuntu22.04
COPY --from=build /opt/venv /opt/venv
ENV TORCH_NCCL_ASYNC_ERROR_HANDLING=1
ENV PATH=/opt/venv/bin:$PATH
