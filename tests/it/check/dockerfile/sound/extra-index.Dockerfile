FROM nvidia/cuda:11.8.0-runtime-ubuntu22.04
RUN apt-get update && apt-get install -y python3-pip
# pip takes 2.3.0+cu118 where both are offered.
RUN pip install torch==2.3.0 --extra-index-url https://download.pytorch.org/whl/cu118
ENV TORCH_NCCL_ASYNC_ERROR_HANDLING=1
