FROM nvidia/cuda:12.4.1-base-ubuntu22.04 as runtime
RUN apt-get update && apt-get install -y python3-pip
RUN pip install 'torch==2.3.0'
