FROM pytorch/pytorch:2.3.1-cuda12.1-cudnn8-runtime
ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    HF_HOME=/cache/huggingface \
    TORCH_HOME=/cache/torch
WORKDIR /workspace
# torch and torchvision are those of the base
COPY requirements.txt ./
RUN python -m pip install --upgrade pip \
 && python -m pip install "torch>=2.1,<2.4" transformers==4.41.2 accelerate -r requirements.txt
COPY . .
ENTRYPOINT ["python", "train.py"]
