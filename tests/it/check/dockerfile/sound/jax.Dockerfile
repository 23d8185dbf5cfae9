FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04
ENV TF_CPP_MIN_LOG_LEVEL=2 XLA_PYTHON_CLIENT_PREALLOCATE=false CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0
RUN apt-get update && apt-get install -y python3-pip && rm -rf /var/lib/apt/lists/*
RUN pip3 install --no-cache-dir "jax[cuda12_local]==0.4.30" flax optax tensorflow==2.16.1
