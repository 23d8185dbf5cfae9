FROM nvidia/cuda:12.1.1-base-ubuntu22.04
ARG CUDA=12.1.1
RUN apt-get update && apt-get install -y python3-pip
RUN CU=$(echo ${CUDA} | tr -d '.') && \
    pip install torch --extra-index-url https://download.pytorch.org/whl/cu${CU}
RUN pip install torchaudio --index-url "https://download.pytorch.org/whl/cu$(echo $CUDA | cut -d. -f1,2 | tr -d .)"
RUN pip install "torchvision==0.18.0+cu${CUDA//./}"
