FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04
RUN apt-get update && apt-get install -y python3-pip
RUN pip install torch==2.3.0 --index-url https://download.pytorch.org/whl/cpu
