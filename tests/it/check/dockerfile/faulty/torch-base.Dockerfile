FROM pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime AS train
RUN pip install torch==2.8.0 torchvision==0.23.0
FROM nvcr.io/nvidia/pytorch:24.05-py3 AS serve
RUN pip install --no-cache-dir torch==2.3.0
FROM pytorch/pytorch:2.3.0-cuda12.1-cudnn8-devel
RUN pip install torch==2.3.0+cu118 --index-url https://download.pytorch.org/whl/cu118
