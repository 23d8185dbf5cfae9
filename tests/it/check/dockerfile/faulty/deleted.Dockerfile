FROM nvidia/cuda:11.4.2-cudnn8-devel-ubuntu20.04
RUN apt-get update && apt-get install -y build-essential
