FROM nvidia/cuda:12.1.1-cudnn8-runtime-ubuntu22.04

RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-pip \
    && rm -rf /var/lib/apt/lists/*
RUN pip3 install torch==2.3.0 torchvision==0.18.0
WORKDIR /app
COPY . .
CMD ["python3", "train.py"]
